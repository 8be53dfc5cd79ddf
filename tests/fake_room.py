"""A bench whose room invents measurements, for tests of the layers above the lab. Any process can import it.

It serves the command line, too, without guests: PYTHONPATH=tests conformance run cubic --executor fake_room:good
"""

import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import types

import helpers
from helpers import as_read, counted, overflows, scheme

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.trials.trial import Measurement, Outcome, Trial
from conformance.support import paths

STACK = "fake"
#: documents.zone_of() and zones_for(), which look for zones once and not for each trial
zone_of, zones_for = functools.cache(documents.zone_of), functools.cache(documents.zones_for)


class Room:
    """A room that invents measurements. `kind` says which: good, bad, bad once (not with fresh seeds), error,
    unsupported, unclear, clear later.
    """

    def __init__(self, kind):
        self.kind = kind

    def run(self, adapter, batches, cancelled):
        for trials in batches:
            yield from map(self.made, trials)

    def made(self, trial):
        """Return the Measurement of a trial, which other rooms invent in other ways."""
        return made(trial, self.kind)


class Failing(Room):
    """A room in which the stack breaks off with every seed, or with the one that a subclass names."""

    seed = None

    def run(self, adapter, batches, cancelled):
        return super().run(adapter, itertools.takewhile(bool, batches), cancelled)

    def made(self, trial):
        if self.seed in (None, trial.seed):
            return Measurement(trial=trial, outcome=Outcome.FAILED, message="it ended")
        return super().made(trial)


def made(trial, kind):
    """Return a Measurement of a trial: if the kind is good, with the utilization and loss of the zone's reference."""
    algorithm, profile = trial.scheme.algorithm, trial.setting.profile
    if kind == "error":
        return Measurement(trial=trial, outcome=Outcome.ERROR, message="the guest died")
    if kind == "unsupported":
        return Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message="not offered")
    if not trial.setting.of_profile:
        return made_shared(trial, kind)
    if profile in ("startup", "competing", "sawtooth", "identify", "pacing", "loss-threshold"):
        return made_further(trial, kind)
    if trial.setting.segments:
        (zone,) = zones_for(algorithm, trial.setting)
        permitted = zone.intervals[trial.setting.point]
    else:
        permitted = interval(zone_of(algorithm, profile=profile), trial.setting.cell)
    good = kind == "good" or (kind == "bad once" and trial.seed > seeds.FRESH)
    value = permitted.basis.median if good else 0.001
    # Sessions begin with seed 1001 by default.
    number = (trial.seed - 1) % 1000
    if (kind == "unclear" and number % 2 == 0) or (kind == "clear later" and number >= 2):
        value = permitted.low
    metrics = {"bytes": 1, "completion_s": 1.0, "goodput_mbps": 1.0, "utilization": value}
    if trial.setting.segments:
        return as_read(Measurement(trial=trial, outcome=Outcome.OK, metrics=metrics, host={"wall_s": os.getpid()}))
    lost_pct = interval(zone_of(algorithm, "loss", profile), trial.setting.cell).basis.median
    came = 0 if kind == "bad" else round(10**6 * (1 - lost_pct / 100))
    evidence = {"interfaces": counted(10**6, came)}
    # `host` differs from one process to the next, as it does from one machine to the next.
    return as_read(Measurement(
        trial=trial, outcome=Outcome.OK, metrics=metrics, evidence=evidence, host={"wall_s": os.getpid()}
    ))  # fmt: skip


def interval(zone, cell):
    """Return a zone's interval at a cell; at a cell that it does not judge, that of another one."""
    return zone.intervals.get(cell) or next(iter(zone.intervals.values()))


def made_further(trial, kind):
    """Return a Measurement of a trial under one of the profiles that further zones have."""
    setting = trial.setting
    zones = zones_for(trial.scheme.algorithm, setting)
    permitted = {zone.metric: zone.intervals[setting.cell] for zone in zones if setting.cell in zone.intervals}
    value = {metric: one.basis.median if kind == "good" else 0.001 for metric, one in permitted.items()}
    rtts = value.get("transfer_rtts", 1)
    metrics = {
        "bytes": 1, "handshake_s": 0.5, "completion_s": 0.5 + rtts * setting.cell.rtt_s,
        "goodput_mbps": 1.0, "utilization": value.get("utilization", 0.5),
        "queue_mean_bytes": value.get("queue_mean_bdp", 1) * setting.cell.bdp_bytes,
        "back_to_back_packets": 4 if kind == "good" else 100,
    }  # fmt: skip
    events = value.get("loss_events_per_min")
    evidence = {} if events is None else {"trace": overflows(events)}
    return as_read(Measurement(
        trial=trial, outcome=Outcome.OK, metrics=metrics, evidence=evidence, host={"wall_s": os.getpid()}
    ))  # fmt: skip


def made_shared(trial, kind):
    """Return a Measurement of flows that share a network. If the kind is good, it suits the scenario's zones."""
    setting, at = trial.setting, trial.setting.point
    zones = zones_for(trial.scheme.algorithm, setting)
    good = kind == "good" or (kind == "bad once" and trial.seed > seeds.FRESH)
    value = {z.metric: z.intervals[at].basis.median if good else 0.001 for z in zones}
    return helpers.shared_measurement(trial, value)


class Adapter:
    """An adapter that offers everything or, if algorithms are named, these."""

    name, version, digest = STACK, "1", "d" * 16

    def __init__(self, name=None, manifest=None, offers=(), client=None):
        self.name, self._offers, self.client = name or self.name, offers, client
        self.manifest = manifest or types.SimpleNamespace(
            path=paths.data("adapters", STACK, "adapter.json"), transport="tcp",
            offered=lambda: ["cubic", "reno", "bbr"], draft=lambda algorithm: None,
        )  # fmt: skip

    def why_not(self, algorithm):
        return None if not self._offers or algorithm in self._offers else f"{self.name} does not offer {algorithm}"

    def kernel(self, algorithm):
        return None


class Bench(benches.Bench):
    def scheme(self, algorithm):
        return scheme(algorithm, stack=self.adapter.name)


def bench_of(room, adapter=None, kind=Bench, lab_digest="7" * 16, choice=None, kernel=None):
    """Return a bench whose trials are all made in this room."""
    place = benches.BenchPlace(kernel=kernel, room=room)
    return kind(
        adapter=adapter or Adapter(), place=lambda algorithm: place, lab_digest=lab_digest,
        choice=choice or benches.Choice(),
    )  # fmt: skip


def install(kind="good", room=Room, patch=setattr):
    """Make benches.find() return the fake bench in this process, until what `patch` did is undone."""

    def bench(choice=None, remembers=True):
        if choice is not None and choice.stack == "missing":
            raise UserError("stack 'missing' is not known", "choose another")
        return bench_of(room(kind), choice=choice)

    patch(benches, "find", bench)


class Executor(concurrent.futures.Executor):
    """Answers what workers are asked for (conformance/engine/workers.py) with measurements of a kind, at once."""

    def __init__(self, kind):
        self._kind = kind

    def submit(self, call, argument):
        trials = [Trial.from_json(trial) for batch in json.loads(argument)["batches"] for trial in batch]
        answered = concurrent.futures.Future()
        answered.set_result(json.dumps({"measurements": [made(trial, self._kind).to_json() for trial in trials]}))
        return answered


good, bad, unclear = (functools.partial(Executor, kind) for kind in ("good", "bad", "unclear"))


class Deadly(Room):
    """A room that ends its process the first time it runs; `kind` names the file that records that it did."""

    def run(self, adapter, batches, cancelled):
        mark = pathlib.Path(self.kind)
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            yield from Room("good").run(adapter, batches, cancelled)
        else:
            os._exit(1)

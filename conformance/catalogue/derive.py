"""Derive a zone from reference runs, by an explicit margin rule.

Bases are the reference's trials and, where packets are lost one by one at random, transfers that follow the algorithm's
document alone (model/played.py). A cell's interval reaches from the least to the greatest median of its bases, widened
on both sides by a relative and an absolute margin: what another honest implementation, kernel or server may differ by.
zones/README.md argues for the numbers.
"""

import collections
import functools
import json
import math
import pathlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from conformance.catalogue import documents, own_kind, scenarios
from conformance.model import place as places
from conformance.model import played, power, statistics, verdict, zone
from conformance.model.emulation import tc_commands
from conformance.model.errors import UserError
from conformance.model.metric import RELATIVE_MARGIN
from conformance.model.metrics import BACK_TO_BACK, METRICS, UTILIZATION
from conformance.model.place import Place, Point
from conformance.model.scenario import Scenario
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome
from conformance.model.zone import (
    REFERENCE_PACKET_BYTES,
    SMALL_PACKET_BYTES,
    Basis,
    Interval,
    Margin,
    OwnKind,
    Permits,
    Zone,
    hull,
)
from conformance.results import store
from conformance.support import files, schema

#: With 30 trials of the reference five of a stack can violate any of 400 questions; with 20, of no more than 66.
MIN_TRIALS, USUAL_TRIALS = 5, 30
PLAYED_TRIALS = 60
#: chances of loss
_AT_A_TIME = 4096
#: what zones call the document that limits bursts to the initial window
_BURST_LIMIT = "rfc9002"
#: of Ethernet, IPv4, TCP with timestamps; QUIC's are of about this size, too
_HEADERS_BYTES = 66
#: of zone documents; zones of before it hold ranges in place of values
FORMAT = 2
#: of 0.0001, in which bounds are rounded
_SLACK = 1e-6


def margin_rule(metric: str = UTILIZATION.name, zone_id: str = "") -> dict[str, Any]:
    """Return what a zone of this metric says of its margin; `kinds`: where implementations were seen to differ."""
    absolute = METRICS[metric].margin
    kinds = documents.margins().get(zone_id)
    return {
        "text": f"least to greatest median of the bases, widened by {RELATIVE_MARGIN:.0%} and {absolute:g}",
        "relative": RELATIVE_MARGIN,
        "absolute": absolute,
        **({"kinds": kinds} if kinds else {}),
    }


def interval(
    bases: Sequence[Basis], metric: str = UTILIZATION.name, margin: Margin | None = None
) -> tuple[float, float]:
    """Return (low, high) of the permissible interval that rests on these bases, rounded outward to 0.0001.

    `margin`: that of the metric, where none is given.
    """
    return METRICS[metric].clamped(*rounded_outward(*hull(bases, margin or Margin.of(margin_rule(metric)))))


def rounded_outward(low: float, high: float) -> tuple[float, float]:
    """Return bounds rounded to 0.0001, away from each other; not by a whole step for what arithmetic adds to 0.896."""
    return math.floor(low * 10_000 + _SLACK) / 10_000, math.ceil(high * 10_000 - _SLACK) / 10_000


def documented(algorithm: str, metric: str, setting: Setting) -> tuple[tuple[Basis, ...], float] | None:
    """Return (what documents say of a metric in a setting, the factor of small packets); None where none does.

    None says what flows do that share a network.
    """
    if setting.network is not None:
        return None
    if metric == UTILIZATION.name:
        return played_bases(algorithm, setting)
    if metric == BACK_TO_BACK.name:
        return (Basis.of(_BURST_LIMIT, [played.INITIAL_WINDOW_PACKETS] * PLAYED_TRIALS),), 1.0
    return None


def played_bases(algorithm: str, setting: Setting) -> tuple[tuple[Basis, ...], float] | None:
    """Return (what documents say the algorithm does in a setting, the factor of small packets), if they speak of it.

    They speak of packets that are lost one by one, by chance: not of the queue's losses alone, nor of super-packets.
    """
    if setting.offload or not setting.cell.loss_pct:
        return None
    named = played.documents(algorithm, _path(setting, REFERENCE_PACKET_BYTES))
    if not named:
        return None
    bases = tuple(Basis.of(_called(name), _played(name, setting, REFERENCE_PACKET_BYTES)) for name in named)
    small = statistics.median(_played(named[0], setting, SMALL_PACKET_BYTES))
    return bases, round(small / bases[0].median, 4)


def _called(name: str) -> str:
    """Return the name of a played document among a zone's references."""
    return f"{name.lower().replace(' ', '')}-played"


def _path(setting: Setting, packet_bytes: int) -> played.Path:
    return played.Path(
        bandwidth_mbps=setting.cell.bandwidth_mbps,
        rtt_s=tc_commands.rtt_s(setting.cell),
        loss=setting.cell.loss_pct / 100,
        packet_bytes=packet_bytes,
        wire_bytes=packet_bytes + _HEADERS_BYTES,
        queue_packets=tc_commands.red_parameters(setting.cell)["max_bytes"] / (packet_bytes + _HEADERS_BYTES),
        transfer_bytes=setting.transfer_bytes,
    )


def passing(loss: float, seed: str) -> Iterator[float]:
    """Yield how many packets pass before the next that is lost, where each is lost by this chance, for itself.

    `seed` begins Python's generator. NumPy has the same one, and draws thousands at a time.
    """
    _, state, _ = random.Random(seed).getstate()
    draws = numpy.random.RandomState()
    draws.set_state(("MT19937", numpy.array(state[:-1], dtype=numpy.uint32), state[-1], 0, 0.0))
    passed = 0
    while loss:
        last = -1
        for at in numpy.flatnonzero(draws.random_sample(_AT_A_TIME) < loss).tolist():
            yield passed + at - last - 1
            passed, last = 0, at
        passed += _AT_A_TIME - last - 1
    yield math.inf


@functools.lru_cache(maxsize=1024)
def _played(name: str, setting: Setting, packet_bytes: int) -> tuple[float, ...]:
    path = _path(setting, packet_bytes)
    seeds = (f"{name} {setting.cell.id} {seed}" for seed in range(1, PLAYED_TRIALS + 1))
    return tuple(round(played.utilization(name, path, passing(path.loss, seed)), 4) for seed in seeds)


def derive(
    measurements: Sequence[Measurement],
    algorithm: str,
    version_text: str,
    metric: str = UTILIZATION.name,
    profile: str = "atc25",
    name: str = "heatmap",
    baseline: bool = False,
) -> dict[str, Any]:
    """Return the zone document of `algorithm`. Raises UserError where the measurements cannot serve as a reference.

    `profile`: what they were measured under, a profile or a scenario.
    A `baseline` does not rest on what the algorithm's document predicts, and counts all cells.
    """
    beside = own_kind.of_reference(measurements, algorithm, metric, profile, shipped=baseline)
    values, head = reference(measurements, algorithm, version_text, metric, profile, name, beside)
    (source,) = head["references"]
    rule = margin_rule(metric, head["id"])
    settings = {places.of(setting): setting for setting in values}
    documents_say = {
        place: bases
        for place, setting in settings.items()
        if not baseline and (bases := documented(algorithm, metric, setting))
    }
    of_scenario = any(isinstance(place, Point) for place in settings)
    entries = [
        entry(place, own, metric, Margin.of(rule, place), documents_say.get(place), baseline)
        | ({"digest": settings[place].profile_digest} if of_scenario else {})
        | ({"own_kind": beside[settings[place]].to_json()} if beside else {})
        for place, own in (
            (place, Basis.of(source, [round(value, 4) for value in values[settings[place]]]))
            for place in sorted(settings)
        )
    ]
    named = {key: head[key] for key in ("profile", "profile_digest")}
    found = {
        "$schema": "../../conformance/schemas/zone.json",
        "format": FORMAT,
        **{key: head[key] for key in ("version", "id", "algorithm", "algorithm_version")},
        "metric": metric,
        **({"scenario": profile} if of_scenario else named),
        "margin_rule": rule,
        "references": {
            **head["references"],
            **document_references(
                algorithm, (basis.reference for bases, _ in documents_say.values() for basis in bases)
            ),
        },
        "smoke": _smoke_points(profile, settings) if of_scenario else [],
        "points" if of_scenario else "cells": entries,
    }
    ordered: dict[str, Any] = schema.ordered("zone", found)
    return ordered


def _smoke_points(scenario: str, there: Iterable[Place]) -> list[str]:
    """Return the ids of the points that a scenario's grid `smoke` has, of those that are there."""
    if scenario not in scenarios.files():
        return []
    found: Scenario = scenarios.find(scenario)
    smoke = found.grid(scenarios.SMOKE) if scenarios.SMOKE in found.grids else ()
    return [point.by_name.id for point in smoke if point.by_name in set(there)]


def reference(
    measurements: Sequence[Measurement],
    algorithm: str,
    version_text: str,
    metric: str,
    profile: str,
    name: str,
    beside: Mapping[Setting, OwnKind] | None = None,
) -> tuple[dict[Setting, list[float]], dict[str, Any]]:
    """Return ({setting: values of its trials}, what zone documents of every kind say of where they come from).

    `beside`: see one_run(). Raises UserError where the measurements cannot serve as a reference.
    """
    own = [
        m
        for m in measurements
        if m.trial.scheme.algorithm == algorithm and m.trial.setting.profile == profile and not m.trial.setting.segments
    ]
    if not own:
        trials = [m.trial for m in measurements if not m.trial.setting.segments]
        held = sorted({f"{trial.scheme.algorithm} under {trial.setting.profile}" for trial in trials})
        raise UserError(
            f"no measurements of {algorithm!r} under profile {profile} in these results",
            f"they hold {', '.join(held) or 'none'}",
        )
    first = own[0].trial
    by_setting, about = one_run(own, metric, "our own runs in the virtual room", beside)
    return by_setting, {
        "version": 1,
        "id": f"{algorithm}/{name}",
        "algorithm": algorithm,
        "algorithm_version": version_text,
        "profile": first.setting.profile,
        "profile_digest": first.setting.profile_digest,
        "references": {f"linux-{first.scheme.kernel_release}": about},
    }


def one_run(
    own: Sequence[Measurement], metric: str, what: str, beside: Mapping[Setting, OwnKind] | None = None
) -> tuple[dict[Setting, list[float]], dict[str, Any]]:
    """Return ({setting: values of its trials}, what a document says of such a reference) of trials that may be one.

    `beside`: what the others have beside their own kind in each setting, for a metric against that. Raises UserError
    where they are of unlike runs, too few of a setting, or anything but completed.
    """
    first = own[0].trial.scheme
    kinds = {(m.trial.scheme, _profile_digest(m.trial.setting), m.trial.room, m.trial.lab_digest) for m in own}
    if len(kinds) > 1:
        names = ("build or kernel", "profile", "room", "lab")
        unlike = [name for name, found in zip(names, zip(*kinds, strict=True), strict=True) if len(set(found)) > 1]
        if len({scheme.stack for scheme, *_ in kinds}) > 1:
            unlike[0] = "stack"
        raise UserError(
            f"results hold {len(kinds)} unlike runs of {first.algorithm}: {' and '.join(unlike)} differ",
            "give those of one run, as `conformance gate --out` leaves them",
        )
    values: dict[Setting, list[float]] = collections.defaultdict(list)
    for m in own:
        where = f"{'path' if m.trial.setting.segments else 'cell'} {m.trial.setting.id}"
        if m.outcome is not Outcome.OK:
            raise UserError(f"a reference trial in {where} is {m.outcome}: {m.message}")
        own_kind_mbps = beside[m.trial.setting].mbps if beside else None
        value = METRICS[metric].value(m, own_kind_mbps)
        if value is None:
            raise UserError(f"a reference trial in {where} has no {metric}")
        values[m.trial.setting].append(value)
    few = [setting.id for setting, found in values.items() if len(found) < MIN_TRIALS]
    if few:
        raise UserError(f"{few[0]} has fewer than {MIN_TRIALS} reference trials", "measure it more often")
    return values, {
        "scheme": first.id,
        "stack_version": first.stack_version,
        "kernel_digest": first.kernel_digest,
        "trials": max(len(found) for found in values.values()),
        "what": what,
    }


def _profile_digest(setting: Setting) -> str:
    """Return what settings of one run agree in: of a scenario its name, as each point has a digest of its own."""
    return setting.profile_digest if setting.network is None else setting.profile


def document_references(algorithm: str, named: Iterable[str]) -> dict[str, Any]:
    """Return what a zone says of documents among the references that are `named`: {name: about}."""
    used = set(named)
    limit = {
        _BURST_LIMIT: {
            "scheme": f"{algorithm}/RFC 9002",
            "trials": PLAYED_TRIALS,
            "what": "the most that may be sent at once without pacing, in each transfer: the initial window"
            " (section 7.7; RFC 6928)",
        }
    }
    by_name = {_called(name): name for name in played.CONTROLLERS}
    return {name: about for name, about in limit.items() if name in used} | {
        name: {
            "scheme": f"{algorithm}/{by_name[name]}",
            "trials": PLAYED_TRIALS,
            "what": f"transfers that follow {by_name[name]} alone, each packet lost by chance",
        }
        for name in sorted(used & set(by_name))
    }


def entry(
    place: Place, own: Basis, metric: str, margin: Margin, said: tuple[tuple[Basis, ...], float] | None,
    counts_all: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return a cell or a point as a zone has it: what follows from the reference, and from what documents say."""
    bases = (own, *said[0]) if said else (own,)
    low, high = interval(bases, metric, margin)
    permitted = Interval(low=low, high=high, bases=bases, margin=margin)
    counted = counts_all or not own.values or tells_enough(permitted, metric)
    return {
        **({"point": place.to_json()} if isinstance(place, Point) else place.to_json()),
        "low": low,
        "high": high,
        **({} if counted else {"counted": False}),
        **({"small_packets": said[1]} if said and said[1] != 1.0 else {}),
        "bases": [_basis(basis) for basis in bases],
    }


def _basis(basis: Basis) -> dict[str, Any]:
    if basis.values:
        return {"reference": basis.reference, "values": list(basis.values)}
    return {name: getattr(basis, name) for name in ("reference", "n", "median", "min", "max")}


def tells_enough(permitted: Interval, metric: str) -> bool:
    """Say whether a cell tells power.MUST_TELL on either side, in the largest of usual sessions.

    Where a smaller value is no fault and a document allows far more than the reference does, that makes the interval
    wide, and not chance: such a cell still tells a stack that does more than the document allows.
    """
    if METRICS[metric].only_above and len(permitted.bases) > 1:
        return True
    return power.told(permitted, metric, power.TRIALS, verdict.level(power.QUESTIONS)).enough


def derive_file(
    results: pathlib.Path,
    algorithm: str,
    version_text: str,
    target: pathlib.Path,
    metric: str = UTILIZATION.name,
    profile: str = "atc25",
) -> Zone:
    """Write the zone document derived from a results file, without smoke cells; returns the Zone."""
    return write(derive(store.read(results), algorithm, version_text, metric, profile, target.stem), target)


def write(document: Mapping[str, Any], target: pathlib.Path) -> Zone:
    schema.check("zone", document, target)
    found = zone.from_json(document, target)
    files.write(target, dumps({**document, "version": version(found, target)}))
    return found


def version(derived: Permits[Any], target: pathlib.Path) -> int:
    """Return the version of a zone just derived: one more than that of the file it replaces, if it permits others."""
    try:
        before: Permits[Any] = documents.any_zone(target)
        number = int(json.loads(target.read_text(encoding="utf-8"))["version"])
    except (UserError, OSError):
        return 1
    return number + any(zone.differing(before, derived))


def dumps(document: Mapping[str, Any]) -> str:
    """Return the zone as text: one line for each cell or point, so that a difference between versions reads well."""
    (name,) = {"cells", "points"} & set(document)
    head = {key: value for key, value in document.items() if key != name}
    text = json.dumps(head, indent=2, ensure_ascii=False)
    entries = ",\n".join(f"    {json.dumps(entry, ensure_ascii=False)}" for entry in document[name])
    return f'{text[:-2]},\n  "{name}": [\n{entries}\n  ]\n}}\n'

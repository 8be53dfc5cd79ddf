"""Play the document's stack and its deviations in the networks of clauses, without guests: clauses/plays.json.

    python tests/record_plays.py [--program FILE] [NAMES ...]

NAMES are deviations (adapters/document/src/deviations.txt), or `honest` for none; by default all, in ten minutes.
A change that moves no play needs `honest` alone, as that writes the digest of the sources anew, too.
The program is the built adapter's, or --program. Clauses judge the packets of a play as they judge those of a guest; a
network with a slow way back is left out. Kept is the median of three seeds, of deviations where it differs.
"""

import contextlib
import dataclasses
import json
import statistics
import subprocess

import click
import numpy

from conformance.catalogue import clauses, deviations, likely_faults
from conformance.catalogue.deviation_record import HONEST
from conformance.commands import document_play
from conformance.model.captures import states
from conformance.model.captures.packets import CE, ECT_0, LOST, Packets
from conformance.model.clauses.seen import Invisible, View, until
from conformance.model.networks.schedule import Occasion, resolved
from conformance.support import files

ALGORITHM, SEEDS, DIGITS = "bbrv3", (1, 2, 3), 4
DRAFT = clauses.first_for(ALGORITHM)
#: for ever, and of so many packets one, so that an impairment acts once
LONG_S, ONCE = 1e6, 1e9
BULK_BYTES = 1e9
#: a policer's bucket where a scenario names none; frames; an acknowledgement, and a request
BUCKET_BYTES, FRAME_BYTES, ACK_BYTES, REQUEST_BYTES = 15000, 1514, 80, 200


class NotPlayed(Exception):
    """Raised if a play has no such network."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Play:
    """A deviation in a clause's network."""

    program: str
    called: str
    setting: object
    seed: int

    def view(self):
        """Return what a play shows to clauses. Raises Invisible, NotPlayed."""
        network, triggered = self.setting.network, {}
        if network.states:
            flow = self._view((), {}).flow
            for state in network.states:
                at_s = getattr(states, state)(flow)
                if at_s is None:
                    raise Invisible(f"{state} never came")
                triggered[state] = at_s + self.rtt_s / 2
        return self._view(network.schedule, triggered)

    @property
    def rtt_s(self):
        return self.setting.network.rtt_s(self.setting.network.tested)

    def _view(self, schedule, triggered):
        path = [*self._path(), *self._changes(schedule, triggered)]
        flow = self.setting.network.flows[0]
        writes = self._writes(path) if flow.requests else [(0.0, self._bytes())]
        ends = [f"seconds={flow.seconds}"] if flow.seconds else []
        captured, outcome = self._run([*path, *ends, *(f"write={at}:{size}" for at, size in writes)])
        packets = _packets(captured, [at + 1.5 * self.rtt_s for at, _ in writes])
        began_s = packets.began_ns / 1e9
        ended_s = outcome["completion_s"] or flow.seconds
        if ended_s:
            packets = until(packets, ended_s - began_s)
        return View(
            packets=packets, setting=self.setting, algorithm=ALGORITHM,
            requests=tuple((at + self.rtt_s - began_s, int(size)) for at, size in writes) if flow.requests else (),
            triggered=triggered, ended_s=ended_s and ended_s - began_s,
        )  # fmt: skip

    def _bytes(self):
        network, flow = self.setting.network, self.setting.network.flows[0]
        return network.links[0].data.rate_mbps * 1e6 / 8 * flow.seconds_at_rate if flow.seconds_at_rate else BULK_BYTES

    def _writes(self, path):
        """Return (when, bytes) of each body: at its time, or once the one before it is there, and after its pause."""
        writes, at_s = [], 0.0
        for request in self.setting.network.flows[0].requests:
            for _ in range(request.times):
                writes.append((at_s, request.bytes))
                if request.every_s:
                    at_s += request.every_s
                    continue
                _, outcome = self._run([*path, *(f"write={at}:{size}" for at, size in writes)])
                if outcome["completion_s"] is None:
                    return writes
                at_s = max(outcome["completion_s"] - self.rtt_s / 2 + request.pause_s, at_s + 1e-4)
        return writes

    def _path(self):
        """Yield the words for the network before anything changes."""
        data, acks = self.setting.network.links[0].data, self.setting.network.links[0].acks
        if acks.rate_mbps and acks.rate_mbps < data.rate_mbps:
            raise NotPlayed
        queue, bdp_bytes = data.queue, data.rate_mbps * 1e6 / 8 * self.rtt_s
        yield from (f"rate_mbps={data.rate_mbps}", f"rtt_ms={self.rtt_s * 1e3}")
        if queue.kind == "policer":
            yield f"police={data.burst_bytes or BUCKET_BYTES}"
        else:
            of = {"bytes": 1, None: FRAME_BYTES if queue.kind == "pfifo" else bdp_bytes}
            yield f"queue=bytes:{queue.size * of[queue.unit]}"
        if acks.impairments and acks.impairments.slots:
            yield f"slot={acks.impairments.slots.every_ms / 1e3}:0"

    def _changes(self, schedule, triggered):
        """Yield the words for what changes."""
        data = self.setting.network.links[0].data
        began = {state: (at_s, self.rtt_s) for state, at_s in triggered.items()}
        for entry in resolved(schedule, began):
            assert not isinstance(entry.at_s, Occasion)
            forward = entry.direction != "backward"
            until_s = LONG_S if entry.for_s is None else entry.at_s + entry.for_s
            for field, new in entry.set:
                if field == "rate_mbps" and forward:
                    yield f"rate={entry.at_s}:{new}"
                    yield from (f"rate={until_s}:{data.rate_mbps}" for _ in range(until_s < LONG_S))
                elif field == "delay_ms" and forward:
                    yield f"delay={entry.at_s}:{new - data.delay_ms}"
                elif field == "loss_pct" and forward:  # evenly
                    yield f"drop={entry.at_s}:{until_s}:{new}:100" if new != 15 else f"drop={entry.at_s}:{until_s}:3:20"
                elif field == "impairments":
                    yield from _impaired(new, forward, entry.at_s, until_s)
                else:
                    raise NotPlayed

    def _run(self, words):
        lines = subprocess.run(
            [self.program, "play", f"called={self.called}", f"seeds={self.seed}:{self.seed}", "packets=1", *words],
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        return [json.loads(line) for line in lines]


def _impaired(impairments, forward, from_s, until_s):
    """Yield the words for impairments."""
    if impairments.mark_pct:
        yield f"mark={from_s}:{until_s}:{impairments.mark_pct}:100"
    if impairments.slots:
        yield f"slot={impairments.slots.every_ms / 1e3}:{from_s}"
    for chosen, word, by in (
        (impairments.lose, "drop" if forward else "ack_drop", ""),
        (impairments.hold, "late", impairments.hold and f":{impairments.hold.by_ms / 1e3}"),
    ):
        if chosen:
            some, of = (chosen.of, chosen.every) if chosen.every else (chosen.count, ONCE)
            yield f"{word}={from_s}:{until_s}:{some}:{of}{by}"


def _packets(captured, asked_s):
    """Return a play's packets. `asked_s`: when requests come."""
    rows = numpy.array(captured["packets"])
    began_s = rows[0, 0]

    def since(times_s):
        return numpy.round((numpy.asarray(times_s) - began_s) * 1e9).astype(numpy.int64)

    came = sorted([(at, ACK_BYTES) for at in captured["acks"]] + [(at, REQUEST_BYTES) for at in asked_s])
    ect = numpy.full(len(rows), ECT_0, dtype=numpy.int64)
    return Packets(
        began_ns=round(began_s * 1e9), sent_ns=since(rows[:, 0]), bytes=rows[:, 1].astype(numpy.int64),
        out_ns=numpy.where(rows[:, 2] < 0, LOST, since(rows[:, 2])),
        ecn_sent=ect, ecn_out=numpy.where(rows[:, 3] > 0, CE, ect),
        client_ns=since([at for at, _ in came]),
        client_bytes=numpy.array([size for _, size in came], dtype=numpy.int64),
    )  # fmt: skip


def played(program, name, seed):
    """Return {clause: what it measures of a play} of a deviation, without clauses to which nothing is visible."""
    called = ALGORITHM if name == HONEST else f"{ALGORITHM}+{name}"
    by_network = {}
    for clause in DRAFT.clauses:
        by_network.setdefault(clause.network, []).append(clause)
    measured = {}
    for network, of_network in by_network.items():
        try:
            view = Play(program=program, called=called, setting=clauses.setting(network), seed=seed).view()
        except (Invisible, NotPlayed):
            continue
        for clause in of_network:
            with contextlib.suppress(Invisible):
                measured[clause.id] = clause.observable.value(clause.observable.samples(view))
    return measured


def medians(of_seeds):
    """Return {clause: median} of {clause: what it measured}, one for each seed; without those that most do not show."""
    amounts = {
        clause.id: [of_seed[clause.id] for of_seed in of_seeds if clause.id in of_seed] for clause in DRAFT.clauses
    }
    return {
        of: round(statistics.median(shown), DIGITS) for of, shown in amounts.items() if 2 * len(shown) > len(of_seeds)
    }


def write(plays):
    """Write the record, a line for each deviation, as deviations.txt lists them."""
    ids = [clause.id for clause in DRAFT.clauses]
    honest = plays[HONEST]
    rows = []
    for name in (HONEST, *deviations.load()):
        differs = {of: plays[name].get(of) for of in ids if name == HONEST or plays[name].get(of) != honest.get(of)}
        kept = {of: amount for of, amount in differs.items() if amount is not None or of in honest}
        rows.append(f"    {json.dumps(name)}: {json.dumps(kept)}")
    head = f'{{\n  "$schema": "../conformance/schemas/clause-plays.json",\n  "of": "{likely_faults.digest()}",\n'
    files.write(likely_faults.path(), head + '  "plays": {\n' + ",\n".join(rows) + "\n  }\n}\n", files.OTHER_FOLDER)


@click.command(help=__doc__)
@click.argument("names", nargs=-1)
@click.option("--program")
def main(names, program):
    program = program or str(document_play.program())
    names = names or [HONEST, *deviations.load()]
    plays = dict(likely_faults.plays()) if likely_faults.path().exists() else {}
    plays |= {name: medians([played(program, name, seed) for seed in SEEDS]) for name in names}
    write(plays)


if __name__ == "__main__":
    main()

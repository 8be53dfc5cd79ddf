"""The golden trials: what the lab measured when its version was last raised, and their replay.

Each golden is a trial of another kind. RECORDED holds, for each, the result line without wall times, and digests of the
captured packets if it is traced. A golden cannot be compared if it needs a kernel or a stack that this machine lacks or
has in another build: it is skipped, and the reason is given.
"""

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import pathlib
import struct
import threading

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.engine import benches
from conformance.lab import version
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.networks.proxy import Proxy
from conformance.model.networks.scenario import Scenario

#: what may be built anew, and then has another digest
BUILT = ("kernel", "stack")
RECORDED = pathlib.Path(__file__).with_name("trials.jsonl")
_PATH = (Cell(10, 20, 0), Cell(10, 5, 1))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Golden:
    """One trial to be made: `seed` of `setting`, by `algorithm` of `stack` on the guest kernel `kernel`."""

    name: str
    algorithm: str
    setting: object
    stack: str = "linux-tcp"
    kernel: str = "default"
    seed: int = 1
    traced: bool = False


def _atc25(*cell, **overrides):
    return documents.profile("atc25", Cell(*cell), **overrides)


def _shared(name, flows, *links, **more):
    """Return the Setting of flows that share links, which a scenario's document with these entries describes."""
    about = {"title": "a golden", "timeout_s": 60, "sysctls": dict(_atc25(10, 20, 0).sysctls)}
    scenario = Scenario.from_json({"name": name, "flows": flows, "links": links, **about, **more})
    return scenario.setting(scenario.point({}))


def _link(name="bottleneck", ends=("left", "right"), **data):
    data = {"rate_mbps": 10, "delay_ms": 10, "queue": {"kind": "bfifo", "size": 1}, **data}
    return {"name": name, "ends": list(ends), "data": data, "acks": {"delay_ms": data["delay_ms"]}}


def _kernels(name, **about):
    return {"name": name, "sender": "kernel", "algorithm": "cubic", **about}


_CHANGE = {"link": "bottleneck", "direction": "forward", "set": {"rate_mbps": 5}}
_BOND = {
    "does": "bond",
    "ends": ["phone", "site"],
    "links": ["one", "two"],
    "options": {"batch": 20, "split_pct": [50, 50], "duplicate": False, "reorder_ms": 100, "cost_ms": 1},
}
#: some of the impairments that conformance/load/hop.c offers, for a link
_IMPAIRED = {"reorder": {"share_pct": 2, "by_packets": 5}, "duplicate_pct": 1, "jitter_ms": 2}

GOLDENS = (
    Golden(name="tcp-cubic", algorithm="cubic", setting=_atc25(10, 20, 0)),
    Golden(name="tcp-cubic-loss", algorithm="cubic", setting=_atc25(20, 40, 1), seed=7),
    Golden(name="tcp-reno-loss", algorithm="reno", setting=_atc25(50, 1, 2)),
    Golden(name="tcp-bbrv1-loss", algorithm="bbrv1", setting=_atc25(10, 60, 3)),
    Golden(name="tcp-timeout", algorithm="cubic", setting=dataclasses.replace(_atc25(10, 20, 1), timeout_s=5)),
    Golden(name="tcp-unsupported", algorithm="bbrv3", setting=_atc25(10, 20, 0, transfer_s=1)),
    Golden(name="tcp-fq-codel", algorithm="cubic", setting=_atc25(10, 20, 0, queue="fq_codel", offload=False)),
    Golden(name="tcp-policer", algorithm="bbrv1", setting=_atc25(10, 20, 0, queue="policer", transfer_s=5)),
    Golden(name="tcp-short", algorithm="cubic", setting=documents.profile("startup", Cell(50, 40, 0))),
    Golden(name="tcp-identify", algorithm="bbrv1", setting=documents.profile("identify", Cell(10, 50, 1))),
    Golden(name="tcp-sawtooth", algorithm="reno", setting=documents.profile("sawtooth", Cell(10, 20, 0))),
    Golden(name="tcp-rival", algorithm="reno", setting=documents.profile("competing", Cell(10, 20, 0))),
    Golden(name="tcp-path", algorithm="cubic", setting=documents.path("atc25", _PATH)),
    Golden(name="tcp-path-split", algorithm="cubic", setting=documents.path("atc25", _PATH, Proxy())),
    Golden(
        name="tcp-path-split-options",
        algorithm="reno",
        setting=documents.path(
            "atc25", _PATH, Proxy(to_client="cubic", back_pressure_bytes=200_000), queue_sized_by="segment"
        ),
    ),
    Golden(name="tcp-traced", algorithm="cubic", setting=_atc25(10, 20, 1, transfer_s=2), traced=True),
    Golden(name="quic-cubic", algorithm="cubic", stack="ngtcp2", setting=documents.profile("packets", Cell(10, 20, 0))),
    Golden(
        name="quic-cubic-loss",
        algorithm="cubic",
        stack="ngtcp2",
        setting=documents.profile("packets", Cell(20, 40, 1)),
        seed=3,
    ),
    # BBR draws random numbers, which the adapter makes repeatable.
    Golden(
        name="quic-bbrv2-loss",
        algorithm="bbrv2",
        stack="ngtcp2",
        setting=documents.profile("packets", Cell(20, 40, 1)),
        seed=3,
    ),
    Golden(
        name="quic-rival", algorithm="reno", stack="ngtcp2", setting=documents.profile("competing", Cell(10, 20, 0))
    ),
    Golden(name="tcp-pacing", algorithm="cubic", setting=documents.profile("pacing", Cell(10, 20, 0), transfer_s=2)),
    Golden(
        name="tcp-kept-packets",
        algorithm="reno",
        setting=dataclasses.replace(_shared("kept", [{"name": "test", "bytes": 200_000}], _link()), packets=True),
    ),
    Golden(
        name="shared-flows",
        algorithm="cubic",
        setting=_shared(
            "flows",
            [{"name": "test", "seconds": 3}, _kernels("others", count=3, start={"spread_s": 0.2}, seconds=2)],
            _link(queue={"kind": "fq_codel"}),
            schedule=[{"at_s": 1, **_CHANGE}],
        ),
    ),
    Golden(
        name="shared-requests",
        algorithm="cubic",
        setting=_shared(
            "requests",
            [
                {"name": "test", "requests": [{"bytes": 300_000, "pause_s": 0.5}, {"bytes": 100_000}]},
                _kernels("others", requests=[{"bytes": 100_000}, {"bytes": 200_000}]),
            ],
            _link(),
        ),
    ),
    Golden(
        name="shared-two-passes",
        algorithm="cubic",
        setting=_shared(
            "passes",
            [{"name": "test", "seconds": 3}],
            _link(queue={"kind": "bfifo", "size": 2}),
            schedule=[{"at_s": {"state": "start_up_ends"}, **_CHANGE}],
        ),
    ),
    Golden(
        name="shared-impaired",
        algorithm="cubic",
        setting=_shared("impaired", [{"name": "test", "seconds": 2}], _link(impairments=_IMPAIRED)),
    ),
    Golden(
        name="shared-bond",
        algorithm="cubic",
        setting=_shared(
            "bond",
            [{"name": "test", "ends": ["phone", "site"], "bytes": 2_000_000}],
            _link("one", ["near-one", "far-one"]),
            _link("two", ["near-two", "far-two"], delay_ms=15),
            boxes=[_BOND],
        ),
    ),
    Golden(
        name="quic-requests-impaired",
        algorithm="cubic",
        stack="ngtcp2",
        setting=_shared(
            "requests",
            [{"name": "test", "requests": [{"bytes": 300_000}, {"bytes": 100_000}]}],
            _link(impairments=_IMPAIRED),
        ),
    ),
    Golden(name="tcp-cubic-6.12", algorithm="cubic", kernel="6.12", setting=_atc25(10, 20, 1)),
    Golden(
        name="quic-cubic-6.12",
        algorithm="cubic",
        stack="ngtcp2",
        kernel="6.12",
        setting=documents.profile("packets", Cell(10, 20, 1)),
    ),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replay:
    """The replay of one golden: the line that was measured, or why none could be."""

    golden: Golden
    line: dict | None = None
    why_not: str | None = None


def replay(goldens=GOLDENS, workers=2):
    """Yield a Replay of each golden, in order; `workers` guests run side by side."""
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        yield from pool.map(_replay, goldens)


def _replay(golden):
    try:
        bench = benches.find(benches.Choice(stack=golden.stack, kernel=golden.kernel))
    except UserError as error:
        return Replay(golden=golden, why_not=str(error))
    trials = bench.trials(golden.algorithm, golden.setting, [golden.seed])
    place = bench.place(golden.algorithm)
    if not golden.traced:
        (measurement,) = place.room.run(bench.adapter, [trials], threading.Event())
        return Replay(golden=golden, line=_line(measurement))
    with contextlib.closing(trace.take(place.kernel, bench.adapter, [trials], "packets")) as traces:
        measurement, captured, folder = next(traces)
        packets = {
            name: {"frames": frames, "digest": _packets_digest((folder / f"{name}.pcap").read_bytes())}
            for name, (frames, _) in captured.items()
        }
    return Replay(golden=golden, line={**_line(measurement), "captured": packets})


def _packets_digest(data):
    """Return a digest of packets' times since the first, sizes, and headers up to TCP's checksum.

    Ports and sequence numbers are left out: the client's port and the time of the first packet depend on what ran
    before the trial, and sequence numbers begin by the clock (RFC 6528). Other bytes depend on this machine's
    certificates.
    """
    record, at, total, first_ns = struct.Struct("<IIII"), 24, hashlib.sha256(), None
    while at < len(data):
        seconds, nanoseconds, kept, length = record.unpack_from(data, at)
        sent_ns = seconds * 10**9 + nanoseconds
        first_ns = sent_ns if first_ns is None else first_ns
        total.update(struct.pack("<QII", sent_ns - first_ns, kept, length))
        frame = data[at + record.size : at + record.size + min(kept, 50)]
        total.update(frame[:34] + frame[46:])
        at += record.size + kept
    return total.hexdigest()


def _line(measurement):
    """Return a result line without its key and lab version, which depend on the version, and without wall times."""
    data = measurement.to_json()
    del data["key"], data["host"], data["trial"]["lab_digest"]
    # Turn tuples into lists, because a replay is compared with lines that were read from JSON.
    return json.loads(json.dumps(data))


def recorded():
    """Return {golden's name: its recorded line}, which is empty if nothing was recorded."""
    if not RECORDED.exists():
        return {}
    lines = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return {line.pop("golden"): line for line in lines}


def record(replays):
    """Write the lines of these replays, and keep those of goldens that could not be replayed here."""
    kept = recorded()
    kept.update((replayed.golden.name, replayed.line) for replayed in replays if replayed.line)
    lines = [
        json.dumps({"golden": golden.name, **kept[golden.name]}, sort_keys=True) + "\n"
        for golden in GOLDENS
        if golden.name in kept
    ]
    RECORDED.write_text("".join(lines), encoding="utf-8")


def obstacle(line, before):
    """Return why two lines of one golden cannot be compared (they are of different builds), or None if they can."""
    for what in BUILT:
        was, now = (of["trial"]["scheme"][f"{what}_digest"] for of in (before, line))
        if was != now:
            return f"recorded with another build of the {what} ({was}, here {now})"
    return None


def as_built(line, before, rebuilt):
    """Return a recorded line with the digests of the replay, for those of BUILT that are `rebuilt`."""
    digests = {f"{what}_digest": line["trial"]["scheme"][f"{what}_digest"] for what in rebuilt}
    return {**before, "trial": {**before["trial"], "scheme": {**before["trial"]["scheme"], **digests}}}


def first_difference(before, now, pointer=""):
    """Return (JSON pointer, value before, value now) of the first difference of two documents, or None."""
    if type(before) is not type(now):
        return pointer, before, now
    if isinstance(before, dict):
        for key in sorted(before.keys() | now.keys()):
            if key not in before or key not in now:
                return f"{pointer}/{key}", before.get(key, "nothing"), now.get(key, "nothing")
            if found := first_difference(before[key], now[key], f"{pointer}/{key}"):
                return found
        return None
    if isinstance(before, list):
        for at, (one, other) in enumerate(zip(before, now, strict=False)):
            if found := first_difference(one, other, f"{pointer}/{at}"):
                return found
        return None if len(before) == len(now) else (f"{pointer}/length", len(before), len(now))
    return None if before == now else (pointer, before, now)


def attested():
    """Return whether the present sources are attested to the present version."""
    return version.lab_version() == version.current_version()

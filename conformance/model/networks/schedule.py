"""Describe a schedule of changes to a network during a trial, and compute how it changes each direction of a link.

An entry holds from its time on, or for a while. If several hold at the same time, the one that began last takes effect,
and if they began together, the later one in the document. A trace begins once, and not again with each of its rates. A
field that an entry does not name is as it would be without the entry.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError, located
from conformance.model.networks import rate_trace
from conformance.model.networks.links import Direction, Link
from conformance.model.networks.rate_trace import RateTrace
from conformance.model.records import Sparse

#: directions as a document names them -> as a Link does
WAYS: Mapping[str, tuple[str, ...]] = {"forward": ("data",), "backward": ("acks",), "both": ("data", "acks")}
#: the states that a schedule may wait for; states.py finds them in packets
STATES: Mapping[str, str] = {
    "request": "the sender has been asked for the transfer",
    "first_loss": "the sender can know of its first loss",
    "start_up_ends": "delivery stops growing, or a loss makes the flight fall",
    "drain": "after a round trip that filled the path, less is sent in one than the path carries",
    "probe_up": "after start-up, more is sent in a round trip than the bottleneck carries",
    "probe_down": "after it has probed, less is sent in a round trip than the bottleneck carries",
    "cruise": "after start-up, as much is sent as is delivered for four round trips, and half of the link is used",
    "probe_rtt": "after start-up, without a loss, the flight falls far below what the path carries for 150 ms",
}
#: queues whose size can change while packets stand in them
RESIZED = ("bfifo", "pfifo", "fq_codel", "codel", "pie")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Occasion(Sparse):
    """When a state of the tested group's first flow begins (model/captures/states.py), plus seconds and round trips."""

    state: str
    plus_s: float = 0
    plus_rtts: float = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry(Sparse):
    """Fields of a Direction (`set`) or rates (`trace`) that hold from `at_s` on, for `for_s` seconds or to the end."""

    at_s: float | Occasion
    link: str
    direction: str = "both"
    set: tuple[tuple[str, Any], ...] = ()
    trace: RateTrace | None = None
    for_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        document = super().to_json()
        if self.set:
            document["set"] = {
                name: value.to_json() if hasattr(value, "to_json") else value for name, value in self.set
            }
        return document

    def on(self, link: str, way: str) -> bool:
        """Return whether the entry is about this direction of a link."""
        return link == self.link and way in WAYS[self.direction]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the Entry of a document whose traces have been read, or of what to_json() wrote. Raises UserError."""
        fields, trace = data.get("set", {}), data.get("trace")
        return cls(
            **{
                **data,
                "at_s": cls.read("at_s", data["at_s"]),
                "set": tuple(sorted((name, Direction.read(name, content)) for name, content in fields.items())),
                "trace": None if trace is None else rate_trace.read(trace, _unread),
            }
        )


def _unread(file: str) -> bytes:
    raise UserError(f"{file} was not read", "give the scenario as a file")


def with_traces(document: Mapping[str, Any], load: Callable[[str], bytes]) -> dict[str, Any]:
    """Return a scenario's document with the rates of its traces in it. Raises UserError with a JSON pointer."""
    whole = dict(document)
    if "schedule" in whole:
        entries = []
        for at, entry in enumerate(whole["schedule"]):
            if "trace" in entry:
                with located(f"/schedule/{at}/trace"):
                    entry = {**entry, "trace": rate_trace.read(entry["trace"], load).to_json()}
            entries.append(entry)
        whole["schedule"] = entries
    return whole


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A direction of a link as it is from `at_ns` of a trial on, and as it was `before`."""

    at_ns: int
    direction: Direction
    before: Direction


def changes(schedule: Sequence[Entry], link: Link, way: str, until_s: float) -> list[Change]:
    """Return the changes of a link's direction before `until_s`, in order, without those that wait for a state."""
    begin: list[tuple[int, tuple[int, int], dict[str, Any]]] = []
    ends: dict[int, list[tuple[int, int]]] = {}
    for entry in schedule:
        if entry.on(link.name, way) and not isinstance(entry.at_s, Occasion):
            for start_s, end_s, fields in _spans(entry, entry.at_s, until_s):
                if start_s >= until_s:
                    continue
                # All steps of a trace began with their entry, so what began after it takes effect while it holds.
                rank = (_ns(entry.at_s), len(begin))
                begin.append((_ns(start_s), rank, fields))
                if end_s < until_s:
                    ends.setdefault(_ns(end_s), []).append(rank)
    waiting = sorted(begin, key=lambda span: span[:2])
    active: dict[tuple[int, int], dict[str, Any]] = {}
    base = now = link.direction(way)
    steps, at = [], 0
    for at_ns in sorted({span[0] for span in begin} | ends.keys()):
        while at < len(waiting) and waiting[at][0] <= at_ns:
            active[waiting[at][1]] = waiting[at][2]
            at += 1
        for rank in ends.get(at_ns, ()):
            active.pop(rank, None)
        fields = {name: value for _, set_to in sorted(active.items()) for name, value in set_to.items()}
        after = dataclasses.replace(base, **fields)
        if after != now:
            steps.append(Change(at_ns=at_ns, direction=after, before=now))
            now = after
    return steps


def waiting_changes(schedule: Sequence[Entry], link: Link, way: str, at_s: float) -> Iterator[Change]:
    """Yield the first change by each entry that waits for a state, as if it came alone, at `at_s`."""
    for entry in schedule:
        if isinstance(entry.at_s, Occasion):
            lasts_s = len(entry.trace.rates_mbps) * entry.trace.step_s if entry.trace else 1
            yield from changes((dataclasses.replace(entry, at_s=at_s),), link, way, at_s + lasts_s)[:1]


def carried_bytes(direction: Direction, changes: Sequence[Change], start_s: float, end_s: float) -> float:
    """Return how many bytes a direction's rate carries from one time to another."""
    total, at_s, rate = 0.0, start_s, direction.rate_mbps or 0
    for change in changes:
        change_s = min(max(change.at_ns / 1e9, start_s), end_s)
        total += (change_s - at_s) * rate
        at_s, rate = change_s, change.direction.rate_mbps or 0
    return (total + (end_s - at_s) * rate) * 1e6 / 8


def _spans(entry: Entry, at_s: float, until_s: float) -> Iterator[tuple[float, float, dict[str, Any]]]:
    """Yield (from, until, fields of a Direction) of an entry."""
    end_s = until_s if entry.for_s is None else min(at_s + entry.for_s, until_s)
    if entry.trace is None:
        yield at_s, end_s, dict(entry.set)
    else:
        yield from ((a, b, {"rate_mbps": rate}) for a, b, rate in entry.trace.steps(at_s, end_s))


def _ns(seconds: float) -> int:
    return round(seconds * 1e9)


def is_held(schedule: Sequence[Entry], link: str, way: str) -> bool:
    """Return whether the rate of a link's direction is ever 0, so that its packets wait in the queue."""
    return any(
        dict(entry.set).get("rate_mbps") == 0 or (entry.trace is not None and 0 in entry.trace.rates_mbps)
        for entry in schedule
        if entry.on(link, way)
    )


def highest_mbps(schedule: Sequence[Entry], link: Link, way: str) -> float | None:
    """Return the highest rate that a link's direction ever has; None if nothing limits it."""
    rates = [link.direction(way).rate_mbps]
    for entry in schedule:
        if entry.on(link.name, way):
            rates += [dict(entry.set).get("rate_mbps"), *(entry.trace.rates_mbps if entry.trace else ())]
    return max((rate for rate in rates if rate is not None), default=None)


def is_impaired(schedule: Sequence[Entry], link: Link, way: str) -> bool:
    """Return whether a link's direction ever has impairments."""
    return link.direction(way).impairments is not None or any(
        "impairments" in dict(entry.set) for entry in schedule if entry.on(link.name, way)
    )


def changes_delay(schedule: Sequence[Entry], link: str, way: str) -> bool:
    """Return whether the delay or the loss of a link's direction ever changes."""
    return any({"delay_ms", "loss_pct"} & dict(entry.set).keys() for entry in schedule if entry.on(link, way))


def problems(schedule: Sequence[Entry], links: Sequence[Link], end_s: float) -> Iterator[tuple[str, str]]:
    """Yield (JSON pointer, what is wrong) of a schedule of a trial that ends at `end_s` at the latest."""
    known = {link.name: link for link in links}
    for at, entry in enumerate(schedule):
        where = f"/schedule/{at}"
        if entry.link not in known:
            yield f"{where}/link", f"there is no link {entry.link!r}; choose {', '.join(known)}"
            continue
        if bool(entry.set) == (entry.trace is not None):
            yield f"{where}/set", "it must say what changes; give either set or trace"
        if isinstance(entry.at_s, Occasion):
            if entry.at_s.state not in STATES:
                yield f"{where}/at_s/state", f"state {entry.at_s.state!r} is not known; choose {', '.join(STATES)}"
        elif entry.at_s >= end_s:
            yield (
                f"{where}/at_s",
                f"it takes effect at {entry.at_s:g} s, but the trial ends by {end_s:g} s; give an earlier time",
            )
        for way in WAYS[entry.direction]:
            wrong = list(_wrong(entry, known[entry.link].direction(way)))
            yield from ((f"{where}{place}", why) for place, why in wrong)
            if wrong:
                break  # the other direction has the same mistakes


def _wrong(entry: Entry, direction: Direction) -> Iterator[tuple[str, str]]:
    """Yield (JSON pointer from the entry, what is wrong) for what an entry does to a direction."""
    fields = dict(entry.set)
    sets_rate = entry.trace is not None or "rate_mbps" in fields
    place = "/trace" if entry.trace is not None else "/set/rate_mbps"
    kind = direction.queue.kind if direction.queue else None
    if sets_rate and direction.rate_mbps is None:
        yield place, "the link has no rate that could change; give it rate_mbps"
        return
    if sets_rate and kind == "policer":
        yield place, "the rate of a policer cannot change; use a bfifo"
    if sets_rate and direction.limiter == "tbf":
        yield place, "the rate of a tbf cannot change; use htb"
    if is_held((entry,), entry.link, WAYS[entry.direction][0]) and (direction.limiter, kind) != ("htb", "bfifo"):
        yield place, "a rate of 0 needs a bfifo before htb to hold packets; use these, or a rate of 0.1 or more"
    queue = fields.get("queue")
    if queue is not None:
        if queue.kind != kind or queue.kind not in RESIZED or queue.size is None:
            yield "/set/queue", f"only the size of a queue can change, of {', '.join(RESIZED)}; give its kind and size"
        elif direction.limiter != "htb":
            yield "/set/queue", "the size of a queue can change only before htb; leave it out"
        if direction.queue and dataclasses.replace(queue, size=None, unit=None) != dataclasses.replace(
            direction.queue, size=None, unit=None
        ):
            yield "/set/queue", "only the size of a queue can change; leave the rest as it is"
    if not math.isclose(fields.get("delay_ms", 0), 0) and direction.delay_packets is not None:
        yield "/set/delay_ms", "a delay that holds a bounded number of packets cannot change; leave out delay_packets"
    changed = dataclasses.replace(direction, **{k: v for k, v in fields.items() if k != "rate_mbps"})
    for where, why in changed.problems():
        if where.split("/")[1] in fields:
            yield f"/set{where}", why


def resolved(schedule: Sequence[Entry], times: Mapping[str, tuple[float, float]]) -> tuple[Entry, ...]:
    """Return a schedule whose states are replaced by times: {state: (when it began in s, round trip in s)}."""
    entries = []
    for entry in schedule:
        if isinstance(entry.at_s, Occasion):
            began_s, rtt_s = times[entry.at_s.state]
            at_s = round(began_s + entry.at_s.plus_s + entry.at_s.plus_rtts * rtt_s, 9)
            entries.append(dataclasses.replace(entry, at_s=at_s))
        else:
            entries.append(entry)
    return tuple(entries)


def states(schedule: Sequence[Entry]) -> tuple[str, ...]:
    """Return the states that a schedule waits for."""
    return tuple(dict.fromkeys(entry.at_s.state for entry in schedule if isinstance(entry.at_s, Occasion)))

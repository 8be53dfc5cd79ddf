"""A network that flows share, as a scenario comes to at a point: links, groups of flows, what their hosts are set to.

Each record says what it is in JSON, without what is as usual: a field that comes later changes no digest of today's.
Mistakes are named by the JSON pointer of their place in the scenario's document, whose form the records share.
"""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.digest import sparse
from conformance.model.errors import UserError
from conformance.model.flow_group import Flows, Request, Start

#: what limits a link's rate, by tc's names
LIMITERS = ("htb", "tbf", "netem")
#: queue disciplines -> the units that their size may have, the first where none is given; none: no size
QUEUES: Mapping[str, tuple[str, ...]] = {
    "bfifo": ("bdp", "bytes"),
    "pfifo": ("packets",),
    "red": (),
    "fq_codel": ("packets",),
    "codel": ("packets",),
    "pie": ("packets",),
    "cake": (),
    "policer": (),
}
#: those that must have a size
_SIZED = ("bfifo", "pfifo")
#: those that mark what ECN allows, instead of dropping it, where they are told to; cake always does
_MARKING = ("fq_codel", "codel", "pie", "cake")
#: those that mark from a fixed delay on
_THRESHOLD = ("fq_codel", "codel")
_SYSCTL = re.compile(r"net\.(ipv4|ipv6|core)\.[a-z0-9_.]+\Z")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,19}\Z")
MOST_FLOWS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Queue:
    """What stands before a limiter: a discipline and its size; "bdp": of the path at the link's rate (Network.bdp).

    `ecn`: it marks instead of dropping; None is the kernel's default. `ce_threshold_us`: it marks what stood longer.
    `rtt_ms`: the round-trip time that a BDP is counted with, None for that of the first group of flows.
    """

    kind: str
    size: float | None = None
    unit: str | None = None
    ecn: bool | None = None
    ce_threshold_us: float | None = None
    rtt_ms: float | None = None

    def to_json(self) -> dict[str, Any]:
        return sparse(self)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from here, what is wrong)."""
        units = QUEUES.get(self.kind)
        if units is None:
            yield "/kind", f"queue {self.kind!r} is not known; choose one of {', '.join(QUEUES)}"
            return
        if self.size is None and self.kind in _SIZED:
            yield "/size", f"a {self.kind} has a size, in {' or '.join(units)}"
        if self.size is not None and not units:
            yield "/size", f"a {self.kind} takes no size"
        if self.unit is not None and self.unit not in units:
            yield "/unit", f"the size of a {self.kind} is in {' or '.join(units) or 'nothing'}"
        if self.in_packets and self.size is not None and not float(self.size).is_integer():
            yield "/size", "packets come whole"
        if self.ecn is not None and self.kind not in _MARKING:
            yield "/ecn", f"a {self.kind} does not mark; choose one of {', '.join(_MARKING)}"
        if self.ce_threshold_us is not None and self.kind not in _THRESHOLD:
            yield "/ce_threshold_us", f"a {self.kind} has no threshold; choose {' or '.join(_THRESHOLD)}"

    @property
    def in_packets(self) -> bool:
        return self._unit == "packets"

    @property
    def in_bdp(self) -> bool:
        return self._unit == "bdp"

    @property
    def _unit(self) -> str | None:
        return self.unit or next(iter(QUEUES.get(self.kind, ())), None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Direction:
    """What one direction of a link does: delay and random loss, then a limiter with its queue where it has a rate.

    `burst_bytes`: of a tbf. `delay_packets`: how many the delay holds at most, None for no bound. `slot_ms`: packets
    are held and leave together, so long after the slot before (netem's slot); None: each when it is due.
    """

    rate_mbps: float | None = None
    delay_ms: float = 0
    loss_pct: float = 0
    limiter: str = "htb"
    burst_bytes: int | None = None
    queue: Queue | None = None
    delay_packets: int | None = None
    slot_ms: float | None = None

    def to_json(self) -> dict[str, Any]:
        return sparse(self)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (JSON pointer from here, what is wrong)."""
        if self.limiter not in LIMITERS:
            yield "/limiter", f"limiter {self.limiter!r} is not known; choose one of {', '.join(LIMITERS)}"
        if self.rate_mbps is None:
            for name, value in (("queue", self.queue), ("burst_bytes", self.burst_bytes)):
                if value is not None:
                    yield f"/{name}", "without a rate nothing queues; give rate_mbps"
        elif self.limiter == "netem":
            if self.queue is None or self.queue.kind != "pfifo":
                yield "/queue", "netem's own queue is a pfifo, which delayed packets stand in, too; give its size"
        elif self.queue is None:
            yield "/queue", 'a rate needs a queue; give one, such as {"kind": "bfifo", "size": 1}'
        if self.rate_mbps is not None and self.delay_packets is not None:
            yield "/delay_packets", "it would count what stands in the queue, too; give the delay a link of its own"
        if self.rate_mbps is not None and self.slot_ms is not None:
            yield "/slot_ms", "slots would hold up what the limiter sends; give them a link of their own"
        if self.queue is not None:
            yield from ((f"/queue{where}", why) for where, why in self.queue.problems())
            if self.queue.kind == "policer" and self.limiter != "htb":
                yield "/limiter", "a policer stands on htb"
        if (self.burst_bytes is not None) != (self.limiter == "tbf"):
            yield "/burst_bytes", "a tbf has a burst, and nothing else has"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """A link between two nodes, the client's side first: `data` goes to the client, `acks` to the server."""

    name: str
    ends: tuple[str, str]
    data: Direction
    acks: Direction

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "ends": list(self.ends), "data": self.data.to_json(), "acks": self.acks.to_json()}

    @property
    def directions(self) -> tuple[tuple[str, Direction], ...]:
        return (("data", self.data), ("acks", self.acks))

    def direction(self, name: str) -> Direction:
        """Return the direction "data" or "acks"."""
        return self.data if name == "data" else self.acks


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network:
    """Links, groups of flows, and what all hosts have in common. Raises UserError, with the JSON pointer."""

    links: tuple[Link, ...]
    flows: tuple[Flows, ...]
    offload: bool = False
    #: whether the first sender's link is captured, to see how many packets leave at once
    bursts: bool = False
    sysctls: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for where, why in self._problems():
            cause, _, mend = why.partition("; ")
            raise UserError(f"{where}: {cause}", mend or None)

    def _problems(self) -> Iterator[tuple[str, str]]:
        for kind, names in (("links", [x.name for x in self.links]), ("flows", [x.name for x in self.flows])):
            if not names:
                yield f"/{kind}", "there must be one at least"
            for at, name in enumerate(names):
                if not _NAME.match(name):
                    yield f"/{kind}/{at}/name", f"{name!r} is no name: 1 to 20 of a to z, 0 to 9 and -"
                if name in names[:at]:
                    yield f"/{kind}/{at}/name", f"there are two called {name}"
        for at, link in enumerate(self.links):
            for name, direction in link.directions:
                yield from ((f"/links/{at}/{name}{where}", why) for where, why in direction.problems())
            if self._closes_a_loop(at):
                yield f"/links/{at}/ends", "links form a loop; only one way may lead from a node to another"
        for at, group in enumerate(self.flows):
            yield from ((f"/flows/{at}{where}", why) for where, why in group.problems())
            if group.ends[0] == group.ends[1] or not self.route(group):
                yield f"/flows/{at}/ends", f"no links lead from {group.ends[1]} to {group.ends[0]}"
        if sum(group.count for group in self.flows) > MOST_FLOWS:
            yield "/flows", f"there are more than {MOST_FLOWS} flows"
        crossed = {link.name for group in self.flows for link in self.route(group)}
        for at, link in enumerate(self.links):
            if link.name not in crossed:
                yield f"/links/{at}", f"no flow crosses link {link.name}; leave it out, or give flows that do"
        if not any(group.judged for group in self.flows):
            yield "/flows", "no group is judged"
        for name, _ in self.sysctls:
            if not _SYSCTL.match(name):
                yield f"/sysctls/{name}", "it is not one of the network's; names begin with net."

    def _closes_a_loop(self, at: int) -> bool:
        one, other = self.links[at].ends
        return one == other or _way(self.links[:at], one, other) is not None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that links end at, in the order of links."""
        return tuple(dict.fromkeys(end for link in self.links for end in link.ends))

    def route(self, group: Flows) -> tuple[Link, ...]:
        """Return the links that a group crosses, from receiver to sender; none where there is no way."""
        return _way(self.links, *group.ends) or ()

    def towards_client(self, group: Flows) -> tuple[tuple[Link, str], ...]:
        """Return (link, "data" or "acks") that a group's data go through, in order from the sender."""
        found, at = [], group.ends[1]
        for link in reversed(self.route(group)):
            name = "data" if link.ends[1] == at else "acks"
            at = link.ends[0] if name == "data" else link.ends[1]
            found.append((link, name))
        return tuple(found)

    def rtt_s(self, group: Flows) -> float:
        """Return the round-trip time of an empty path: the delays of its links both ways, and its own."""
        ms = math.fsum(link.data.delay_ms + link.acks.delay_ms for link in self.route(group))
        return (ms + group.extra_delay_ms) / 1000

    def bottleneck(self, group: Flows) -> tuple[Link, str] | None:
        """Return the slowest (link, direction) of a group's data, of equals the first; None where nothing limits it."""
        limits = [(link, name) for link, name in self.towards_client(group) if link.direction(name).rate_mbps]
        return min(limits, key=lambda one: one[0].direction(one[1]).rate_mbps or 0, default=None)

    def rate_mbps(self, group: Flows) -> float | None:
        """Return the rate of a group's bottleneck; None where nothing limits it."""
        found = self.bottleneck(group)
        return None if found is None else found[0].direction(found[1]).rate_mbps

    @property
    def tested(self) -> Flows:
        """The group that a result is about where none is named: the first that is judged."""
        return next(group for group in self.flows if group.judged)

    def bdp_bytes(self, direction: Direction) -> float:
        """Return the bandwidth-delay product that sizes a direction's queue."""
        rtt_s = self.rtt_s(self.flows[0])
        if direction.queue is not None and direction.queue.rtt_ms is not None:
            rtt_s = direction.queue.rtt_ms / 1000
        return (direction.rate_mbps or 0) * 1e6 / 8 * rtt_s

    def transfer_bytes(self, group: Flows) -> int | None:
        """Return how many bytes each flow of a group has to send; None where the clock ends it."""
        if group.total_bytes is not None:
            return group.total_bytes
        rate = self.rate_mbps(group)
        if group.seconds_at_rate is None or rate is None:
            return None
        return math.floor(group.seconds_at_rate * 1e6 * rate / 8)

    def to_json(self) -> dict[str, Any]:
        found = {
            **sparse(self),
            "links": [x.to_json() for x in self.links],
            "flows": [x.to_json() for x in self.flows],
        }
        return {**found, "sysctls": dict(self.sysctls)} if self.sysctls else found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the Network of a document, of a scenario or as to_json() wrote it. Raises UserError."""
        links = tuple(_link(one) for one in data["links"])
        ends = (links[0].ends[0], links[-1].ends[1]) if links else ("", "")
        return cls(
            links=links,
            flows=tuple(_flows(one, ends) for one in data["flows"]),
            offload=data.get("offload", False),
            bursts=data.get("bursts", False),
            sysctls=tuple(sorted(data.get("sysctls", {}).items())),
        )


def _way(links: Sequence[Link], start: str, target: str) -> tuple[Link, ...] | None:
    """Return the links on the way from one node to another; None where there is none."""
    if start == target:
        return ()
    for at, link in enumerate(links):
        if start in link.ends:
            beyond = link.ends[1] if link.ends[0] == start else link.ends[0]
            rest = _way((*links[:at], *links[at + 1 :]), beyond, target)
            if rest is not None:
                return (link, *rest)
    return None


def _direction(data: Mapping[str, Any]) -> Direction:
    queue = data.get("queue")
    return Direction(**{**data, "queue": None if queue is None else Queue(**queue)})


def _link(data: Mapping[str, Any]) -> Link:
    acks = data.get("acks", data["data"])
    one, other = data["ends"]
    return Link(name=data["name"], ends=(one, other), data=_direction(data["data"]), acks=_direction(acks))


def _flows(data: Mapping[str, Any], ends: tuple[str, str]) -> Flows:
    one, other = data.get("ends", ends)
    requests = tuple(Request(**request) for request in data.get("requests", ()))
    start = Start(**data.get("start", {}))
    return Flows(**{**data, "ends": (one, other), "start": start, "requests": requests})

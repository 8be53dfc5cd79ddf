"""Describe the network of a scenario at a point: links, groups of flows, and what their hosts are set to.

Each record's JSON leaves out fields that have their default value, so a field that is added later changes no digest. It
has the form of a scenario's document, so errors name the JSON pointer of a mistake in that document.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError, located
from conformance.model.networks import schedule as schedules
from conformance.model.networks.bond import Bond
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.impairments import Impairments
from conformance.model.networks.links import WAYS, Direction, Link
from conformance.model.networks.proxy import Splitter
from conformance.model.networks.schedule import Entry
from conformance.model.records import Sparse

_SYSCTL = re.compile(r"net\.(ipv4|ipv6|core)\.[a-z0-9_.]+\Z")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,19}\Z")
MOST_FLOWS = 1000


#: fields that a document has as to_json() writes them
_AS_THEY_ARE = ("offload", "bursts", "bond", "splitters", "delivery", "round_trips")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Network(Sparse):
    """Links, groups of flows, and what all hosts have in common. Raises UserError with a mistake's JSON pointer."""

    links: tuple[Link, ...]
    flows: tuple[Flows, ...]
    offload: bool = False
    #: whether the first sender's link is captured, to see how many packets leave at once
    bursts: bool = False
    sysctls: tuple[tuple[str, str], ...] = ()
    #: what changes while a trial runs
    schedule: tuple[Entry, ...] = ()
    #: a box that bonds two of the links, or none
    bond: Bond | None = None
    #: splitters, each at a node between links
    splitters: tuple[Splitter, ...] = ()
    #: whether trials record when the bytes of the tested group's first flow arrive, and how late (delivery.py)
    delivery: bool = False
    #: whether the program that watches each queue also measures round trips of data packets (conformance/load/trips.c)
    round_trips: bool = False

    def __post_init__(self) -> None:
        for where, why in self._problems():
            cause, _, mend = why.partition("; ")
            raise UserError(f"{where}: {cause}", mend or None)

    def _problems(self) -> Iterator[tuple[str, str]]:
        for kind, names in (("links", [x.name for x in self.links]), ("flows", [x.name for x in self.flows])):
            if not names:
                yield f"/{kind}", "there must be at least one"
            for at, name in enumerate(names):
                if not _NAME.match(name):
                    yield f"/{kind}/{at}/name", f"{name!r} is not a valid name; give 1 to 20 of a to z, 0 to 9 and -"
                if name in names[:at]:
                    yield f"/{kind}/{at}/name", f"two {kind} are called {name}"
        for at, link in enumerate(self.links):
            for name, direction in link.directions:
                yield from ((f"/links/{at}/{name}{where}", why) for where, why in direction.problems())
            if self._closes_a_loop(at):
                yield f"/links/{at}/ends", "links form a loop; only one way may lead from a node to another"
        if self.bond is not None:
            yield from ((f"/boxes/0{where}", why) for where, why in self.bond.problems(self.links))
            if self.offload:
                yield "/offload", "a bond deals single packets; leave out offload"
        yield from self._splitter_problems()
        for at, group in enumerate(self.flows):
            yield from ((f"/flows/{at}{where}", why) for where, why in group.problems())
            if group.ends[0] == group.ends[1] or not self.route(group):
                yield f"/flows/{at}/ends", f"no links lead from {group.ends[1]} to {group.ends[0]}"
        if self.round_trips and self.offload:
            yield "/offload", "round trips are those of single packets; leave out offload"
        if sum(group.count for group in self.flows) > MOST_FLOWS:
            yield "/flows", f"there are more than {MOST_FLOWS} flows"
        crossed = {link.name for group in self.flows for link in self.route(group)}
        for at, link in enumerate(self.links):
            if link.name not in crossed:
                yield f"/links/{at}", f"no flow crosses link {link.name}; leave it out, or give flows that do"
        if not any(group.judged for group in self.flows):
            yield "/flows", "no group is judged"
        if self.flows and not any(group.has_end for group in self.flows):
            yield "/flows", "no flow ever ends; give one group bytes, seconds, seconds_at_rate or requests"
        for name, _ in self.sysctls:
            if not _SYSCTL.match(name):
                yield f"/sysctls/{name}", "it is not a network sysctl; names begin with net."

        yield from schedules.problems(self.schedule, self.links, self.latest_end_s)
        for at, link in enumerate(self.links):
            for way, _ in link.directions:
                if self.offload and schedules.is_impaired(self.schedule, link, way):
                    yield f"/links/{at}/{way}/impairments", "impairments strike single packets; leave out offload"
            data, acks = ({each.rebind for each in self.impairments(link, way)} - {None} for way, _ in link.directions)
            if data != acks:
                yield f"/links/{at}", "a client is rebound in both directions of a link at once; leave direction out"

    def _splitter_problems(self) -> Iterator[tuple[str, str]]:
        for at, splitter in enumerate(self.splitters):
            if splitter.node in [other.node for other in self.splitters[:at]]:
                yield "/boxes", f"there are two splitters at {splitter.node}; leave one of them out"
            elif not any(splitter in self.splitters_of(group) for group in self.flows):
                yield "/boxes", f"no flow crosses {splitter.node}; put the splitter between two links of a flow"
        if self.splitters and self.bond is not None:
            yield "/boxes", "a bond and splitters do not go together; leave one of them out"
        for at, group in enumerate(self.flows):
            if self.splitters_of(group) and any(way != "data" for _, way in self.towards_client(group)):
                yield f"/flows/{at}/ends", "a split flow must go in its links' direction; name its client's end first"

    @property
    def latest_end_s(self) -> float:
        """When the last flow ends, in s, if the clock ends them all; else infinity."""
        ends = [group.end_s for group in self.flows if group.has_end]
        return max((math.inf if end is None else end for end in ends), default=math.inf)

    def changes(self, link: Link, way: str, until_s: float) -> list[schedules.Change]:
        """Return the changes of a link's direction before `until_s`, in order."""
        return schedules.changes(self.schedule, link, way, until_s)

    def waiting_changes(self, link: Link, way: str, at_s: float) -> Iterator[schedules.Change]:
        """Yield changes of a link's direction that wait for states, as if each came alone, at `at_s`."""
        return schedules.waiting_changes(self.schedule, link, way, at_s)

    def impaired(self, link: Link) -> tuple[bool, bool]:
        """Return whether impairments ever strike a link's data, and whether they ever strike its acks."""
        return (
            schedules.is_impaired(self.schedule, link, "data"),
            schedules.is_impaired(self.schedule, link, "acks"),
        )

    def interferes(self, group: Flows) -> bool:
        """Return whether any link of a group's route is in the schedule, or ever has impairments."""
        scheduled = {entry.link for entry in self.schedule}
        return any(link.name in scheduled or any(self.impaired(link)) for link in self.route(group))

    def impairments(self, link: Link, way: str) -> tuple[Impairments, ...]:
        """Return the impairments that a link's direction has at any time, each once."""
        first = link.direction(way).impairments
        later = [dict(entry.set).get("impairments") for entry in self.schedule if entry.on(link.name, way)]
        return tuple(dict.fromkeys(each for each in (first, *later) if each is not None))

    def held(self, link: Link, way: str) -> bool:
        """Return whether the rate of a link's direction is ever 0."""
        return schedules.is_held(self.schedule, link.name, way)

    def changes_delay(self, link: Link, way: str) -> bool:
        """Return whether the delay or the loss of a link's direction ever changes."""
        return schedules.changes_delay(self.schedule, link.name, way)

    @property
    def states(self) -> tuple[str, ...]:
        """The states that its schedule waits for; a first pass finds their times."""
        return schedules.states(self.schedule)

    def at(self, times: Mapping[str, tuple[float, float]]) -> Self:
        """Return the same network with times in place of states: {state: (when it began in s, round trip in s)}."""
        return dataclasses.replace(self, schedule=schedules.resolved(self.schedule, times))

    def _closes_a_loop(self, at: int) -> bool:
        near, far = self.links[at].ends
        return near == far or _way(self.links[:at], near, far) is not None

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that links end at, in the order of links."""
        return tuple(dict.fromkeys(end for link in self.links for end in link.ends))

    def route(self, group: Flows) -> tuple[Link, ...]:
        """Return the links that a group crosses, from receiver to sender; none if no links lead there.

        The two links of a bond are side by side.
        """
        if self.is_bonded(group) and self.bond is not None:
            return self.bond.of(self.links)
        return _way(self.links, *group.ends) or ()

    def splitters_of(self, group: Flows) -> tuple[Splitter, ...]:
        """Return the splitters that a group crosses, from receiver to sender."""
        by_node = {splitter.node: splitter for splitter in self.splitters}
        return tuple(by_node[node] for node in self._between(group) if node in by_node)

    def sections(self, group: Flows) -> tuple[tuple[Link, ...], ...]:
        """Return the links of each of a group's connections, from receiver to sender. A splitter adds a connection."""
        nodes = [splitter.node for splitter in self.splitters_of(group)]
        sections: list[list[Link]] = [[]]
        for link, node in itertools.zip_longest(self.route(group), self._between(group)):
            sections[-1].append(link)
            if node in nodes:
                sections.append([])
        return tuple(tuple(section) for section in sections)

    def _between(self, group: Flows) -> tuple[str, ...]:
        """Return the nodes where the links of a group's route meet, from receiver to sender."""
        if self.is_bonded(group):
            return ()
        nodes, at = [], group.ends[0]
        for link in self.route(group)[:-1]:
            at = link.ends[1] if link.ends[0] == at else link.ends[0]
            nodes.append(at)
        return tuple(nodes)

    def is_bonded(self, group: Flows) -> bool:
        """Return whether a group's data go through the bond."""
        return self.bond is not None and group.ends == self.bond.ends

    def towards_client(self, group: Flows) -> tuple[tuple[Link, str], ...]:
        """Return each (link, "data" or "acks") that a group's data go through, in order from the sender."""
        if self.is_bonded(group):
            return tuple((link, "data") for link in self.route(group))
        ways, at = [], group.ends[1]
        for link in reversed(self.route(group)):
            name = "data" if link.ends[1] == at else "acks"
            at = link.ends[0] if name == "data" else link.ends[1]
            ways.append((link, name))
        return tuple(ways)

    def towards_server(self, group: Flows) -> tuple[tuple[Link, str], ...]:
        """Return each (link, "data" or "acks") that acknowledgements of a group's data go through."""
        ways = self.towards_client(group)[: 1 if self.is_bonded(group) else None]
        return tuple((link, "acks" if way == "data" else "data") for link, way in reversed(ways))

    def rtt_s(self, group: Flows) -> float:
        """Return the round-trip time of a group's empty path: its links' delays both ways, and its extra delay."""
        if self.is_bonded(group) and self.bond is not None:
            return self.bond.rtt_s(self.links) + group.extra_delay_ms / 1000
        ms = math.fsum(link.data.delay_ms + link.acks.delay_ms for link in self.route(group))
        return (ms + group.extra_delay_ms) / 1000

    def back_s(self, group: Flows) -> float:
        """Return how much of rtt_s() acknowledgements take. A bond's two sides hold data alone."""
        ms = math.fsum(link.direction(way).delay_ms for link, way in self.towards_server(group))
        return (ms + group.extra_delay_ms) / 1000

    def least_rtt_ms(self, group: Flows, until_s: float) -> float:
        """Return the least round-trip time of a sender's connection before `until_s`, in ms: the sum of least delays.

        That connection leads to the receiver, or to the first splitter. Through a bond, data take the shorter link.
        """
        links = self.route(group) if self.is_bonded(group) else self.sections(group)[-1]
        data, acks = ([self._least_ms(link, way, until_s) for link in links] for way in WAYS)
        if self.bond is not None and self.is_bonded(group):
            return group.extra_delay_ms + min(data) + acks[0] + 2 * self.bond.cost_ms
        return group.extra_delay_ms + math.fsum([*data, *acks])

    def _least_ms(self, link: Link, way: str, until_s: float) -> float:
        changed = (change.direction.delay_ms for change in self.changes(link, way, until_s))
        return min((link.direction(way).delay_ms, *changed))

    def bottleneck(self, group: Flows) -> tuple[Link, str] | None:
        """Return the slowest (link, direction) that a group's data cross; None if nothing limits them.

        Ties go to the link nearest the sender.
        """
        limits = [(link, name) for link, name in self.towards_client(group) if link.direction(name).rate_mbps]
        return min(limits, key=lambda limit: limit[0].direction(limit[1]).rate_mbps or 0, default=None)

    def rate_mbps(self, group: Flows) -> float | None:
        """Return the rate of a group's bottleneck, or of its bond; None if nothing limits it."""
        if self.is_bonded(group) and self.bond is not None:
            return self.bond.rate_mbps(self.links)
        bottleneck = self.bottleneck(group)
        return None if bottleneck is None else bottleneck[0].direction(bottleneck[1]).rate_mbps

    def bound_mbps(self, group: Flows) -> float | None:
        """Return the highest rate that a group can get: its bottleneck's, or what its bond sustains with its split."""
        if self.is_bonded(group) and self.bond is not None:
            return self.bond.bound_mbps(self.links)
        return self.rate_mbps(group)

    def loss_pct(self, group: Flows) -> float:
        """Return the percentage of a group's data that is lost at random on its route."""
        if self.is_bonded(group) and self.bond is not None:
            return self.bond.loss_pct(self.links)
        kept = math.prod(1 - link.direction(way).loss_pct / 100 for link, way in self.towards_client(group))
        return 100 * (1 - kept)

    def highest_of(self, link: Link, way: str) -> float | None:
        """Return the highest rate that a link's direction ever has; None if nothing limits it."""
        return schedules.highest_mbps(self.schedule, link, way)

    def highest_mbps(self, group: Flows) -> float | None:
        """Return the highest rate that a group's route ever carries; None if nothing limits it."""
        each = (self.highest_of(link, way) for link, way in self.towards_client(group))
        known = [rate for rate in each if rate is not None]
        return math.fsum(known) if self.is_bonded(group) else min(known, default=None)

    @property
    def needs_ports(self) -> bool:
        """Whether something happens between a host and the links: a group's own delay, or a look at round trips."""
        return self.round_trips or any(group.extra_delay_ms for group in self.flows)

    @property
    def tested(self) -> Flows:
        """The group that a result is about if none is named: the first that is judged."""
        return next(group for group in self.flows if group.judged)

    def bdp_bytes(self, direction: Direction) -> float:
        """Return the bandwidth-delay product that sizes a direction's queue."""
        rtt_s = self.rtt_s(self.flows[0])
        if direction.queue is not None and direction.queue.rtt_ms is not None:
            rtt_s = direction.queue.rtt_ms / 1000
        return (direction.rate_mbps or 0) * 1e6 / 8 * rtt_s

    def transfer_bytes(self, group: Flows) -> int | None:
        """Return how many bytes each flow of a group has to send; None if the clock ends it."""
        if group.total_bytes is not None:
            return group.total_bytes
        rate = self.rate_mbps(group)
        if group.seconds_at_rate is None or rate is None:
            return None
        return math.floor(group.seconds_at_rate * 1e6 * rate / 8)

    def to_json(self) -> dict[str, Any]:
        document = super().to_json()
        return {**document, "sysctls": dict(self.sysctls)} if self.sysctls else document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the Network of a scenario's document, or of what to_json() wrote. Raises UserError."""
        links = tuple(Link.from_json({"acks": entry["data"], **entry}) for entry in document["links"])
        ends = (links[0].ends[0], links[-1].ends[1]) if links else ("", "")
        return cls(
            links=links,
            flows=tuple(Flows.from_json({"ends": ends, **entry}) for entry in document["flows"]),
            sysctls=tuple(sorted(document.get("sysctls", {}).items())),
            schedule=tuple(_entries(document.get("schedule", ()))),
            **{name: cls.read(name, document[name]) for name in _AS_THEY_ARE if name in document},
        )


def _way(links: Sequence[Link], start: str, target: str) -> tuple[Link, ...] | None:
    """Return the links on the path from one node to another; None if there is no path."""
    if start == target:
        return ()
    for at, link in enumerate(links):
        if start in link.ends:
            beyond = link.ends[1] if link.ends[0] == start else link.ends[0]
            rest = _way((*links[:at], *links[at + 1 :]), beyond, target)
            if rest is not None:
                return (link, *rest)
    return None


def _entries(schedule: Sequence[Mapping[str, Any]]) -> Iterator[Entry]:
    for at, entry in enumerate(schedule):
        with located(f"/schedule/{at}"):
            yield Entry.from_json(entry)

"""What a guest whose flows share a network is asked for, and what such a trial saw: parts of protocol.py's records."""

# Without `from __future__ import annotations`: wire.read() looks at the types of fields.
import dataclasses

from conformance.guest.seen import CongestionControlSeen, ProcessSeen
from conformance.guest.wire import require


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedLink:
    """A link, by its ends, the client's side first. `impaired`: whether data, and acks, pass a program (hop.c)."""

    name: str
    ends: tuple[str, str]
    impaired: tuple[bool, bool]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedBond:
    """A bond: its nodes, the client's side first, its links by their index, and the program's file."""

    ends: tuple[str, str]
    links: tuple[int, int]
    program: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedSplitter:
    """A splitter at a node. `algorithms`: kernel's names of those that it is told to use."""

    node: str
    algorithms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """A group of flows, and the nodes that its receivers and its sender are at.

    `stack`: of the stack under test, each of its `clients` on a host of its own; else of the kernel, with one host for
    all receivers. `ecn`: what the hosts' tcp_ecn is set to, None to leave it. `splitters`: those that it crosses, by
    their index, from receiver to sender.
    """

    name: str
    stack: bool
    clients: int
    ends: tuple[str, str]
    ecn: int | None
    host_queue: str | None
    splitters: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedNetwork:
    """The network of a job. `flows` and the like: files in the scratch folder, programs of conformance/load."""

    links: tuple[SharedLink, ...]
    groups: tuple[Group, ...]
    flows: str
    watch: str
    change: str
    hop: str
    bond: SharedBond | None
    splitter: str
    splitters: tuple[SharedSplitter, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flow:
    """One flow: when it starts, in ns after the trial began, its bytes (0: no end), when it is stopped (0: never)."""

    start_ns: int
    bytes: int
    stop_ns: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupFlows:
    """The flows of a group in a trial. `algorithms`: kernel's names, the first that the kernel has counts.

    `pace`: bytes a second, 0 for no bound. `requests`: lines of CC_REQUESTS (docs/contract.md), one for each request of
    a flow on its connection; none: each asks for one body of its `bytes`, else these are of the largest body.
    """

    algorithms: tuple[str, ...]
    pace: int
    flows: tuple[Flow, ...]
    requests: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """What changes of a link's direction (0 data, 1 acks), in ns after the trial begins.

    `messages`: rtnetlink's, in hexadecimal, without the index of the interface.
    """

    at_ns: int
    link: int
    way: int
    messages: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BondTrial:
    """What a bond does in a trial: of a batch the first packets take the first link, or all take both (copies).

    `timer_ns`: how long what is missing is waited for, 0: not at all. `cost_tc`: the command for the egress {dev} of
    each side that delays each packet by `cost_ns`, none where nothing does.
    """

    batch: int
    first: int
    copies: bool
    timer_ns: int
    cost_ns: int
    cost_tc: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedTrial:
    """A trial: for each link the commands of both directions (data, acks), for each group those of its sender's delay.

    `watch_masks`: for each link's data how seldom its packets are watched (watch.c), None where nothing queues.
    `impairments`: for each link what happens to its data, and acks, in hop.c's words, none where nothing does.
    `trips`: whether watches tell round trips, too.
    `captures`: whether packets of the tested group's first flow are written down, and `tested` is that group;
    `headers`: only the first bytes of each. `splitters`: the options of each.
    """

    seed: int
    tc: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    delay_tc: tuple[tuple[str, ...], ...]
    watch_masks: tuple[int | None, ...]
    trips: bool
    groups: tuple[GroupFlows, ...]
    changes: tuple[Change, ...]
    impairments: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    tested: int
    captures: bool
    headers: bool
    bond: BondTrial | None
    splitters: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class HopProbe:
    """A hop to be tried out: of a link's direction (0 data, 1 acks), with one rule of hop.c.

    `packets` are sent, and none waits longer than `longest_ms`.
    """

    link: int
    way: int
    rule: str
    packets: int
    longest_ms: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class HopSeen:
    """When packets were sent, by number, and number, time and ECN field of those that arrived, in order."""

    sent_ns: tuple[int, ...]
    numbers: tuple[int, ...]
    arrived_ns: tuple[int, ...]
    ecn: tuple[int, ...]

    def __post_init__(self) -> None:
        require(len(self.numbers) == len(self.arrived_ns) == len(self.ecn), "columns of different lengths")
        require(all(0 <= number < len(self.sent_ns) for number in self.numbers), "a packet that was never sent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedCell:
    """Trials of one setting, and how its hops are tried out before."""

    trials: tuple[SharedTrial, ...]
    probes: tuple[HopProbe, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowSeen:
    """A flow as it was seen; times in seconds after the trial began, None where it never came to that.

    `acked_bytes` and what follows are the sender's kernel's words, None where it is not TCP. `arrived_bytes`: at the
    client's interface, headers included, of the stack's flows. `looks`: a table by columns. `requests`: by the kernel's
    flows, of each request that was made its bytes, and when it was made, when its first byte and its last one came.
    """

    start_s: float
    connected_s: float | None
    end_s: float | None
    complete: bool
    acked_bytes: int | None
    sent_bytes: int | None
    retransmitted_bytes: int | None
    out_segments: int | None
    retransmitted_segments: int | None
    marked_segments: int | None
    min_rtt_ms: float | None
    arrived_bytes: int | None
    looks: dict[str, tuple[float | None, ...]]
    client: ProcessSeen | None
    congestion_control: CongestionControlSeen | None
    requests: tuple[tuple[int, float, float | None, float | None], ...] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupSeen:
    """A group's flows, in order, its server where it is the stack's, and the kernel's algorithm of its sender."""

    algorithm: str | None
    server: ProcessSeen | None
    ready: bool
    flows: tuple[FlowSeen, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DirectionSeen:
    """One direction of a link: what the kernel counted of its chain, what stood in its queue, and for how long.

    `looks`: a table by columns, one row each 100 ms. `delays_ms`: quantiles of `delays` packets that were watched, one
    in `watched_one_in`; `unmatched` of them were not seen on both sides of the queue. `hop`: what hop.c counted.
    `trips`: (group, flow, packets, ns in all, least, most) of the round trips of each flow, None where nobody looked.
    """

    qdiscs: tuple[dict[str, object], ...]
    looks: dict[str, tuple[float | None, ...]]
    delays: int | None
    delays_ms: dict[str, float] | None
    watched_one_in: int | None
    unmatched: int | None
    hop: dict[str, int] | None
    trips: tuple[tuple[int, int, int, int, int, int], ...] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CountsSeen:
    """What was in force in a direction of a link behind a change, and had been counted until then (rtnetlink.py)."""

    link: int
    way: int
    out_packets: int | None
    dropped_packets: int | None
    standing_packets: int | None
    queue_dropped_packets: int | None
    delay_ns: int | None
    loss: int | None
    rate_bytes_per_s: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChangeSeen:
    """When a change was due and made, in ns after the trial began, and what the kernel refused it with, or 0.

    `counts`: of the directions that it was of; none where too many changes were made to ask.
    """

    at_ns: int
    done_ns: int
    error: int
    counts: tuple[CountsSeen, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BondSeen:
    """What both programs of a bond counted, what the kernel counted at their interfaces, and what tc shows there.

    `interfaces`: counters by "node:interface".
    """

    split: dict[str, int]
    merge: dict[str, int]
    interfaces: dict[str, dict[str, int]]
    qdiscs: tuple[dict[str, object], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitterSeen:
    """What a splitter counted, `port` being that of the servers whose connections it takes (conformance/proxy)."""

    node: str
    port: int
    connections: int
    refused: int
    resets: int
    bytes_to_client: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedFacts:
    """One trial of flows that share a network. `captured`: frames written down and lost, by side; none unless asked."""

    seed: int
    virtual_s: float
    elapsed_s: float
    timed_out: bool
    system_calls: int | None
    groups: tuple[GroupSeen, ...]
    links: tuple[tuple[DirectionSeen, DirectionSeen], ...]
    changes: tuple[ChangeSeen, ...]
    captured: dict[str, tuple[int, int]]
    bond: BondSeen | None
    splitters: tuple[SplitterSeen, ...]

    def __post_init__(self) -> None:
        require(bool(self.groups) and bool(self.links), "a trial without flows or links")

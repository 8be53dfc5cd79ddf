"""Records of jobs whose flows share a network: what the host requests and what a trial saw (used by protocol.py)."""

# There is no `from __future__ import annotations` here, because wire.read() looks at the types of fields.
import dataclasses

from conformance.guest.seen import (
    BurstsSeen,
    CongestionControlSeen,
    ExchangeSeen,
    InterfaceCounters,
    ProcessSeen,
    Sampled,
    Span,
)
from conformance.guest.wire import require


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedLink:
    """A link and the nodes at its ends, the client's side first. `impaired`: whether data, and acks, pass hop.c."""

    name: str
    ends: tuple[str, str]
    impaired: tuple[bool, bool]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedBond:
    """A bond: the nodes at its ends, the client's side first, the indices of its links, and the program's file."""

    ends: tuple[str, str]
    links: tuple[int, int]
    program: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedSplitter:
    """A splitter at a node. `algorithms`: the kernel's names of the congestion controls that it is told to use."""

    node: str
    algorithms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """A group of flows. `ends`: the nodes of its receivers and of its sender.

    `stack`: whether its flows are of the stack under test, with a host for each of its `clients`; otherwise they are
    the kernel's, with one host for all receivers. `ecn`: the value of tcp_ecn on its hosts, None to leave it unchanged.
    `splitters`: the indices of the splitters that it crosses, from receiver to sender.
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
    """The network of a job.

    `detailed`: whether its trials record in detail (Detail) what happens to the first flow of one group.
    `flows`, `watch`, `change`, `hop` and `splitter` are programs (conformance/load, conformance/proxy), as files in the
    scratch folder.
    """

    links: tuple[SharedLink, ...]
    groups: tuple[Group, ...]
    detailed: bool
    flows: str
    watch: str
    change: str
    hop: str
    bond: SharedBond | None
    splitter: str
    splitters: tuple[SharedSplitter, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flow:
    """One flow: its start and stop in ns after the trial began (stop 0: never), and its bytes (0: without end)."""

    start_ns: int
    bytes: int
    stop_ns: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupFlows:
    """The flows of a group in a trial. `algorithms`: the kernel's names, of which the first that it has is used.

    `pace`: bytes a second, 0 for no bound. `requests`: lines of CC_REQUESTS (docs/contract.md), one for each request of
    a flow on its connection. Without any, each flow requests one body of its `bytes`; otherwise its `bytes` are those
    of the largest body.
    """

    algorithms: tuple[str, ...]
    pace: int
    flows: tuple[Flow, ...]
    requests: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """A change of one direction of a link (`way` 0: data, 1: acks), `at_ns` after the trial begins.

    `messages`: rtnetlink messages in hexadecimal, without the index of the interface.
    """

    at_ns: int
    link: int
    way: int
    messages: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BondTrial:
    """What a bond does in a trial: the `first` packets of each `batch` take the first link, the others the second.

    `copies`: whether all packets take both links instead. `timer_ns`: how long missing packets are waited for, 0 for
    not at all. `cost_tc`: the tc commands that delay each packet by `cost_ns` at the egress {dev} of each side, empty
    if packets are not delayed.
    """

    batch: int
    first: int
    copies: bool
    timer_ns: int
    cost_ns: int
    cost_tc: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detail:
    """What a trial records of its tested flow beside what all trials do (DetailSeen).

    `link`: the index of the bottleneck, whose data's queue is sampled; `rate_mbps`: its rate. `bursts`: how many
    packets the server sends at once. `exchange`: when packets pass the client.
    """

    link: int
    rate_mbps: float
    bursts: bool
    exchange: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedTrial:
    """A trial of flows that share a network.

    `tc`: for each link, the tc commands of both directions (data, acks). `delay_tc`: for each group, the tc commands
    that delay its sender. `watch_masks`: for each link, the mask by which watch.c samples its data packets, None where
    nothing queues. `trips`: whether watches also measure round trips. `impairments`: for each link, hop.c's rules for
    its data and for its acks, empty where nothing is impaired. `captured_bytes`: room for the packets of flow `flow` of
    group `tested` at each end of its path, 0 if they are not captured; `headers`: whether only the first bytes of each
    are kept. `splitters`: the options of each splitter.
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
    flow: int
    captured_bytes: int
    headers: bool
    bond: BondTrial | None
    splitters: tuple[tuple[str, ...], ...]
    detail: Detail | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkProbe:
    """A calibration of a direction of a link (`way` 0: data, 1: acks), with what was requested of it.

    `rate_mbps`: None if its rate is not measured. `rate_packets`: how many packets measure the rate. `pace_mbps`: a
    quarter of this rate is sent to measure the loss.
    """

    link: int
    way: int
    rate_mbps: float | None
    delay_ms: float
    loss_pct: float
    rate_packets: int
    pace_mbps: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class HopProbe:
    """A probe of the hop in a direction of a link (`way` 0: data, 1: acks), with one rule of hop.c.

    `packets`: how many packets are sent. None of them waits longer than `longest_ms`.
    """

    link: int
    way: int
    rule: str
    packets: int
    longest_ms: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class HopSeen:
    """When each packet was sent, by its number; number, time and ECN field of those that arrived, in their order."""

    sent_ns: tuple[int, ...]
    numbers: tuple[int, ...]
    arrived_ns: tuple[int, ...]
    ecn: tuple[int, ...]

    def __post_init__(self) -> None:
        require(len(self.numbers) == len(self.arrived_ns) == len(self.ecn), "columns of different lengths")
        require(all(0 <= number < len(self.sent_ns) for number in self.numbers), "a packet that was never sent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedCell:
    """The trials of one setting, and before them the calibration of its links and the probes of its hops.

    `tc`: for each link, the tc commands of both directions during calibration. `calibrate`: empty if what came of a
    calibration is known.
    """

    tc: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    calibrate: tuple[LinkProbe, ...]
    trials: tuple[SharedTrial, ...]
    probes: tuple[HopProbe, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowSeen:
    """What was seen of a flow. Times are in seconds after the trial began, None if the flow never got that far.

    `acked_bytes` to `min_rtt_ms` are as reported by the sender's kernel, None if it does not run TCP for the flow.
    `arrived_bytes`: bytes that arrived at the client's interface, headers included; only of the stack's flows. `looks`:
    samples, as a table by columns. `requests`, only of the kernel's flows: for each request that was made, its bytes,
    and the times when it was made and when the first and the last byte of its body arrived.
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
    """A group's flows, in order; its server if it is the stack's, otherwise the kernel's algorithm of its sender."""

    algorithm: str | None
    server: ProcessSeen | None
    ready: bool
    flows: tuple[FlowSeen, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DirectionSeen:
    """One direction of a link: the kernel's counters of its qdisc chain, its queue's length, and its queueing delays.

    `looks`: samples, as a table by columns, one row every 100 ms. `delays_ms`: quantiles of the delays of `delays`
    packets that were watched, one in `watched_one_in`; `unmatched` packets were not seen on both sides of the queue.
    `hop`: what hop.c counted. `trips`: (group, flow, packets, total ns, least ns, most ns) of the round trips of each
    flow, None if they were not measured.
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
    """The settings in force in a direction of a link after a change, and its counters by then (rtnetlink.py)."""

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
    """When a change was due and made, in ns after the trial began, and the kernel's error number or 0.

    `counts`: of the directions that were changed; empty if there were too many changes to query each.
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
    """What a splitter (conformance/proxy) counted. `port`: the port of the servers whose connections it takes."""

    node: str
    port: int
    connections: int
    refused: int
    resets: int
    bytes_to_client: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentSeen:
    """The packets and bytes that left a node, headers included, and the TCP segments that its kernel says it sent."""

    packets: int
    bytes: int
    segments: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class DetailSeen:
    """What was seen of the flow that a trial records in detail, and of the whole network meanwhile.

    `half_time`: counters of the client's interfaces when half of the timeout had passed, None if the transfer ended
    before. `bursts` and `exchange`: None if they were not measured.
    """

    half_time: dict[str, InterfaceCounters] | None
    sampled: Sampled
    counters: Span
    bursts: BurstsSeen | None
    exchange: ExchangeSeen | None

    def __post_init__(self) -> None:
        known = self.counters.before.interfaces["client"].keys()
        require(self.half_time is None or self.half_time.keys() == known, "the interfaces differ at half time")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedFacts:
    """The facts of one trial of flows that share a network.

    `elapsed_s` and `timed_out` are of the flow that is recorded in detail, if one is, and of all flows otherwise.
    `captured`: (frames, lost frames) by side, if requested. `sent`: of the servers of the stack's groups, in order, and
    then of the splitters; empty if one flow is recorded in detail. `detail`: None if its server was never ready.
    """

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
    sent: tuple[SentSeen, ...]
    detail: DetailSeen | None

    def __post_init__(self) -> None:
        require(bool(self.groups) and bool(self.links), "a trial without flows or links")

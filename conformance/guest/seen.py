"""Records of what a guest saw of a trial, a link or a probe: the facts that its events (protocol.py) carry."""

# There is no `from __future__ import annotations` here, because wire.read() looks at the types of fields.
import dataclasses

from conformance.guest.wire import require

#: A bound on probe packets, more than any calibration sends: computations take time in proportion to their number.
_MOST_PROBE_PACKETS = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessSeen:
    """A process of a trial. `exit_status` is None while it runs; output is truncated and converted to UTF-8."""

    exit_status: int | None
    ran_out_of_memory: bool
    stdout: str
    stderr: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TcpInfo:
    """A connection's TCP_INFO in the last sample; windows are in segments, as the kernel counts them."""

    mss_bytes: int
    in_flight_segments: int
    rtt_ms: float
    ssthresh_segments: int
    cwnd_segments: int
    retransmitted_segments: int
    bytes_acked: int
    min_rtt_ms: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProxyTcpInfo(TcpInfo):
    """TCP_INFO of the proxy's connection to the client, and its congestion control as the kernel calls it."""

    congestion_control: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class BbrSeen:
    """What the kernel exports about BBR: the size of its record, its version if it has one, and the gains in use."""

    info_bytes: int
    version: int | None
    pacing_gains: tuple[float, ...]
    cwnd_gains: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CongestionControlSeen:
    """The sender's congestion control as its kernel calls it: the last name, and all names that were seen, in order."""

    name: str
    names: tuple[str, ...]
    bbr: BbrSeen | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampled:
    """What was seen while the transfer ran. `trace` is a table by columns. What was not seen is None."""

    trace: dict[str, tuple[float | None, ...]]
    tcp_info: TcpInfo | None
    congestion_control: CongestionControlSeen | None
    proxy: ProxyTcpInfo | None
    queue_mean_bytes: float | None
    queue_peak_bytes: int | None
    queue_peak_packets: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterfaceCounters:
    """The kernel's counters of one interface."""

    rx_bytes: int
    rx_packets: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_dropped: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counters:
    """Counters of all interfaces by node and name, and SNMP counters of the nodes where connections end."""

    interfaces: dict[str, dict[str, InterfaceCounters]]
    client: dict[str, int]
    server: dict[str, int]
    router: dict[str, int] | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
    """Counters before and after a transfer."""

    before: Counters
    after: Counters

    def __post_init__(self) -> None:
        before, after = self.before.interfaces, self.after.interfaces
        names = {node: set(interface_counters) for node, interface_counters in before.items()}
        require(
            names == {node: set(interface_counters) for node, interface_counters in after.items()},
            "the interfaces before and after differ",
        )
        require("client" in names, "the client's counters are missing")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BurstsSeen:
    """The lengths, in packets, of bursts that left the server at once.

    `usual`: 99 % of the packets are in bursts no longer than this. `longest`: the longest burst. `packets`: how many
    packets were examined; `unseen`: how many frames did not fit into the memory for captures.
    """

    usual: int
    longest: int
    packets: int
    unseen: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExchangeSeen:
    """When packets passed the client, in seconds since the first of them; pure acknowledgements do not count.

    `asked_s`: of each packet that the client sent after the server's first one and before the body, its time, and the
    time by which so much had come after it that the body had begun. `whole_s`: the packet with which as many bytes had
    come as the body has. `last_s`: the server's last one.
    """

    asked_s: tuple[tuple[float, float], ...]
    whole_s: float
    last_s: float


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
    """The packets and bytes that left a node, headers included, and what its kernel says of its TCP.

    `segments`: those that it sent. `opened`: how many connections it opened.
    """

    packets: int
    bytes: int
    segments: int
    opened: int


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
class TrialFacts:
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkSeen:
    """What probe packets measured on a link, and what tc shows of it; `rate_mbps` is None if too few arrived."""

    rate_mbps: float | None
    delays_ms: tuple[float, ...]
    loss_sent: int
    loss_lost: int
    qdiscs: tuple[dict[str, object], ...]

    def __post_init__(self) -> None:
        require(0 <= self.loss_lost <= self.loss_sent <= _MOST_PROBE_PACKETS, "more packets lost than were sent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbeFacts:
    """What a stack did when it was misled or interrupted. Fields that a probe does not use are None.

    `ended`: whether the probed process ended in time; `after_s`: after how many seconds. `early`: exit status of a
    client that had ended before it could be interrupted.
    """

    ready: bool
    server: ProcessSeen | None = None
    client: ProcessSeen | None = None
    ended: bool | None = None
    early: int | None = None
    after_s: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisitFacts:
    """How one server answered several clients in a row. What was not tried is None.

    `missing`: the client that requested a body that does not exist. `status_of_dotted`: HTTP status for a path with
    "..". `whole`: the client whose transfer followed one that was interrupted. `side_by_side`: two clients that ran at
    once. `several`: the client that was told to make several requests on one connection; `asked`: these, as lines of
    CC_REQUESTS.
    """

    ready: bool
    missing: ProcessSeen | None = None
    status_of_dotted: int | None = None
    whole: ProcessSeen | None = None
    side_by_side: tuple[ProcessSeen, ...] = ()
    several: ProcessSeen | None = None
    requested: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FramesSeen:
    """How many frames were seen at the bottleneck, and the median of each one's longest run of one repeated byte."""

    frames: int
    median_run: int | None

"""What a guest saw of a trial, a link or a probe: the facts that its events (protocol.py) carry."""

# Without `from __future__ import annotations`: wire.read() looks at the types of fields.
import dataclasses

from conformance.guest.wire import require

#: More probe packets than any calibration sends: what is computed from their number takes time in proportion.
_MOST_PROBE_PACKETS = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProcessSeen:
    """A process of a trial. `exit_status` is None while it runs; output is cut, and made UTF-8."""

    exit_status: int | None
    ran_out_of_memory: bool
    stdout: str
    stderr: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class TcpInfo:
    """A connection's TCP_INFO at the last look; windows in segments, as the kernel counts them."""

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
    """The same of the proxy's connection to the client, with its kernel's congestion control."""

    congestion_control: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class BbrSeen:
    """What the kernel exports of a BBR: the size of its record, its version if it gives one, and the gains in use."""

    info_bytes: int
    version: int | None
    pacing_gains: tuple[float, ...]
    cwnd_gains: tuple[float, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CongestionControlSeen:
    """The sender's congestion control as its kernel calls it: the last name, and all that were seen, in order."""

    name: str
    names: tuple[str, ...]
    bbr: BbrSeen | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampled:
    """What was seen while the transfer ran. `trace` is a table by columns; None where something was not seen."""

    trace: dict[str, tuple[float | None, ...]]
    tcp_info: TcpInfo | None
    congestion_control: CongestionControlSeen | None
    proxy: ProxyTcpInfo | None
    queue_mean_bytes: float | None
    queue_peak_bytes: int | None
    queue_peak_packets: int | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterfaceCounters:
    """What the kernel counted at one interface so far."""

    rx_bytes: int
    rx_packets: int
    rx_dropped: int
    tx_bytes: int
    tx_packets: int
    tx_dropped: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counters:
    """All interfaces by node and name, and the SNMP counters of the nodes where connections end."""

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
        names = {node: set(found) for node, found in before.items()}
        require(names == {node: set(found) for node, found in after.items()}, "other interfaces after than before")
        require("client" in names, "no counters of the client")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BurstsSeen:
    """Packets that left the server at once, in numbers of packets.

    `usual`: 99 % of the packets are in bursts no longer than this. `longest`: of all. `packets`: how many were looked
    at; `unseen`: how many did not fit into the memory for captures.
    """

    usual: int
    longest: int
    packets: int
    unseen: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferSeen:
    """What was seen of a transfer, once the server was ready.

    `half_time`: the client's interfaces when half of the timeout was over, None where it never was. `qdiscs` is what
    tc shows. `system_calls` of the whole guest, None where its kernel does not count them. `captured`: {trace's name:
    (frames, frames that did not fit)} of a traced trial. `bursts`: None where nobody looked.
    """

    timed_out: bool
    elapsed_s: float
    half_time: dict[str, InterfaceCounters] | None
    sampled: Sampled
    system_calls: int | None
    counters: Span
    qdiscs: tuple[dict[str, object], ...]
    proxy: ProcessSeen | None
    captured: dict[str, tuple[int, int]]
    bursts: BurstsSeen | None

    def __post_init__(self) -> None:
        known = self.counters.before.interfaces["client"].keys()
        require(self.half_time is None or self.half_time.keys() == known, "other interfaces at half time than before")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialFacts:
    """One trial, as it was seen; `client` and `transfer` are None where the server never was ready."""

    seed: int
    transfer_bytes: int
    virtual_s: float
    server: ProcessSeen
    client: ProcessSeen | None
    transfer: TransferSeen | None

    def __post_init__(self) -> None:
        require((self.client is None) == (self.transfer is None), "a client without a transfer, or the reverse")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkSeen:
    """What probe packets saw of a link, and what tc shows of it; `rate_mbps` is None where too few arrived."""

    rate_mbps: float | None
    delays_ms: tuple[float, ...]
    loss_sent: int
    loss_lost: int
    qdiscs: tuple[dict[str, object], ...]

    def __post_init__(self) -> None:
        require(0 <= self.loss_lost <= self.loss_sent <= _MOST_PROBE_PACKETS, "more packets lost than were sent")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProbeFacts:
    """What a stack did when it was misled or interrupted; None where a probe has nothing to say on it.

    `ended`: whether the process in question ended in time, and `after_s` after how long. `early`: exit status of a
    client that was done before it could be interrupted.
    """

    ready: bool
    server: ProcessSeen | None = None
    client: ProcessSeen | None = None
    ended: bool | None = None
    early: int | None = None
    after_s: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisitFacts:
    """What one server answered to several clients in a row; None of what was not tried.

    `missing`: the client that asked for a body that is not there. `status_of_dotted`: HTTP status of a path with "..".
    `whole`: the client whose transfer came after another had been broken off. `side_by_side`: two that ran at once.
    `several`: the client that was to ask for what these lines of CC_REQUESTS say, `asked`, on one connection.
    """

    ready: bool
    missing: ProcessSeen | None = None
    status_of_dotted: int | None = None
    whole: ProcessSeen | None = None
    side_by_side: tuple[ProcessSeen, ...] = ()
    several: ProcessSeen | None = None
    asked: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class FramesSeen:
    """Of the frames through the bottleneck: how many, and the median of the longest run of one byte in each."""

    seen: int
    median_run: int | None

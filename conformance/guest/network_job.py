"""Records of networks and of the trials that are made in them, as the host requests them (used by protocol.py)."""

# There is no `from __future__ import annotations` here, because wire.read() looks at the types of fields.
import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinkJob:
    """A link and the nodes at its ends, the client's side first. `impaired`: whether data, and acks, pass hop.c."""

    name: str
    ends: tuple[str, str]
    impaired: tuple[bool, bool]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BondJob:
    """A bond: the nodes at its ends, the client's side first, the indices of its links, and the program's file."""

    ends: tuple[str, str]
    links: tuple[int, int]
    program: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitterJob:
    """A splitter at a node. `algorithms`: the kernel's names of the congestion controls that it is told to use.

    `program`: its file. `ours`: the suite's own program, which drops its privileges and says what it counted.
    """

    node: str
    program: str
    ours: bool
    algorithms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupJob:
    """A group of flows. `ends`: the nodes of its receivers and of its sender.

    `stack`: whether its flows are of the stack under test, with a host for each of its `clients`; otherwise they are
    the kernel's, with one host for all receivers. `ecn`: the value of tcp_ecn on its hosts, None to leave it unchanged.
    `splitters`: the indices of the splitters that it crosses, from receiver to sender. `ports`: how many ports each of
    the stack's clients may connect from.
    """

    name: str
    stack: bool
    clients: int
    ports: int
    ends: tuple[str, str]
    ecn: int | None
    host_queue: str | None
    splitters: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkJob:
    """The network of a job.

    `detailed`: whether its trials record in detail (Detail) what happens to the first flow of one group. `own_ports`:
    whether each host needs a port that is no end of a link, as its sender is delayed there, or round trips are watched.
    `flows`, `watch`, `change` and `hop` are programs (conformance/load), as files in the scratch folder.
    """

    links: tuple[LinkJob, ...]
    groups: tuple[GroupJob, ...]
    detailed: bool
    own_ports: bool
    flows: str
    watch: str
    change: str
    hop: str
    bond: BondJob | None
    splitters: tuple[SplitterJob, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FlowJob:
    """One flow: its start and stop in ns after the trial began (stop 0: never), and its bytes (0: without end)."""

    start_ns: int
    bytes: int
    stop_ns: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupFlows:
    """The flows of a group in a trial. `algorithms`: the kernel's names, of which the first that it has is used.

    `pace`: bytes a second, 0 for no bound. `requests`: lines of CC_REQUESTS (docs/contract.md), one for each request of
    a flow on its connection. Without any, each flow requests one body of its `bytes`; otherwise its `bytes` are those
    of the largest body. `connections`: lines of CC_CONNECTIONS. `variables`: others of the contract's version 3.
    """

    algorithms: tuple[str, ...]
    pace: int
    flows: tuple[FlowJob, ...]
    requests: tuple[str, ...]
    connections: tuple[str, ...]
    variables: dict[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChangeJob:
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
class TrialJob:
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
    changes: tuple[ChangeJob, ...]
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
class CellJob:
    """The trials of one setting, and before them the calibration of its links and the probes of its hops.

    `tc`: for each link, the tc commands of both directions during calibration. `calibrate`: empty if what came of a
    calibration is known.
    """

    tc: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    calibrate: tuple[LinkProbe, ...]
    trials: tuple[TrialJob, ...]
    probes: tuple[HopProbe, ...]

"""Define the messages between host and guest: jobs and cells from the host, events from the guest.

The host writes a Job to SCRATCH/job.json. It feeds cells to the guest one after the other, as it decides on them, in
files: SCRATCH/cell-0.json and so on. The guest waits for the next file, reads and removes it, and ends if it holds
`null`. It appends its events to SCRATCH/out.jsonl, one JSON object a line: the event's name as "event", and its fields.
This module uses the standard library only, as all code in the guest does; wire.py says how strictly messages are read.
"""

# There is no `from __future__ import annotations` here, because wire.read() looks at the types of fields.
import dataclasses
import time

from conformance.guest import wire
from conformance.guest.network_job import CellJob, NetworkJob
from conformance.guest.seen import (
    CongestionControlSeen,
    FramesSeen,
    HopSeen,
    LinkSeen,
    ProbeFacts,
    TrialFacts,
    VisitFacts,
)
from conformance.guest.wire import ProtocolError, require

# --- what the host requests

#: what a traced trial records: the first bytes of its packets, whole packets, or whole packets and the stack's logs
TRACES = ("heads", "packets", "all")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackProgram:
    """A program of the stack under test: its path, the folder that its build filled, and its root folder, if any."""

    path: str
    build_dir: str
    rootfs: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """What resources one program of a stack may use."""

    memory_bytes: int
    file_bytes: int
    processes: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probing:
    """How links are calibrated: how many packets measure each one's loss, and the kernel's seed meanwhile."""

    loss_packets: int
    seed: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """What all cells of one guest have in common.

    `called` is the stack's own name for `algorithm`. `kernel_algorithms` are the kernel's names for it, of which the
    first that the kernel has is used; None if the stack brings its own. `probe`: try out the adapter's contract in each
    cell instead of running trials. `silence_s`: a trial that is recorded in detail ends if no packet comes for so long.
    `trace`: what to record of each trial, one of TRACES. Paths of folders are as the guest sees them.
    """

    algorithm: str
    called: str
    kernel_algorithms: tuple[str, ...] | None
    server: StackProgram
    client: StackProgram
    transport: str
    port: int
    hostname: str
    pki: str
    work_dir: str
    limits: Limits
    ready_timeout_s: float
    timeout_s: float
    silence_s: float
    sysctls: dict[str, str]
    offload: bool
    queue_handle: str
    network: NetworkJob
    probing: Probing
    probe: bool
    trace: str | None

    def __post_init__(self) -> None:
        require(self.transport in ("tcp", "udp"), f"transport {self.transport!r} is neither tcp nor udp")
        require(self.trace in (None, *TRACES), f"trace {self.trace!r} is not one of {', '.join(TRACES)}")


def parse_job(text: str) -> Job:
    """Return the Job of a JSON document. Raises ProtocolError."""
    return wire.read(Job, wire.loads(text))


def cell_file(index: int) -> str:
    """Return the name of the file in which the host feeds a guest the cell with this index."""
    return f"cell-{index}.json"


def parse_cell(text: str) -> CellJob | None:
    """Return the CellJob of a JSON document, or None if it says that no more cells follow. Raises ProtocolError."""
    data = wire.loads(text)
    return None if data is None else wire.read(CellJob, data)


# --- events


def _uptime_s() -> float:
    return round(time.monotonic(), 3)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Stamped:
    """An event, stamped with the guest's uptime when it is created."""

    uptime_s: float = dataclasses.field(default_factory=_uptime_s)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NetworkUp(_Stamped):
    """The network is up, with its settings as read back.

    `sysctls`: {node: {sysctl: value, None if the kernel lacks it}}; `offload`: {"node:interface": {feature: on}}.
    """

    sysctls: dict[str, dict[str, str | None]]
    offload: dict[str, dict[str, bool]]
    kernel: str
    kernel_algorithm: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CongestionControl(_Stamped):
    """The sender's congestion control in the warm-up; None if none was seen."""

    observed: CongestionControlSeen | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellBegins(_Stamped):
    """Work on the cell with this index begins."""

    index: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Calibration(_Stamped):
    """What the links of a cell delivered, in the order of its probes."""

    index: int
    observed: tuple[LinkSeen, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialDone(_Stamped):
    """A trial of a cell was carried out."""

    index: int
    facts: TrialFacts


@dataclasses.dataclass(frozen=True, kw_only=True)
class HopsTried(_Stamped):
    """What the hops of a cell did to packets, in the order of its probes."""

    index: int
    observed: tuple[HopSeen, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialFailed(_Stamped):
    """A trial of a cell could not be carried out, and the stack is not the reason."""

    index: int
    seed: int
    message: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unsupported(_Stamped):
    """No trial of this job can be made, because the kernel lacks the algorithm."""

    message: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probed(_Stamped):
    """One probe of the adapter's contract is over."""

    name: str
    facts: ProbeFacts


@dataclasses.dataclass(frozen=True, kw_only=True)
class TransferProbed(_Stamped):
    """The probe that makes one ordinary transfer is over."""

    facts: TrialFacts
    frames: FramesSeen
    written_outside: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VisitsProbed(_Stamped):
    """The probe in which several clients fetch from one server is over."""

    facts: VisitFacts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fault(_Stamped):
    """The harness itself failed; the guest ends."""

    message: str
    where: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class End(_Stamped):
    """The job is done; the guest ends."""


Event = (
    NetworkUp | CongestionControl | CellBegins | Calibration | TrialDone | TrialFailed | Unsupported | Probed
    | TransferProbed | VisitsProbed | HopsTried | Fault | End
)  # fmt: skip
#: {name on the wire: class}
EVENTS: dict[str, type[Event]] = {
    "network": NetworkUp,
    "congestion_control": CongestionControl,
    "cell": CellBegins,
    "calibration": Calibration,
    "trial": TrialDone,
    "hops": HopsTried,
    "trial_failed": TrialFailed,
    "unsupported": Unsupported,
    "probe": Probed,
    "transfer_probe": TransferProbed,
    "visits_probe": VisitsProbed,
    "fault": Fault,
    "end": End,
}
_NAMES = {kind: name for name, kind in EVENTS.items()}


def event_line(event: Event) -> str:
    """Return an event as one line of JSON, including the newline."""
    return wire.dumps({"event": _NAMES[type(event)], **wire.to_json(event)}) + "\n"


def parse_event(line: str | bytes) -> Event:
    """Return the event on one line. Raises ProtocolError."""
    data = wire.loads(line)
    if not isinstance(data, dict):
        raise ProtocolError("an event is not a JSON object")
    name = data.pop("event", None)
    if not isinstance(name, str) or name not in EVENTS:
        raise ProtocolError(f"unknown event {name!r:.40}")
    return wire.read(EVENTS[name], data)

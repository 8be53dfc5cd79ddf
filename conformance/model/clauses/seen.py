"""What is seen of a trial whose packets were kept: the packets, the flow that they make, and its network."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy

from conformance.model.diagnosis import flow as flows
from conformance.model.diagnosis.flow import Floats, Flow
from conformance.model.diagnosis.samples import Samples, samples
from conformance.model.errors import UserError
from conformance.model.packets import LOST, Packets
from conformance.model.schedule import Entry, Occasion, resolved
from conformance.model.setting import Setting
from conformance.model.trial import Measurement

#: an acknowledgement arrives when what it lets go is sent: by so much earlier, rounding never decides which was first
_KNOWN_FIRST_S = 1e-6


def never_came(measurement: Measurement) -> bool:
    """Return whether a state never came that the schedule waited for: then nothing is wrong, and nothing to be seen."""
    return "never_came" in measurement.evidence


class Event(NamedTuple):
    """When something happens to the path, and until when; the end of the transfer where it lasts."""

    begin_s: float
    end_s: float


class Invisible(Exception):
    """A trial does not show what is asked of it; says why, as the end of a sentence."""


class Absent(Invisible):
    """The stack does not do what is asked about, so that no other trial shows it, either."""


def shown(pairs: Iterable[tuple[float | None, float]], invisible: str) -> Samples:
    """Return Samples of (value, time) pairs. Raise Invisible, for this reason, where none has a value."""
    found = samples(pairs)
    if not len(found):
        raise Invisible(invisible)
    return found


def _until(packets: Packets, end_s: float) -> Packets:
    """Leave out what is sent to a client that is done: a server may go on with probes for long."""
    count = int(numpy.searchsorted(packets.sent_ns, end_s * 1e9, side="right"))
    sent = {name: getattr(packets, name)[:count] for name in ("sent_ns", "bytes", "out_ns", "ecn_sent", "ecn_out")}
    return dataclasses.replace(packets, **sent)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """A trial's packets and its setting. Times of packets are in seconds since the first one was sent."""

    packets: Packets
    setting: Setting
    algorithm: str
    #: (when the client asked for it, its bytes) of each body, where it asks for several
    requests: tuple[tuple[float, int], ...] = ()
    #: when each state began that the schedule waited for, in seconds after the trial's begin
    triggered: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: when the client was done: a server may send for long to one that has left. None where the trial does not say
    ended_s: float | None = None

    @classmethod
    def of(cls, measurement: Measurement) -> "Seen":
        """Return what is seen of a measurement. Raises Invisible where it keeps no packets, UserError for bad ones."""
        if never_came(measurement):
            raise Invisible(str(measurement.message))
        if measurement.packets is None:
            raise Invisible("its packets were not kept")
        return _seen(_ByTrial(measurement))

    @classmethod
    def read(cls, measurement: Measurement) -> Self:
        """Read a measurement that keeps packets, anew. Raises UserError for bad ones."""
        assert measurement.packets is not None  # or nobody asks
        trial, packets = measurement.trial, Packets.from_json(measurement.packets)
        judged = next((flow for flow in measurement.flows if flow["judged"]), {})
        requests = judged.get("requests") or ()
        ended_s = None if judged.get("end_s") is None else judged["end_s"] - packets.began_ns / 1e9
        return cls(
            packets=packets if ended_s is None else _until(packets, ended_s),
            setting=trial.setting, algorithm=trial.scheme.algorithm,
            requests=tuple((one["start_s"] - packets.began_ns / 1e9, one["bytes"]) for one in requests),
            triggered=measurement.evidence.get("triggered", {}),
            ended_s=ended_s,
        )  # fmt: skip

    @functools.cached_property
    def sent_s(self) -> Floats:
        """When each packet was sent."""
        return self.packets.sent_ns / 1e9

    @functools.cached_property
    def out_s(self) -> Floats:
        """When each packet reached the client; NaN where it did not."""
        return numpy.where(self.packets.out_ns == LOST, numpy.nan, self.packets.out_ns / 1e9)

    @functools.cached_property
    def base_rtt_s(self) -> float:
        """The round trip of the empty path, as the setting says."""
        network = self.setting.network
        if network is None:
            return 2 * self.setting.cell.one_way_delay_ms / 1000
        return network.rtt_s(network.tested)

    @property
    def bytes_per_s(self) -> float:
        """The bottleneck's rate, as the setting begins."""
        return self.setting.cell.bandwidth_mbps * 1e6 / 8

    @functools.cached_property
    def flow(self) -> Flow:
        """The flow that the packets make, as `why` reads it. Raises Invisible where too few were delivered."""
        packets, delivered = self.packets, numpy.flatnonzero(self.packets.out_ns != LOST)
        if not len(delivered):
            raise Invisible("no packet was delivered")
        least_s = float((self.out_s[delivered] - self.sent_s[delivered]).min())
        # Each trial's delay differs by some microseconds, both ways: what the fastest packet took tells.
        off_s = least_s - self._forward_s
        one_way_s = self.base_rtt_s / 2 + (off_s if abs(off_s) < 1e-4 else 0.0) - _KNOWN_FIRST_S
        try:
            return flows.of_arrays(
                self.sent_s, packets.bytes, self.out_s, packets.asked_ns / 1e9, packets.asked_bytes,
                one_way_s=one_way_s, bytes_per_s=self.bytes_per_s,
            )  # fmt: skip
        except UserError as why:
            raise Invisible(str(why)) from None

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the schedule, at their times. Raises Invisible where there is none, or one is not known."""
        network = self.setting.network
        if network is None or not network.schedule:
            raise Invisible("nothing happens to the path")
        if set(network.states) - set(self.triggered):
            raise Invisible("nobody said when the state began that the change waited for")
        began = {state: (at_s, self.base_rtt_s) for state, at_s in self.triggered.items()}
        return tuple(resolved(network.schedule, began))

    @property
    def entry(self) -> Entry:
        """The first entry of the schedule, at its time. Raises Invisible as `entries` does."""
        return self.entries[0]

    def begins_s(self, entry: Entry) -> float:
        """Return when one of `entries` begins to hold."""
        assert not isinstance(entry.at_s, Occasion)  # as it is resolved
        return entry.at_s - self.packets.began_ns / 1e9

    @functools.cached_property
    def event(self) -> Event:
        """When the first entry of the schedule holds. Raises Invisible where there is none, or it is later."""
        begin_s = self.begins_s(self.entry)
        last_s = float(self.sent_s[-1])
        if begin_s >= last_s:
            raise Invisible("the transfer was over before anything happened to the path")
        return Event(max(begin_s, 0.0), last_s if self.entry.for_s is None else begin_s + self.entry.for_s)

    @functools.cached_property
    def _forward_s(self) -> float:
        network = self.setting.network
        if network is None:
            return self.base_rtt_s / 2
        ways = network.towards_client(network.tested)
        return float(sum(link.direction(way).delay_ms for link, way in ways) / 1000)


class _ByTrial:
    """A measurement, known by its trial and its packets."""

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self._key = measurement.trial.key, (measurement.packets or {}).get("columns")

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByTrial) and other._key == self._key


@functools.lru_cache(maxsize=16)
def _seen(by_trial: _ByTrial) -> Seen:
    # Many clauses ask about one trial.
    return Seen.read(by_trial.measurement)


#: what of a trial's samples may be its value
_TAKES: Mapping[str, Callable[[Floats], Any]] = {
    "median": numpy.median, "mean": numpy.mean, "most": numpy.max, "least": numpy.min,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observable:
    """Something that packets show: one value of each trial.

    `of`: returns its samples, raises Invisible. `take`: what of a trial's samples is its value. `least`: samples of a
    trial; fewer say nothing. `independent`: whether samples are, as each draws anew:
    of losses at random, and of cycles of ProbeBW. `optional`: it may raise Absent.
    """

    name: str
    title: str
    unit: str
    digits: int
    of: Callable[[Seen], Samples]
    take: str = "median"
    least: int = 1
    independent: bool = False
    optional: bool = False

    def samples(self, seen: Seen) -> Samples:
        """Return the samples of a trial. Raises Invisible, also where there are fewer than `least`."""
        found = self.of(seen)
        if len(found) < self.least:
            many = "none" if not len(found) else f"{len(found)}, and {self.least} are needed,"
            raise Invisible(f"{self.title}: {many} to be seen")
        return found

    def look(self, measurement: Measurement) -> Samples | Invisible:
        """Return the samples of a measurement, or why there are none. Raises UserError for bad packets."""
        return _looked(self, _ByTrial(measurement))

    def value(self, samples: Samples) -> float:
        """Return a trial's value."""
        return float(_TAKES[self.take](samples.values))


@functools.lru_cache(maxsize=4096)
def _looked(observable: Observable, by_trial: _ByTrial) -> Samples | Invisible:
    # A trial is looked at once, and judged at every look, with all others, and in the end.
    try:
        return observable.samples(Seen.of(by_trial.measurement))
    except Invisible as why:
        return why

"""View a trial whose packets were kept: its packets, their flow and its network (View), and numbers read from them."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy

from conformance.model.captures.packets import LOST, Packets
from conformance.model.diagnosis import flow as flows
from conformance.model.diagnosis.flow import Floats, Flow
from conformance.model.diagnosis.samples import Samples, samples
from conformance.model.errors import UserError
from conformance.model.networks.schedule import Entry, Occasion, resolved
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome


class EventTimes(NamedTuple):
    """The begin and the end of a change of the path; a change that lasts ends with the transfer."""

    begin_s: float
    end_s: float


class Invisible(Exception):
    """A trial does not show what is asked about it; the message says why, as the end of a sentence."""


class Absent(Invisible):
    """The stack does not do what is asked about, so no other trial would show it, either."""


def shown(pairs: Iterable[tuple[float | None, float]], invisible: str) -> Samples:
    """Return Samples of (value, time) pairs. Raises Invisible, with `invisible` as the reason, if none has a value."""
    kept = samples(pairs)
    if not len(kept):
        raise Invisible(invisible)
    return kept


def until(packets: Packets, end_s: float) -> Packets:
    """Leave out packets that are sent after the client is done: a server may go on sending probes for long."""
    count = int(numpy.searchsorted(packets.sent_ns, end_s * 1e9, side="right"))
    sent = {name: getattr(packets, name)[:count] for name in ("sent_ns", "bytes", "out_ns", "ecn_sent", "ecn_out")}
    return dataclasses.replace(packets, **sent)


@dataclasses.dataclass(frozen=True, kw_only=True)
class View:
    """A trial's packets and its setting. Times of packets are in seconds since the first one was sent."""

    packets: Packets
    setting: Setting
    algorithm: str
    #: (time of the request, bytes) of each body, if the client asks for several
    requests: tuple[tuple[float, int], ...] = ()
    #: when each connection could first ask for something, if the client opens several, in order of that
    connections: tuple[float, ...] = ()
    #: {state that the schedule waited for: when it began, in seconds since the trial's begin}
    triggered: Mapping[str, float] = dataclasses.field(default_factory=dict)
    #: when the client was done, or was given no more time: a server may go on sending for long after that. None if the
    #: trial does not say
    ended_s: float | None = None

    @classmethod
    def of(cls, measurement: Measurement) -> "View":
        """Return the View of a measurement. Raises Invisible if it has no packets, and UserError for bad ones."""
        if measurement.never_came:
            raise Invisible(str(measurement.message))
        if measurement.packets is None:
            raise Invisible("its packets were not kept")
        return _seen(_ByTrial(measurement))

    @classmethod
    def read(cls, measurement: Measurement) -> Self:
        """Return the View of a measurement that has packets, without a cache. Raises UserError for bad packets."""
        assert measurement.packets is not None  # callers have checked it
        trial, packets = measurement.trial, Packets.from_json(measurement.packets)
        judged = next((flow for flow in measurement.flows if flow["judged"]), {})
        requests = judged.get("requests") or ()
        end_s = judged.get("end_s") or (trial.setting.timeout_s if measurement.outcome is Outcome.TIMEOUT else None)
        ended_s = None if end_s is None else end_s - packets.began_ns / 1e9
        return cls(
            packets=packets if ended_s is None else until(packets, ended_s),
            setting=trial.setting, algorithm=trial.scheme.algorithm,
            requests=tuple((request["start_s"] - packets.began_ns / 1e9, request["bytes"]) for request in requests),
            connections=tuple(
                sorted(
                    connection["handshake_s"] - packets.began_ns / 1e9
                    for connection in judged.get("connections") or () if connection["handshake_s"] is not None
                )
            ),
            triggered=measurement.evidence.get("triggered", {}),
            ended_s=ended_s,
        )  # fmt: skip

    @functools.cached_property
    def sent_s(self) -> Floats:
        """When each packet was sent."""
        return self.packets.sent_ns / 1e9

    @functools.cached_property
    def out_s(self) -> Floats:
        """When each packet reached the client; NaN if it did not."""
        return numpy.where(self.packets.out_ns == LOST, numpy.nan, self.packets.out_ns / 1e9)

    @functools.cached_property
    def base_rtt_s(self) -> float:
        """The round-trip time of the empty path, by the setting."""
        network = self.setting.network
        return network.rtt_s(network.tested)

    @functools.cached_property
    def over_s(self) -> float:
        """When the transfer was over: long after the last packet if the sender fell silent before it was done.

        If the trial does not say when that was, it is when the last packet arrived.
        """
        return float(numpy.nanmax(self.out_s)) if self.ended_s is None else self.ended_s

    @property
    def bytes_per_s(self) -> float:
        """The bottleneck's rate at the start of the trial."""
        return self.setting.cell.bandwidth_mbps * 1e6 / 8

    @functools.cached_property
    def flow(self) -> Flow:
        """The Flow of the packets, as `why` reads it. Raises Invisible if too few packets were delivered."""
        packets, delivered = self.packets, numpy.flatnonzero(self.packets.out_ns != LOST)
        if not len(delivered):
            raise Invisible("no packet was delivered")
        least_s = float((self.out_s[delivered] - self.sent_s[delivered]).min())
        # Each trial's delay differs from the setting's by some microseconds, in both directions alike: the fastest
        # packet's delay shows by how many.
        network = self.setting.network
        off_s = least_s - (self.base_rtt_s - network.back_s(network.tested))
        forward_s, back_s = flows.delays_s(network, network.tested, off_s if abs(off_s) < 1e-4 else 0.0)
        try:
            return flows.of_arrays(
                self.sent_s, packets.bytes, self.out_s, packets.client_ns / 1e9, packets.client_bytes,
                forward_s=forward_s, back_s=back_s, bytes_per_s=self.bytes_per_s,
            )  # fmt: skip
        except UserError as why:
            raise Invisible(str(why)) from None

    @functools.cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the schedule, with their times. Raises Invisible if there is none, or a time is not known."""
        network = self.setting.network
        if not network.schedule:
            raise Invisible("nothing happens to the path")
        if set(network.states) - set(self.triggered):
            raise Invisible("it is not known when the state began that the change waited for")
        began = {state: (at_s, self.base_rtt_s) for state, at_s in self.triggered.items()}
        return tuple(resolved(network.schedule, began))

    @property
    def entry(self) -> Entry:
        """The first entry of the schedule, with its time. Raises Invisible as `entries` does."""
        return self.entries[0]

    def begins_s(self, entry: Entry) -> float:
        """Return when one of the `entries` takes effect."""
        assert not isinstance(entry.at_s, Occasion)  # entries are resolved
        return entry.at_s - self.packets.began_ns / 1e9

    @functools.cached_property
    def event(self) -> EventTimes:
        """When the first entry of the schedule holds. Raises Invisible if there is none, or the transfer ends first."""
        begin_s = self.begins_s(self.entry)
        if begin_s >= float(self.sent_s[-1]):
            raise Invisible("the transfer was over before anything happened to the path")
        return EventTimes(max(begin_s, 0.0), self.over_s if self.entry.for_s is None else begin_s + self.entry.for_s)


class _ByTrial:
    """A measurement that caches identify by its trial and its packets."""

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self._key = measurement.trial.key, (measurement.packets or {}).get("columns")

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByTrial) and other._key == self._key


@functools.lru_cache(maxsize=16)
def _seen(by_trial: _ByTrial) -> View:
    # Many clauses ask about one trial.
    return View.read(by_trial.measurement)


#: {`take` of an Observable: function from a trial's samples to the trial's value}
_TAKES: Mapping[str, Callable[[Floats], Any]] = {
    "median": numpy.median, "mean": numpy.mean, "most": numpy.max, "least": numpy.min,
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Observable:
    """A number that is read from packets; each trial has one value.

    `of` returns a trial's samples or raises Invisible. `take`: which statistic of the samples is the trial's value.
    `least`: the fewest samples that a trial needs. `of_a_part`: whether the first part of a transfer shows it as the
    whole does. `independent`: whether the samples of a trial are independent of
    each other, as those of random losses and of cycles of ProbeBW are. `optional`: `of` may raise Absent.
    """

    name: str
    title: str
    unit: str
    digits: int
    of: Callable[[View], Samples]
    take: str = "median"
    least: int = 1
    independent: bool = False
    optional: bool = False
    of_a_part: bool = False

    def samples(self, view: View) -> Samples:
        """Return the samples of a trial. Raises Invisible, also if there are fewer than `least`."""
        if view.packets.cut and not self.of_a_part:
            raise Invisible(
                f"the guest had no room for packets after the first {len(view.packets)}, {view.sent_s[-1]:.1f} s"
            )
        samples = self.of(view)
        if len(samples) < self.least:
            many = "none was seen" if not len(samples) else f"{len(samples)} seen, and {self.least} are needed"
            raise Invisible(f"{self.title}: {many}")
        return samples

    def look(self, measurement: Measurement) -> Samples | Invisible:
        """Return the samples of a measurement, or why there are none. Raises UserError for bad packets."""
        return _looked(self, _ByTrial(measurement))

    def value(self, samples: Samples) -> float:
        """Return a trial's value."""
        return float(_TAKES[self.take](samples.values))


class Rows(dict[str, Observable]):
    """Observables by name: a part of the table of all, beside the functions that read them."""

    def add(
        self, name: str, title: str, unit: str, digits: int, **more: Any
    ) -> Callable[[Callable[[View], Samples]], Callable[[View], Samples]]:
        """Return a decorator that makes a function the `of` of an Observable; `more`: further fields of that."""

        def put(of: Callable[[View], Samples]) -> Callable[[View], Samples]:
            self[name] = Observable(name=name, title=title, unit=unit, digits=digits, of=of, **more)
            return of

        return put


@functools.lru_cache(maxsize=4096)
def _looked(observable: Observable, by_trial: _ByTrial) -> Samples | Invisible:
    # Cached, because each trial is judged again at every later look and at the end.
    try:
        return observable.samples(View.of(by_trial.measurement))
    except Invisible as why:
        return why

"""Define a Zone, the permissible interval of a metric for every cell or point, and read it from its JSON document.

An interval rests on *bases*: independent witnesses of what an honest implementation does, such as the trials of a
reference implementation, or transfers that follow the algorithm's document alone (played.py). It reaches from the least
to the greatest of their medians, widened by a margin.

The JSON document is the truth (schema: conformance/schemas/zone.json). This module reads it and checks what a schema
cannot say: each cell once, bounds in order, the bases' medians inside their own interval.
"""

import dataclasses
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model import digest
from conformance.model.errors import UserError, located
from conformance.model.judging import statistics
from conformance.model.metrics import table as metrics
from conformance.model.metrics.group_metrics import Measured
from conformance.model.metrics.metric import Metric
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting

#: payload of a full segment on Ethernet with TCP timestamps, as the references send them
REFERENCE_PACKET_BYTES = 1448
#: payload of QUIC's smallest datagrams (RFC 9000, section 14), for which zones say how much less a document promises
SMALL_PACKET_BYTES = 1200
#: payloads, in bytes, between which an interval is scaled: from somewhat below QUIC's smallest datagrams (RFC 9000,
#: section 14) to full ones
_LEAST_PACKET_BYTES, _MOST_PACKET_BYTES = 1150, 1472


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """One witness: `n` values of the metric. `reference` names it among the zone's references.

    `values` are all of them, in order; it is empty if only their range is known, as in predictions from other cells.
    """

    reference: str
    n: int
    median: float
    min: float
    max: float
    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, reference: str, values: Sequence[float]) -> "Basis":
        """Return the basis of these values. Raises ValueError if there are none."""
        ordered = tuple(sorted(values))
        return cls(
            reference=reference, n=len(ordered), median=statistics.median(ordered), min=ordered[0], max=ordered[-1],
            values=ordered,
        )  # fmt: skip

    def scaled(self, factor: float) -> "Basis":
        """Return the same with all values multiplied."""
        return dataclasses.replace(
            self, median=self.median * factor, min=self.min * factor, max=self.max * factor,
            values=tuple(value * factor for value in self.values),
        )  # fmt: skip


#: the kinds of cells, in words; a cell without random loss is a kind of its own for loss
NO_LOSS, AT_1_MS = "no random loss", "random loss at 1 ms"
SOME_LOSS, MUCH_LOSS = "up to 2 % of loss", "more than 2 % of loss"
#: the kinds of points with one loss in each so many packets, by delay, and the axes of these points
SPACED, SPACED_NEAR = "spaced losses at 80 and 100 ms", "spaced losses at 20 and 40 ms"
_SPACED_AXES, _SPACED_MS = {"delay_ms", "every"}, 80


def kind_of(place: Point, metric: str = metrics.UTILIZATION.name) -> str:
    """Return the kind of a place for a metric, in words or as its id: these are the kinds of margin_rule (margins.py).

    Without random loss, the loss is what start-up overshoots by, which depends on the delay and on whether slow start
    is left early (RFC 9406). So for loss, each such cell is a kind of its own.
    """
    axes: Mapping[str, Any] = {} if isinstance(place, Cell) else dict(place.values)
    if axes.keys() == _SPACED_AXES:
        return SPACED if axes["delay_ms"] >= _SPACED_MS else SPACED_NEAR
    if not isinstance(place, Cell) or (metric == metrics.LOST_PCT.name and not place.loss_pct):
        return place.id
    if not place.loss_pct:
        return NO_LOSS
    if place.one_way_delay_ms <= 1:
        return AT_1_MS
    return SOME_LOSS if place.loss_pct <= 2 else MUCH_LOSS


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """How far an honest implementation may be from a basis: a share of it, plus an amount in the metric's unit.

    `set_by`: the implementations whose spread made it wider than the least margin of all zones (margins.py). `unit`: of
    the amount.
    """

    relative: float
    absolute: float
    set_by: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    unit: str = dataclasses.field(default="", compare=False)

    @classmethod
    def of(cls, rule: Mapping[str, Any], place: Point | None = None, metric: Metric = metrics.UTILIZATION) -> "Margin":
        """Return the margin of a zone's margin rule; of a place, that of its kind if the rule has kinds."""
        kinds: Mapping[str, Mapping[str, Any]] = rule.get("kinds", {})
        of_kind = rule if place is None else kinds.get(place.id) or kinds.get(kind_of(place)) or rule
        relative, absolute = of_kind["relative"], of_kind.get("absolute", rule["absolute"])
        wider = relative > rule["relative"] or absolute > rule["absolute"]
        return cls(
            relative=relative, absolute=absolute, set_by=tuple(of_kind.get("implementations", ())) if wider else (),
            unit=" percentage points" if metric.unit == "%" else metric.suffix,
        )  # fmt: skip

    @property
    def words(self) -> str:
        """How wide it is and what set it, as a part of a sentence."""
        why = f"set by the farthest of {', '.join(self.set_by)}" if self.set_by else "by the rule for all zones"
        return f"margin {100 * self.relative:,.0f} % and {self.absolute:g}{self.unit} {why}"

    def below(self, value: float) -> float:
        return value * (1 - self.relative) - self.absolute

    def above(self, value: float) -> float:
        return value * (1 + self.relative) + self.absolute


NO_MARGIN = Margin(relative=0.0, absolute=0.0)


def size_factor(small_packets: float, packet_bytes: float | None) -> float:
    """Return what the document promises with packets of so many bytes, as a factor of what it promises with full ones.

    `small_packets`: the factor of packets of 1200 bytes. `packet_bytes`: None if not known, which makes the factor 1. A
    window counts packets, so a rate that it limits is proportional to their size, and their size is no matter of
    congestion control (RFC 9002, section 7.2). Between the two known sizes and beyond them, the factor is linear.
    """
    if packet_bytes is None:
        return 1.0
    size = min(max(packet_bytes, _LEAST_PACKET_BYTES), _MOST_PACKET_BYTES)
    less = (REFERENCE_PACKET_BYTES - size) / (REFERENCE_PACKET_BYTES - SMALL_PACKET_BYTES)
    return 1 - (1 - small_packets) * less


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The permissible values in one cell, ends included, the bases that they follow from, and the margin.

    There are no bases if a document says what is permitted. `small_packets`: the factor by which the document promises
    less with packets of 1200 bytes instead of 1448; 1 if the size of packets does not matter, or is not known to.
    `counted`: whether the cell can tell enough to be judged, and is not only shown.
    """

    low: float
    high: float
    bases: tuple[Basis, ...]
    margin: Margin
    small_packets: float = 1.0
    counted: bool = True

    @property
    def basis(self) -> Basis:
        """The reference implementation: the first of the bases."""
        return self.bases[0]

    @property
    def of_trials(self) -> tuple[float, float]:
        """The values that one trial may have: from the least to the greatest trial of all bases, widened."""
        least, most = min(basis.min for basis in self.bases), max(basis.max for basis in self.bases)
        return self.margin.below(least), self.margin.above(most)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def margin_used(self, value: float) -> float:
        """Return how much of the margin a median takes: 0 between the bases' medians, 1 at either end of the zone.

        It is more than 1 beyond an end, and 1 if there is no margin to compare with.
        """
        least, most = _medians(self.bases)
        beyond, margin = (value - most, self.high - most) if value > most else (least - value, least - self.low)
        if beyond <= 0:
            return 0.0
        return beyond / margin if margin else 1.0

    def at(self, packet_bytes: float | None) -> "Interval":
        """Return what is permitted to a sender whose packets carry so many bytes; None means that this is not known."""
        factor = size_factor(self.small_packets, packet_bytes)
        return self if factor == 1.0 else dataclasses.replace(
            self, low=self.low * factor, high=self.high * factor,
            bases=tuple(basis.scaled(factor) for basis in self.bases),
        )  # fmt: skip


def hull(bases: Sequence[Basis], margin: Margin) -> tuple[float, float]:
    """Return (low, high) of the interval that rests on these bases: their medians' range, widened by the margin.

    A basis whose values are not known counts with its least and greatest value instead of its median.
    """
    least, most = _medians(bases)
    return margin.below(least), margin.above(most)


def _medians(bases: Sequence[Basis]) -> tuple[float, float]:
    """Return the least and the greatest median; a basis of unknown values counts with its least and greatest value."""
    least = [basis.median if basis.values else basis.min for basis in bases]
    most = [basis.median if basis.values else basis.max for basis in bases]
    return min(least), max(most)


#: what ids of the split parts of zones (split_zone.py) have after the algorithm
SPLIT_KINDS = ("split", "split-packets")


def id_parts(zone_id: str) -> tuple[str, str]:
    """Return the parts of a zone's id: its algorithm and its kind, as in cubic/heatmap."""
    algorithm, _, kind = zone_id.partition("/")
    return algorithm, kind


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnKind:
    """The goodput of the flows beside the judged ones at a point where all flows are of their own kind.

    It is the median of `trials` by Linux TCP, in Mbit/s of all of them together. Harm is measured against it
    (RFC 9743).
    """

    scheme: str
    kernel_digest: str
    trials: int
    mbps: float

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Zone:
    """A zone: one metric of one algorithm. `smoke`: the places that tell it from other algorithms at small cost.

    `profile`: the name of the profile or scenario. The zone belongs to it as it was when its reference was measured:
    `digests` has the digest of the setting at each of its points, `profile_digest` that of all that it has not.
    """

    id: str
    algorithm: str
    algorithm_version: str = ""
    metric: str
    profile: str
    profile_digest: str
    margin_rule: Mapping[str, Any]
    references: Mapping[str, Mapping[str, Any]]
    intervals: Mapping[Point, Interval]
    smoke: tuple[Point, ...]
    digests: Mapping[Point, str] = dataclasses.field(default_factory=dict)
    own_kind: Mapping[Point, OwnKind] = dataclasses.field(default_factory=dict)
    #: whether kinds of cells are judged (kinds.py), and not each cell
    by_kind: bool = False
    #: {kind of cell: why its cells are shown, and not judged}
    shown: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: {kind of cell: by what the kernel's values are multiplied, as QUIC stacks differ from TCP by it, and what that
    #: rests on (margins.py)}; `intervals` have it already
    transport: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

    def value(self, measured: Measured) -> float | None:
        """Return the value of its metric in a measurement, None if it was not seen."""
        beside = self.own_kind.get(measured.setting.point)
        return metrics.named(self.metric).value(measured, beside.mbps if beside else None)

    @property
    def places(self) -> tuple[Point, ...]:
        """All places that it has intervals for."""
        return tuple(self.intervals)

    @property
    def of_cells(self) -> bool:
        """Whether its places are cells, and not points of another scenario."""
        return all(isinstance(place, Cell) for place in (*self.intervals, *self.digests))

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Its cells; none for a scenario's zone."""
        return tuple(self.by_cell)

    @property
    def by_cell(self) -> dict[Cell, Interval]:
        """The intervals of its cells; none for a scenario's zone."""
        return {place: interval for place, interval in self.intervals.items() if isinstance(place, Cell)}

    @property
    def noun(self) -> str:
        """What its places are called."""
        return "cell" if self.of_cells else "point"

    def digest_at(self, place: Point) -> str:
        """Return the digest that a setting must have at a place."""
        return self.digests.get(place, self.profile_digest)

    @property
    def summary(self) -> str:
        return f"{self.id}: {len(self.intervals)} {self.noun}s, {len(self.smoke)} smoke {self.noun}s"


#: what decides a verdict at a place, besides the bases
_DECIDING = operator.attrgetter("low", "high", "small_packets", "counted")


def differing(zone: Zone, another: Zone) -> Iterator[tuple[Point, Interval | None, Interval | None]]:
    """Yield (place, interval or None in `zone`, and in `another`) where two zones judge differently: they permit other
    values, to full packets or to small ones, or only one of them counts the place.
    """
    for place in {**zone.intervals, **another.intervals}:
        a, b = zone.intervals.get(place), another.intervals.get(place)
        if a is None or b is None or _DECIDING(a) != _DECIDING(b):
            yield place, a, b


def interval_from_json(
    entry: Mapping[str, Any],
    references: Mapping[str, Any],
    margin: Margin,
    pointer: str,
    within: str = "",
    factor: float = 1.0,
) -> Interval:
    """Return the Interval of an entry with low, high and bases. Raises UserError.

    `within`: the end of an error message, which says where the entry stands. `factor`: by what the first basis, the
    kernel's, is multiplied.
    """
    low, high = entry["low"], entry["high"]
    if not low <= high:
        raise UserError(f"{pointer}: low {low:g} is above high {high:g}{within}")
    bases = carried([Basis.of(basis["reference"], basis["values"]) for basis in entry["bases"]], factor)
    for basis in bases:
        if basis.reference not in references:
            raise UserError(f"{pointer}: reference {basis.reference!r} is not among /references{within}")
        if not low <= basis.median <= high:
            raise UserError(f"{pointer}: the reference's own median {basis.median:g} is outside the interval{within}")
    return Interval(
        low=low, high=high, bases=tuple(bases), margin=margin, small_packets=entry.get("small_packets", 1.0),
        counted=entry.get("counted", True),
    )  # fmt: skip


def carried(bases: Sequence[Basis], factor: float) -> list[Basis]:
    """Return bases with the first, the kernel's, multiplied by what QUIC has beside TCP."""
    kernel, *others = bases
    return [kernel if factor == 1.0 else kernel.scaled(factor), *others]


def from_json(document: Mapping[str, Any], where: object) -> Zone:
    """Build a Zone from a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    with located(f"{where}: /metric"):
        metrics.named(document["metric"])
    intervals: dict[Point, Interval] = {}
    digests: dict[Point, str] = {}
    own_kind: dict[Point, OwnKind] = {}
    named, entries = ("points", document["points"]) if "points" in document else ("cells", document["cells"])
    for at, entry in enumerate(entries):
        pointer = f"{where}: /{named}/{at}"
        with located(pointer):
            place = place_of(entry)
        if place in intervals:
            raise UserError(f"{pointer}: {named[:-1]} {place.id} is listed twice")
        within = f" in {named[:-1]} {place.id}"
        margin = Margin.of(document["margin_rule"], place, metrics.METRICS[document["metric"]])
        kind = kind_of(place, document["metric"])
        factor = document.get("transport", {}).get(kind, {}).get("factor", 1.0)
        intervals[place] = interval_from_json(entry, document["references"], margin, pointer, within, factor)
        if kind in document.get("shown", ()):
            intervals[place] = dataclasses.replace(intervals[place], counted=False)
        if "digest" in entry:
            digests[place] = entry["digest"]
        if metrics.METRICS[document["metric"]].against is not None:
            if "own_kind" not in entry:
                raise UserError(
                    f"{pointer}: own_kind is missing{within}, and {document['metric']} needs it",
                    "derive the zone again with `conformance zones derive`",
                )
            own_kind[place] = OwnKind(**entry["own_kind"])
    smoke: list[Point] = []
    for at, text in enumerate(document["smoke"]):
        with located(f"{where}: /smoke/{at}"):
            smoke.append(Point.parse(text))
            if smoke[-1] not in intervals:
                raise UserError(f"{named[:-1]} {text} has no interval")
    return Zone(
        id=document["id"],
        algorithm=document["algorithm"],
        algorithm_version=document["algorithm_version"],
        metric=document["metric"],
        profile=document["scenario"] if digests else document["profile"],
        profile_digest=digest.of_value(sorted(digests.values())) if digests else document["profile_digest"],
        margin_rule=document["margin_rule"],
        references=document["references"],
        intervals=intervals,
        smoke=tuple(smoke),
        digests=digests,
        own_kind=own_kind,
        by_kind=document.get("by_kind", False),
        shown=document.get("shown", {}),
        transport=document.get("transport", {}),
    )


def place_of(entry: Mapping[str, Any]) -> Point:
    """Return the Cell or the Point of an entry. Raises UserError."""
    if "point" in entry:
        return Point.of(dict(sorted(entry["point"].items())))
    return Cell(entry["bandwidth_mbps"], entry["one_way_delay_ms"], entry["loss_pct"])


def judges(zone: Zone, setting: Setting, place: Point) -> bool:
    """Say whether a zone has an interval for measurements of a setting, which is at `place`."""
    return place in zone.intervals and zone.digest_at(place) == setting.profile_digest

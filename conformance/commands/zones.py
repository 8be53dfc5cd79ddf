"""`conformance zones`: check, show and compare zone files, tell algorithms apart, compute margins and power."""

import collections
import dataclasses
import pathlib
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec

from conformance.catalogue import documents, kept_margins, lint, mutant_record, separation
from conformance.catalogue.kept_margins import KeptFactor, KeptSpread
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging import kinds, power, verdict
from conformance.model.judging.margins import Median, Spread, TransportFactor, factors, spreads
from conformance.model.judging.power import Told
from conformance.model.judging.verdict import Status, packet_bytes
from conformance.model.judging.zone import Interval, Zone, judges, kind_of
from conformance.model.metrics.table import UTILIZATION
from conformance.model.networks.place import Cell, Point
from conformance.model.split.split_zone import called
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support.record import At, Record


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedZone:
    """A zone file whose invariants all hold."""

    SHOWN = ("id=zone.id", "metric=zone.metric", "profile=zone.profile", "path", "summary=zone.summary", "mutants")

    path: str
    zone: Zone
    #: What the record of mutants says about the zone.
    mutants: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CheckedZones(Result):
    """Zone files that are valid. An invalid file raises a UserError, so there is none here."""

    SCHEMA = "zones-check"

    zones: tuple[CheckedZone, ...]


def check(
    named: Iterable[str], on_checked: Callable[[CheckedZone], None] = lambda checked_zone: None, anew: bool = False
) -> CheckedZones:
    """Check the `named` zones (files or ids), or all that ship if none is named.

    Raises UserError at the first invalid one. `on_checked` is called with each zone as soon as it was checked. `anew`:
    do not require that a zone still rejects the mutants that it rejected before.
    """
    checked = []
    for path, zone in lint.check_all(list(named) or documents.zone_files("*")):
        checked.append(CheckedZone(path=str(path), zone=zone, mutants=mutant_record.check(zone, path, anew)))
        on_checked(checked[-1])
    return CheckedZones(zones=tuple(checked))


class MarginRecord(Record):
    relative: float
    #: In the metric's unit.
    absolute: float
    #: The implementations whose spread made it wider than the least margin of all zones.
    set_by: list[str]


class IntervalRecord(Record):
    low: float
    high: float
    #: The reference's.
    median: Annotated[float, At("basis.median")]
    #: The factor of both bounds for packets of 1200 bytes.
    small_packets: float
    #: Whether the cell can tell enough to be judged.
    judged: Annotated[bool, At("counted")]


class PermittedRecord(Record):
    low: Annotated[float, At("1.low")]
    high: Annotated[float, At("1.high")]
    #: The reference's.
    median: Annotated[float, At("1.basis.median")]
    #: A cell's id, or a path or class of paths.
    where: Annotated[str, At("0.0")]
    #: For a zone over paths: what is measured there.
    what: Annotated[str | None, At(lambda named: named[0][1] or None)]
    #: Whether the cell can tell enough to be judged.
    judged: Annotated[bool, At("1.counted")]
    margin: Annotated[MarginRecord, At("1.margin")]


class ShownZoneRecord(Record):
    id: str
    metric: str
    profile: Annotated[str, At("zone.profile")]
    references: Annotated[dict[str, Any], At("zone.references")]
    permitted: Annotated[list[PermittedRecord], At(lambda shown: shown.by_name.items())]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShownZone(Result):
    """A zone to be drawn.

    `predicted`: of its split part, if that is to be drawn: {(path or filter, what of it): Interval}.
    """

    SCHEMA = "zones-show"
    RECORD = ShownZoneRecord

    id: str
    metric: str
    zone: Zone
    predicted: Mapping[tuple[str, str], Interval] = dataclasses.field(default_factory=dict)

    @property
    def by_name(self) -> Mapping[tuple[str, str], Interval]:
        """{(where, what of it): Interval}; a place of a zone has nothing besides its id."""
        return self.predicted or {(place.id, ""): interval for place, interval in self.zone.intervals.items()}


def show(named: str) -> ShownZone:
    """Read the zone in a file or with an id; cubic/split is the split part of a zone. Raises UserError."""
    if checks := documents.split_part(named):
        predicted = {
            (split_check.where, called(what)): i for split_check in checks for what, i in split_check.permitted.items()
        }
        return ShownZone(id=checks[0].id, metric="split", zone=checks[0].heatmap, predicted=predicted)
    zone = documents.zone(lint.find(named))
    return ShownZone(id=zone.id, metric=zone.metric, zone=zone)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZoneChange:
    """A difference between two versions of a zone, other than in its intervals, in words."""

    what: str
    before: str
    after: str


class IntervalChangeRecord(Record):
    #: A cell's id, or a point's.
    where: Annotated[str, At("0.id")]
    #: Null if the first version has none.
    before: Annotated[IntervalRecord | None, At("1")]
    after: Annotated[IntervalRecord | None, At("2")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZoneDifference(Result):
    """What changed from one version of a zone to the other.

    `intervals`: (place, interval before, interval after), None where a version has none.
    """

    SCHEMA = "zones-diff"
    SHOWN = ("id", "names", "intervals", "rules", "references", "smoke_removed", "smoke_added")

    #: The two files or ids, as given.
    names: tuple[str, str]
    zones: tuple[Zone, Zone]
    intervals: Annotated[tuple[tuple[Point, Interval | None, Interval | None], ...], list[IntervalChangeRecord]]
    #: Settings and margin rules that differ.
    rules: tuple[ZoneChange, ...]
    references: tuple[ZoneChange, ...]
    smoke_removed: tuple[Point, ...]
    smoke_added: tuple[Point, ...]

    @property
    def id(self) -> str:
        """The zone's id."""
        return self.zones[0].id

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if the zones judge differently or rest on different rules, else DONE."""
        return ExitStatus.VIOLATES if self.intervals or self.rules else ExitStatus.DONE


def diff(first: str, second: str) -> ZoneDifference:
    """Compare two versions of a zone, each a file or an id. Raises UserError if they are about different things."""
    first_zone, second_zone = documents.zone(lint.find(first)), documents.zone(lint.find(second))
    changed = lint.differences(first_zone, second_zone)
    before, after = first_zone.profile_digest, second_zone.profile_digest
    profile = ZoneChange(what=f"profile {first_zone.profile}", before=f"digest {before}", after=f"digest {after}")
    rules = [profile] if before != after else []
    rules += _changes("margin rule,", first_zone.margin_rule, second_zone.margin_rule, "None")
    by_kind = [{"by_kind": zone.by_kind} for zone in (first_zone, second_zone)]
    rules += _changes("judged", by_kind[0], by_kind[1], "False")
    schemes = [{name: about["scheme"] for name, about in zone.references.items()} for zone in (first_zone, second_zone)]
    references = _changes("reference", schemes[0], schemes[1], "none")
    mine, theirs = first_zone.smoke, second_zone.smoke
    return ZoneDifference(
        names=(str(first), str(second)), zones=(first_zone, second_zone), intervals=tuple(changed), rules=tuple(rules),
        references=tuple(references), smoke_removed=tuple(cell for cell in mine if cell not in theirs),
        smoke_added=tuple(cell for cell in theirs if cell not in mine),
    )  # fmt: skip


def _changes(what: str, before: Mapping[str, Any], after: Mapping[str, Any], lacking: str) -> list[ZoneChange]:
    """Return a ZoneChange of each name whose value differs; `lacking` stands for a value that a side has not."""
    return [
        ZoneChange(
            what=f"{what} {name}", before=str(before.get(name, lacking)), after=str(after.get(name, lacking))
        )
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]  # fmt: skip


class GapRecord(Record):
    cell: Annotated[str, At("0.id")]
    widths: Annotated[float, At("1")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two algorithms and a metric: the cells where no value is permitted to both, and how far apart they are there."""

    SHOWN = ("algorithms", "metric", "cells_of_both=common", "cells")

    algorithms: tuple[str, str]
    metric: str
    common: int
    #: Cells in which no value is permitted to both, and how far apart the intervals are, in widths of a zone.
    cells: Annotated[tuple[tuple[Cell, float], ...], list[GapRecord]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Result):
    """The cells that tell algorithms apart, pair by pair."""

    SCHEMA = "zones-apart"

    pairs: tuple[Pair, ...]


def apart(algorithms: Sequence[str], profile: str) -> Apart:
    """Find the cells that tell each pair of algorithms apart. Raise UserError."""
    if len(set(algorithms)) < 2:
        raise UserError(f"there is nothing to tell {algorithms[0]} apart from", "name at least two algorithms")
    return Apart(
        pairs=tuple(
            Pair(algorithms=(first, second), metric=metric, common=n, cells=tuple(cells))
            for first, second, metric, n, cells in separation.apart(algorithms, profile)
        )
    )


#: implementations that share no code are measured over UDP, so margins are computed from the zones under this profile
_PROFILE = "packets"
#: what ignores loss, so that its stacks show what QUIC has beside TCP; and the algorithms whose zones that is stated in
_TRANSPORT_BY, _TRANSPORT_OF = "bbrv1", ("bbrv2", "bbrv3")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Margins(Result):
    """{zone id: the Spread of each kind of its cells}, and what QUIC has beside TCP, if the results tell."""

    SCHEMA = "zones-margins"
    SHOWN = ("path", "zones", "transport")

    #: By zone and kind of cell (conformance/model/judging/margins.py): the margins, and what they rest on.
    zones: Mapping[str, Mapping[str, Spread]]
    #: By kind of cell (conformance/model/judging/margins.py): what QUIC has beside TCP with the same algorithm.
    transport: Mapping[str, TransportFactor]
    #: The file in which they were kept, or null.
    path: pathlib.Path | None


def margins(results: Iterable[pathlib.Path], record: bool = False) -> Margins:
    """Compute margins from measurements of stacks that the file of margins lists as honest.

    What QUIC has beside TCP is computed from those that it lists under transport. With `record`, margins are written
    to that file; zones then have to be derived anew. Algorithms of which `results` has no honest stack are left
    out, and so are zones for which it has fewer than two. Kinds of cells of a zone that `results` does not cover keep
    their recorded margins. Raise UserError.
    """
    kept = kept_margins.load()
    held = store.read(*results)
    spreads_of: dict[str, dict[str, Spread]] = {}
    kinds: dict[str, set[str]] = {}
    of_scenarios = [zone for zone in map(documents.zone, documents.judging_files()) if not zone.of_cells]
    for algorithm, honest in kept.honest.items():
        grids = [documents.zone_of(algorithm, kind, _PROFILE) for kind in documents.KINDS]
        for zone in [*grids, *(zone for zone in of_scenarios if zone.algorithm == algorithm)]:
            faults = {stack: about.kinds for stack, about in kept.faults.get(algorithm, {}).items()}
            medians = {
                stack: of_stack
                for stack in honest
                if (of_stack := _honest(_medians(held, algorithm, stack, zone), zone, faults.get(stack, ())))
            }
            if zone_spreads := spreads(zone, medians):
                spreads_of[zone.id] = {spread.kind: spread for spread in zone_spreads}
                kinds[zone.id] = {kind_of(place, zone.metric) for place in zone.intervals}
    transport = _transport(held, kept.transport.stacks)
    if not spreads_of and not transport:
        names = sorted({stack for honest in kept.honest.values() for stack in honest})
        raise UserError("these results contain none of the stacks that margins rest on", f"measure {', '.join(names)}")
    if record:
        zones = {
            name: {kind: what for kind, what in kept.zones.get(name, {}).items() if kind in kinds[name]}
            | {kind: KeptSpread.of(spread) for kind, spread in of_zone.items()}
            for name, of_zone in spreads_of.items()
        }
        factors_of = kept.transport
        if transport:
            by_kind = {kind: KeptFactor.of(factor) for kind, factor in transport.items()}
            of_zones = {documents.zone_of(name, documents.KINDS[0], _PROFILE).id: by_kind for name in _TRANSPORT_OF}
            factors_of = msgspec.structs.replace(kept.transport, zones=of_zones)
        kept_margins.write(msgspec.structs.replace(kept, zones={**kept.zones, **zones}, transport=factors_of))
    return Margins(zones=spreads_of, transport=transport, path=kept_margins.path() if record else None)


def _transport(held: Iterable[Measurement], stacks: Iterable[str]) -> dict[str, TransportFactor]:
    """Return {kind of cell: what QUIC has beside TCP}; nothing if there are no results of these stacks.

    Raise UserError for too few.
    """
    zone = documents.zone_of(_TRANSPORT_BY, documents.KINDS[0], _PROFILE)
    medians = {stack: of_stack for stack in stacks if (of_stack := _medians(held, _TRANSPORT_BY, stack, zone))}
    return {factor.kind: factor for factor in factors(zone, medians)} if medians else {}


def _honest(medians: Mapping[Point, Median], zone: Zone, faults: Collection[str]) -> dict[Point, Median]:
    """Return the medians without places of the kinds in which the stack is known to depart from the document."""
    return {place: median for place, median in medians.items() if kind_of(place, zone.metric) not in faults}


def _medians(held: Iterable[Measurement], algorithm: str, stack: str, zone: Zone) -> dict[Point, Median]:
    """Return {place: Median} of the zone's metric over a stack's trials of an algorithm, where all of them completed
    and have a value: what failed may not be left out of a median.

    Raise UserError if they are of several builds, kernels, rooms or lab versions.
    """
    by_place = grouped(
        (m.setting.point, m)
        for m in held
        if (m.scheme.stack, m.scheme.algorithm) == (stack, algorithm)
        if judges(zone, m.setting, m.setting.point)
    )
    if len({m.trial.run for measurements in by_place.values() for m in measurements}) > 1:
        raise UserError(f"results of {stack}'s {algorithm} are from runs that differ", "give results of one run")
    medians: dict[Point, Median] = {}
    for at, measurements in by_place.items():
        values = [value for m in measurements if m.outcome is Outcome.OK and (value := zone.value(m)) is not None]
        if len(values) == len(measurements):
            medians[at] = statistics.median(values), packet_bytes(measurements)
    return medians


#: how much lower the utilization of a made-up, slower stack is in every cell, as a share
SLOWER = 0.2
#: factors from the reference's values to the slower stack's; for other metrics it is not known which way is slower
_FACTORS: Mapping[str, float] = {
    UTILIZATION.name: 1 - SLOWER, "later_utilization": 1 - SLOWER, "transfer_rtts": 1 / (1 - SLOWER),
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ZonePower:
    """The shifts that a zone detects in each cell, or each kind of cells; `slower`: how many give each verdict on the
    SLOWER stack. `intervals`: what is permitted there.
    """

    zone: Zone
    intervals: Mapping[Point, Interval]
    cells: Mapping[Point, Told]
    slower: Mapping[Status, int]

    @property
    def by_cell(self) -> list[tuple[Point, Interval, Told]]:
        """The cells, what is permitted there, and the shifts."""
        return [(cell, self.intervals[cell], shift) for cell, shift in self.cells.items()]

    @property
    def not_counted(self) -> tuple[Point, ...]:
        """The cells that detect too little to be counted."""
        return tuple(cell for cell in self.cells if not self.intervals[cell].counted)

    def shifts(self, side: str) -> tuple[float | None, float | None]:
        """Return (median, largest) of the shifts that counted cells detect on one side, "down" or "up".

        A cell that detects none counts as infinite; an infinite result is returned as None.
        """
        shifts = [getattr(shift, side) for cell, shift in self.cells.items() if self.intervals[cell].counted]
        if not shifts:
            return None, None
        ordered = [float("inf") if shift is None else shift for shift in shifts]
        ends = statistics.median_high(ordered), max(ordered)
        middle, most = (None if end == float("inf") else end for end in ends)
        return middle, most


class CellPowerRecord(Record):
    cell: Annotated[str, At("0.id")]
    counted: Annotated[bool, At("1.counted")]
    #: The reference's.
    median: Annotated[float, At("1.basis.median")]
    #: The nearest median below that is detected; null if there is none.
    low: Annotated[float | None, At("2.low")]
    high: Annotated[float | None, At("2.high")]
    #: The same as a share: of the reference's median, or, if that is less, of the value whose relative margin is the
    #: absolute one.
    less: Annotated[float | None, At("2.down")]
    more: Annotated[float | None, At("2.up")]


class ZonePowerRecord(Record):
    id: Annotated[str, At("zone.id")]
    metric: Annotated[str, At("zone.metric")]
    cells: Annotated[list[CellPowerRecord], At("by_cell")]
    #: Number of cells by what they say about a stack that is 20 % slower than the reference; null for metrics that do
    #: not show which way is slower.
    fifth_slower: Annotated[dict[str, int] | None, At(lambda zone: zone.slower or None)]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Power(Result):
    """The shifts that zones detect with `trials` trials in a session of `questions` questions."""

    SCHEMA = "zones-power"
    SHOWN = ("trials", "questions", "told_in=detection_share", "zones")
    #: The share of runs in which a shift must be found to count as detected.
    detection_share: ClassVar[float] = power.POWER

    zones: Annotated[tuple[ZonePower, ...], list[ZonePowerRecord]]
    #: The most trials of a cell.
    trials: int
    #: The number of cells that a session judges in all.
    questions: int


def compute_power(named: Sequence[str], trials: int = power.TRIALS, questions: int = power.QUESTIONS) -> Power:
    """Compute the power of the `named` zones (files or ids), or of all that ship if none is named. Raises UserError."""
    files = map(lint.find, named) if named else documents.zone_files("*")
    powers = tuple(_of(documents.zone(path), trials, questions) for path in files)
    return Power(zones=powers, trials=trials, questions=questions)


def _of(zone: Zone, trials: int, questions: int) -> ZonePower:
    level = verdict.level(questions)
    intervals = _intervals(zone)
    cells = {cell: power.told(permitted, zone.metric, trials, level) for cell, permitted in intervals.items()}
    slower: Iterable[Status] = ()
    if zone.metric in _FACTORS:
        factor = _FACTORS[zone.metric]
        slower = (
            verdict.status_in(
                zone.metric, permitted, [value * factor for value in _of_all(permitted.basis.values, trials)], questions
            )
            for permitted in intervals.values()
        )
    return ZonePower(zone=zone, intervals=intervals, cells=cells, slower=collections.Counter(slower))


def _intervals(zone: Zone) -> Mapping[Point, Interval]:
    """Return what a zone permits in each of its cells or, if kinds of cells are judged, in each of these."""
    if not zone.by_kind:
        return zone.intervals
    rules = [kinds.Amount(zone, kind, cells) for kind, cells in kinds.by_kind(zone, zone.places).items()]
    return {rule.place: rule.in_units() for rule in rules}


def _of_all(values: Sequence[float], n: int) -> list[float]:
    """Return n of the sorted `values`, in even steps from least to greatest: trials that are as typical as possible."""
    return [values[round(at * (len(values) - 1) / (n - 1))] for at in range(n)]

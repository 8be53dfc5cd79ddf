"""`conformance zones check | show | diff | apart`: check, show and compare zone files, and tell algorithms apart."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from conformance.catalogue import documents, lint, mutant_record, separation
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.judging.zone import Interval, Zone
from conformance.model.networks.place import Cell, Point
from conformance.model.split.split_zone import called
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
        """VIOLATES if the zones permit different values or rest on different rules, else DONE."""
        return ExitStatus.VIOLATES if self.intervals or self.rules else ExitStatus.DONE


def diff(first: str, second: str) -> ZoneDifference:
    """Compare two versions of a zone, each a file or an id. Raises UserError if they are about different things."""
    first_zone, second_zone = documents.zone(lint.find(first)), documents.zone(lint.find(second))
    changed = lint.differences(first_zone, second_zone)
    before, after = first_zone.profile_digest, second_zone.profile_digest
    profile = ZoneChange(what=f"profile {first_zone.profile}", before=f"digest {before}", after=f"digest {after}")
    rules = [profile] if before != after else []
    rules += [
        ZoneChange(
            what=f"margin rule, {rule}",
            before=str(first_zone.margin_rule.get(rule)),
            after=str(second_zone.margin_rule.get(rule)),
        )
        for rule in {**first_zone.margin_rule, **second_zone.margin_rule}
        if first_zone.margin_rule.get(rule) != second_zone.margin_rule.get(rule)
    ]
    schemes = [{name: about["scheme"] for name, about in zone.references.items()} for zone in (first_zone, second_zone)]
    references = [
        ZoneChange(what=f"reference {name}", before=schemes[0].get(name, "none"), after=schemes[1].get(name, "none"))
        for name in {**first_zone.references, **second_zone.references}
        if schemes[0].get(name) != schemes[1].get(name)
    ]
    mine, theirs = first_zone.smoke, second_zone.smoke
    return ZoneDifference(
        names=(str(first), str(second)), zones=(first_zone, second_zone), intervals=tuple(changed), rules=tuple(rules),
        references=tuple(references), smoke_removed=tuple(cell for cell in mine if cell not in theirs),
        smoke_added=tuple(cell for cell in theirs if cell not in mine),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two algorithms and a metric: the cells where no value is permitted to both, and how far apart they are there."""

    first: str
    second: str
    metric: str
    #: number of cells that both zones have
    common: int
    #: (cell, gap in widths of the first algorithm's interval)
    cells: tuple[tuple[Cell, float], ...]


class GapRecord(Record):
    cell: Annotated[str, At("0.id")]
    widths: Annotated[float, At("1")]


class PairRecord(Record):
    algorithms: Annotated[list[str], At("first", "second")]
    metric: str
    cells_of_both: Annotated[int, At("common")]
    #: Cells in which no value is permitted to both, and how far apart the intervals are, in widths of a zone.
    cells: list[GapRecord]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Apart(Result):
    """The cells that tell algorithms apart, pair by pair."""

    SCHEMA = "zones-apart"

    pairs: Annotated[tuple[Pair, ...], list[PairRecord]]


def apart(algorithms: Sequence[str], profile: str) -> Apart:
    """Find the cells that tell each pair of algorithms apart. Raise UserError."""
    if len(set(algorithms)) < 2:
        raise UserError(f"there is nothing to tell {algorithms[0]} apart from", "name at least two algorithms")
    return Apart(
        pairs=tuple(
            Pair(first=first, second=second, metric=metric, common=n, cells=tuple(cells))
            for first, second, metric, n, cells in separation.apart(algorithms, profile)
        )
    )

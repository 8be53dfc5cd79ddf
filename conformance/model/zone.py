"""A Zone: for every cell the permissible interval of a metric, and what that interval rests on.

The JSON document is the truth (schema: conformance/schemas/zone.json); this module reads it and checks
what a schema cannot say: each cell once, bounds in order, the reference inside its own interval.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeVar

from conformance.model import metrics, response_functions
from conformance.model.errors import UserError, located
from conformance.model.setting import Cell


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The permissible values in one cell, ends included, and their basis (reference, n, median, ...)."""

    low: float
    high: float
    basis: Mapping[str, Any]

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclasses.dataclass(frozen=True, kw_only=True)
class Zone:
    """`smoke` lists the cells that tell this algorithm from the others at small cost."""

    id: str
    algorithm: str
    algorithm_version: str = ""
    metric: str
    profile: str
    profile_digest: str
    margin_rule: Mapping[str, Any]
    references: Mapping[str, Mapping[str, Any]]
    intervals: Mapping[Cell, Interval]
    smoke: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(self.intervals)

    @property
    def summary(self) -> str:
        return f"{self.id}: {len(self.intervals)} cells, {len(self.smoke)} smoke cells"


P = TypeVar("P")


class Permits(Protocol[P]):
    """What permits intervals in places: a Zone in cells, a SplitZone in places of its own."""

    @property
    def intervals(self) -> Mapping[P, Interval]: ...


def differing(one: "Permits[P]", other: "Permits[P]") -> Iterator[tuple[P, Interval | None, Interval | None]]:
    """Yield (cell or Place, interval or None in `one`, and in `other`) where two zones permit different values."""
    for place in {**one.intervals, **other.intervals}:
        a, b = one.intervals.get(place), other.intervals.get(place)
        if a is None or b is None or (a.low, a.high) != (b.low, b.high):
            yield place, a, b


def interval_from_json(
    entry: Mapping[str, Any], references: Mapping[str, Any], pointer: str, within: str = ""
) -> Interval:
    """The Interval of an entry with low, high and basis; `within` says of what, in an error. Raises UserError."""
    low, high, basis = entry["low"], entry["high"], entry["basis"]
    if not low <= high:
        raise UserError(f"{pointer}: low {low:g} is above high {high:g}{within}")
    if basis["reference"] not in references:
        raise UserError(f"{pointer}: reference {basis['reference']!r} is not among /references{within}")
    if not low <= basis["median"] <= high:
        raise UserError(f"{pointer}: the reference's own median {basis['median']:g} is outside the interval{within}")
    return Interval(low=low, high=high, basis=basis)


def from_json(data: Mapping[str, Any], where: object) -> Zone:
    """Build a Zone from a document that satisfies the schema; `where` names it in errors. Raises UserError."""
    with located(f"{where}: /metric"):
        metrics.named(data["metric"])
    intervals: dict[Cell, Interval] = {}
    for at, entry in enumerate(data["cells"]):
        pointer = f"{where}: /cells/{at}"
        with located(pointer):
            cell = Cell(entry["bandwidth_mbps"], entry["one_way_delay_ms"], entry["loss_pct"])
        if cell in intervals:
            raise UserError(f"{pointer}: cell {cell.id} stands twice")
        interval = interval_from_json(entry, data["references"], pointer, f" in cell {cell.id}")
        basis = interval.basis
        formula = basis.get("formula")
        if formula and not response_functions.agrees(basis["median"], formula):
            raise UserError(
                f"{pointer}: the reference's median {basis['median']:g} in cell {cell.id} is not what its formula"
                f" predicts, {formula['utilization']:g} within {response_functions.TOLERANCE:.0%}"
            )
        intervals[cell] = interval
    smoke: list[Cell] = []
    for at, text in enumerate(data["smoke"]):
        with located(f"{where}: /smoke/{at}"):
            smoke.append(Cell.parse(text))
            if smoke[-1] not in intervals:
                raise UserError(f"cell {text} has no interval")
    return Zone(
        id=data["id"],
        algorithm=data["algorithm"],
        algorithm_version=data["algorithm_version"],
        metric=data["metric"],
        profile=data["profile"],
        profile_digest=data["profile_digest"],
        margin_rule=data["margin_rule"],
        references=data["references"],
        intervals=intervals,
        smoke=tuple(smoke),
    )

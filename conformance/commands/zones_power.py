"""`conformance zones power`: compute which shifts zones detect, and how they judge a stack that is a fifth slower."""

import collections
import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

from conformance.catalogue import documents, lint
from conformance.commands.result import Result
from conformance.model.errors import UserError
from conformance.model.judging import kinds, power, verdict
from conformance.model.judging.power import Told
from conformance.model.judging.verdict import Status
from conformance.model.judging.zone import Interval, Zone
from conformance.model.metrics.table import UTILIZATION
from conformance.model.networks.place import Point
from conformance.support.record import At, Record

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
    #: The same as a share of the reference's median.
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


def compute(named: Sequence[str], trials: int = power.TRIALS, questions: int = power.QUESTIONS) -> Power:
    """Compute the power of the `named` zones (files or ids), or of all that ship if none is named. Raises UserError.

    A zone that does not hold its reference's trials is left out, as its power cannot be computed; if it was named, a
    UserError is raised.
    """
    powers = []
    for path in map(lint.find, named) if named else documents.zone_files("*"):
        zone = documents.zone(path)
        if all(permitted.basis.values for permitted in zone.intervals.values()):
            powers.append(_of(zone, trials, questions))
        elif named:
            why = f"{path}: the zone does not contain its reference's trials"
            raise UserError(why, "measure the reference and derive the zone again")
    return Power(zones=tuple(powers), trials=trials, questions=questions)


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

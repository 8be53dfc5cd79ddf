"""judge(zone, cell, measurements) -> Verdict. Pure, and closed: five verdicts, never relabelled afterwards.

Two rates are stated, and each has its own test. Whoever *conforms* has the median's confidence interval inside the zone
(statistics.median_interval). Whoever *violates* has it outside, and so far outside that the reference itself would do
so in at most ALPHA of all runs over the whole zone: the chance of each cell is that of so many trials beyond all of the
reference's (statistics.exceedance_p), the cells of a zone are taken together by Holm's procedure, and a cell that is
looked at again with more trials has a share of ALPHA for each look.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from conformance.model import statistics
from conformance.model.errors import UserError
from conformance.model.metrics import METRICS, Timeout
from conformance.model.setting import Cell
from conformance.model.trial import Measurement, Outcome
from conformance.model.zone import Interval, Zone

#: the chance that a run over a whole zone finds any violation where there is none
ALPHA = 0.01
#: that the median is inside the confidence interval
CONFIDENCE = 0.9
#: how often a cell's trials are judged, at most, each time with more of them
LOOKS = 4
#: of one cell; more would take days
MOST_TRIALS = 10_000
_USUALLY_MOST = 20


class Status(enum.StrEnum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """`value` is the median over the n trials, `interval` its confidence interval; None where unknown.

    `p`: how likely the reference itself would be so far outside, or None where the interval is not outside.
    """

    status: Status
    zone_id: str
    cell: Cell
    permitted: Interval
    reason: str
    n: int = 0
    value: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None


def false_alarms(family: int, by: str = "Holm") -> str:
    """How often a zone whose `family` cells are taken together is wrongly violated, as a sentence's part."""
    cells = f"{family} cell{'s' if family != 1 else ''}"
    return f"false alarms in at most {ALPHA:.0%} of runs ({by} over {cells})"


def decided(statuses: Iterable[Status]) -> bool:
    """Whether any of these says something of the stack."""
    return bool(set(statuses) - {Status.UNSUPPORTED, Status.ERROR})


def false_alarms_of_any(statuses: Iterable[Iterable[Status]]) -> str | None:
    """The same of several zones, any of them, each given by its cells' statuses; more often, as each has a chance.

    None where fewer than two say anything of the stack.
    """
    zones = sum(map(decided, statuses))
    if zones < 2:
        return None
    return f"false alarms by any of {zones} zones in at most {min(zones * ALPHA, 1):.0%} of runs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneVerdict:
    """The verdicts on the cells of a zone, taken together. `family`: how many cells could have violated it."""

    zone_id: str
    verdicts: Mapping[Cell, Verdict]
    family: int

    @property
    def status(self) -> Status:
        return overall(self.verdicts.values())

    @property
    def false_alarms(self) -> str:
        """The rate that holds for this zone, as a sentence's part."""
        return false_alarms(self.family)


#: of several verdicts the first of these that occurs is the verdict on all
_WORST_FIRST = (Status.ERROR, Status.VIOLATES, Status.UNSUPPORTED, Status.INCONCLUSIVE, Status.CONFORMS)


class HasStatus(Protocol):
    """A verdict of any kind."""

    @property
    def status(self) -> Status: ...


class ProfiledZone(Protocol):
    """A Zone or a SplitZone."""

    @property
    def id(self) -> str: ...

    @property
    def profile(self) -> str: ...

    @property
    def profile_digest(self) -> str: ...


def overall(verdicts: Iterable[HasStatus]) -> Status:
    """The Status of a zone from the verdicts on its cells: violates where one does, conforms where all do."""
    found = {verdict.status for verdict in verdicts}
    return next(status for status in _WORST_FIRST if status in found)


def last_look(first: int, most: int | None = None) -> int:
    """The most trials of a cell that begins with `first`: `most`, or the usual where nothing was asked for."""
    return most or max(first, _USUALLY_MOST)


def looks(first: int, most: int) -> tuple[int, ...]:
    """Numbers of trials at which a cell is judged: at most LOOKS of them, from `first` to `most`, evenly in ratio."""
    if not 1 <= first <= most:
        raise UserError(f"at most {most} trials, beginning with {first}", "the first number may not be above the last")
    if most > MOST_TRIALS:
        raise UserError(f"at most {most} trials", f"no cell takes more than {MOST_TRIALS}")
    ratio = (most / first) ** (1 / (LOOKS - 1))
    return tuple(sorted({round(first * ratio**i) for i in range(LOOKS)}))


def trials_to_violate(zone: Zone, family: int) -> int:
    """The fewest trials with which any cell can violate, were all of them outside, of `family` that are judged."""
    return min(_fewest(permitted, family) for permitted in zone.intervals.values())


def refuse_blind(zone: Zone, family: int, most: int) -> None:
    """Raise UserError where `most` trials can never show that any of `family` cells violates; who judges may not."""
    needed = trials_to_violate(zone, family)
    if needed > most:
        raise UserError(
            f"zone {zone.id}: {most} trials can never show that one of {family} cells violates it",
            f"give --max-trials {needed}, fewer cells, or a zone that rests on more trials",
        )


def _fewest(permitted: Interval, family: int) -> int:
    known = (n for n in itertools.count(1) if 1 - 2 / 2**n >= CONFIDENCE)  # the widest interval of a median
    return next(n for n in known if _chance(n, n, permitted) <= ALPHA / LOOKS / family)


def obstacle(zone: ProfiledZone, measurements: Sequence[Measurement]) -> tuple[Status, str] | None:
    """(Status, reason) where measurements of some cells say nothing about congestion control, else None.

    Raises UserError where they are of more than one scheme, or under another profile than the zone's.
    """
    runs = {(m.trial.scheme, m.trial.setting.profile_digest, m.trial.room, m.trial.lab_digest) for m in measurements}
    if len(runs) > 1:
        where = ", ".join(sorted({m.trial.setting.cell.id for m in measurements})[:2])
        raise UserError(f"measurements of unlike runs in cell {where}", "judge each run by itself")
    setting = measurements[0].trial.setting
    if setting.profile_digest != zone.profile_digest:
        raise UserError(
            f"zone {zone.id} was measured under another {zone.profile} profile (digest {zone.profile_digest})"
            f" than these results ({setting.profile_digest})",
            "use the profile it names or derive the zone anew",
        )
    for outcome, status in ((Outcome.ERROR, Status.ERROR), (Outcome.UNSUPPORTED, Status.UNSUPPORTED)):
        bad = [m for m in measurements if m.outcome is outcome]
        if bad:
            n = f" ({len(bad)} of {len(measurements)} trials)" if len(measurements) > 1 else ""
            return status, f"{bad[0].message}{n}"
    return None


def judge(zone: Zone, cell: Cell, measurements: Sequence[Measurement], family: int = 1) -> Verdict:
    """Judge one cell of a zone by the measurements of one scheme; `family` cells of the zone are judged in all.

    A trial that timed out may have any utilization up to its bound. Any error makes the cell an error: what failed may
    not be left out of a median. Raises UserError where the measurements are of more than one scheme or another profile:
    unlike runs are never pooled.
    """
    verdict = _assess(zone, cell, measurements)
    return verdict if verdict.p is None or verdict.p <= ALPHA / LOOKS / family else _unclear(verdict)


def judge_zone(zone: Zone, measured: Mapping[Cell, Sequence[Measurement]]) -> ZoneVerdict:
    """The ZoneVerdict of `measured`, {cell: measurements of one scheme}, by Holm's procedure over its cells.

    Raises UserError as judge() does, and where the cells are of more than one scheme.
    """
    everything = [m for measurements in measured.values() for m in measurements]
    if everything:
        obstacle(zone, everything)
    verdicts = {cell: _assess(zone, cell, measurements) for cell, measurements in measured.items()}
    p_values = [1.0 if v.p is None else v.p for v in verdicts.values()]
    rejected = statistics.holm(p_values, ALPHA / LOOKS)
    settled = {
        cell: verdict if verdict.p is None or at in rejected else _unclear(verdict)
        for at, (cell, verdict) in enumerate(verdicts.items())
    }
    return ZoneVerdict(zone_id=zone.id, verdicts=settled, family=len(settled))


def _unclear(verdict: Verdict) -> Verdict:
    return dataclasses.replace(
        verdict,
        status=Status.INCONCLUSIVE,
        reason=f"{verdict.reason}, but so would the reference be in {verdict.p:.1g} of runs: more trials needed",
    )


def _assess(zone: Zone, cell: Cell, measurements: Sequence[Measurement]) -> Verdict:
    """The Verdict as if `p` were small enough."""
    permitted = zone.intervals[cell]

    def verdict(status: Status, reason: str, **kw: Any) -> Verdict:
        return Verdict(status=status, zone_id=zone.id, cell=cell, permitted=permitted, reason=reason, **kw)

    if not measurements:
        return verdict(Status.ERROR, "nothing was measured")
    if {m.trial.setting.cell for m in measurements} != {cell}:
        raise UserError(f"measurements of other cells than {cell.id}", "judge each cell by itself")
    in_the_way = obstacle(zone, measurements)
    if in_the_way:
        return verdict(*in_the_way, n=len(measurements))
    values = [m.value(zone.metric) for m in measurements]
    missing = METRICS[zone.metric].missing
    if missing and set(values) == {None}:
        return verdict(Status.UNSUPPORTED, missing, n=len(values))
    highest = [value for value in values if value is not None]
    if len(highest) < len(values):
        unseen = len(values) - len(highest)
        return verdict(Status.ERROR, f"{zone.metric} was not seen in {unseen} of {len(values)} trials")
    return verdict(**_compare(zone.metric, permitted, highest, [m.outcome is Outcome.TIMEOUT for m in measurements]))


def violates(zone: Zone, cell: Cell, values: Sequence[float], timed_out: Sequence[bool], family: int) -> bool:
    """Whether judge() would say so of trials that gave these values of the zone's metric."""
    found = _compare(zone.metric, zone.intervals[cell], values, timed_out)
    return found["status"] is Status.VIOLATES and found["p"] <= ALPHA / LOOKS / family


def _compare(metric: str, permitted: Interval, highest: Sequence[float], timed_out: Sequence[bool]) -> dict[str, Any]:
    """What a Verdict says of values, those of trials that timed out being upper bounds, and of what is permitted."""
    n, value = len(highest), statistics.median(highest)
    lowest = [-math.inf if late else v for late, v in zip(timed_out, highest, strict=True)]
    interval = (
        statistics.median_interval(lowest, CONFIDENCE)[0],
        statistics.median_interval(highest, CONFIDENCE)[1],
    )

    def found(status: Status, reason: str, p: float | None = None) -> dict[str, Any]:
        return {"status": status, "reason": reason, "n": n, "value": value, "interval": interval, "p": p}

    if any(timed_out) and METRICS[metric].timeout is Timeout.UNKNOWN:
        return found(Status.INCONCLUSIVE, f"a transfer timed out, so its {metric} is of a part of it")
    if permitted.low <= interval[0] and interval[1] <= permitted.high:
        return found(Status.CONFORMS, "inside the zone")
    below, above = sum(v < permitted.low for v in highest), sum(v > permitted.high for v in lowest)
    if interval[1] < permitted.low:
        return found(Status.VIOLATES, "below the zone", _chance(n, below, permitted))
    if interval[0] > permitted.high:
        return found(Status.VIOLATES, "above the zone", _chance(n, above, permitted))
    if math.inf in interval:
        return found(Status.INCONCLUSIVE, f"{n} trials are too few to know")
    if any(timed_out):
        return found(Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known")
    where = "inside" if value in permitted else "below" if value < permitted.low else "above"
    return found(Status.INCONCLUSIVE, f"{where} the zone, but not clear of its bounds: more trials needed")


def _chance(n: int, outside: int, permitted: Interval) -> float:
    """How likely n trials of the reference itself would have so many outside, on either side.

    An interval derived from reference trials holds all of them. One that rests on something else, a formula or a
    published figure, is taken to hold the median, no more.
    """
    reference_n = permitted.basis.get("n")
    one_side = statistics.exceedance_p(n, outside, reference_n) if reference_n else statistics.sign_test_p(n, outside)
    return min(1.0, 2 * one_side)

"""judge(zone, cell, measurements) -> Verdict. Pure, and closed: five verdicts, never relabelled afterwards."""

import dataclasses
import enum

from conformance.model import statistics
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.trial import Outcome
from conformance.model.zone import Interval


class Status(enum.StrEnum):
    CONFORMS = "conforms"
    VIOLATES = "violates"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    ERROR = "error"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """`value` is the median over the trials; `interval` its confidence interval; None where unknown."""

    status: Status
    zone_id: str
    cell: Cell
    permitted: Interval
    reason: str
    n: int = 0
    value: float | None = None
    interval: tuple[float, float] | None = None


#: of several verdicts the first of these that occurs is the verdict on all
_WORST_FIRST = (Status.ERROR, Status.VIOLATES, Status.UNSUPPORTED, Status.INCONCLUSIVE, Status.CONFORMS)


def overall(verdicts):
    """The Status of a zone from the verdicts on its cells: violates where one does, conforms where all do."""
    found = {verdict.status for verdict in verdicts}
    return next(status for status in _WORST_FIRST if status in found)


def obstacle(zone, measurements):
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


def judge(zone, cell, measurements, confidence=0.9):
    """Judge one cell of a zone by the measurements of one scheme.

    conforms: the median is inside the zone. violates: the median's whole confidence interval is outside, on
    one side. inconclusive: the median is outside, but its interval is not. A trial that timed out counts
    with its upper bound: enough to be below a zone, never enough to be inside it. Any error makes the cell
    an error: what failed may not be left out of a median. Raises UserError where the measurements are of
    more than one scheme or another profile: unlike runs are never pooled.
    """
    permitted = zone.intervals[cell]

    def verdict(status, reason, **kw):
        return Verdict(status=status, zone_id=zone.id, cell=cell, permitted=permitted, reason=reason, **kw)

    if not measurements:
        return verdict(Status.ERROR, "nothing was measured")
    if {m.trial.setting.cell for m in measurements} != {cell}:
        raise UserError(f"measurements of other cells than {cell.id}", "judge each cell by itself")
    in_the_way = obstacle(zone, measurements)
    if in_the_way:
        return verdict(*in_the_way, n=len(measurements))
    values = [m.value(zone.metric) for m in measurements]
    if None in values:
        return verdict(Status.ERROR, f"{zone.metric} was not seen in {values.count(None)} of {len(values)} trials")
    value, interval = statistics.median(values), statistics.median_interval(values, confidence)
    known = {"n": len(values), "value": value, "interval": interval}
    censored = any(m.outcome is Outcome.TIMEOUT for m in measurements)
    if censored and zone.metric != "utilization":
        return verdict(Status.INCONCLUSIVE, f"a transfer timed out, so its {zone.metric} is of a part of it", **known)
    if interval[1] < permitted.low:
        return verdict(Status.VIOLATES, "below the zone", **known)
    if censored:
        return verdict(Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known", **known)
    if value in permitted:
        return verdict(Status.CONFORMS, "inside the zone", **known)
    if interval[0] > permitted.high:
        return verdict(Status.VIOLATES, "above the zone", **known)
    side = "below" if value < permitted.low else "above"
    return verdict(Status.INCONCLUSIVE, f"{side} the zone, but not clear of it: more trials needed", **known)

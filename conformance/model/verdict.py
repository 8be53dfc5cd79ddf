"""judge(zone, place, measurements) -> Verdict. Pure, and closed: six verdicts, never relabelled afterwards.

A verdict compares medians with medians. A scheme *conforms* where its median's confidence interval
(statistics.median_interval) is inside the cell's interval, which reaches from the least to the greatest median of all
bases, widened by the margin. It *violates* where that confidence interval is outside, and its trials rank above those
of every basis, moved up by the margin (or below, moved down), as the basis's own would in at most ALPHA of all runs:
Wilcoxon's exact rank sum (statistics.rank_sum_p), of which the basis with the greatest counts (an intersection-union
test: R. L. Berger, Technometrics 24, 1982, so their number costs nothing). All questions of a run share ALPHA by
Holm's procedure, and a cell that is looked at again with more trials has a share for each look.

Where the spread of a cell hides what would matter, all that can be said is that the scheme is *compatible*: its median
is inside, its interval is not. The verdict then carries the least shift that would have been detected (power.py).
"""

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from conformance.model import chance, modes, power, statistics
from conformance.model import place as places
from conformance.model.errors import UserError
from conformance.model.metric import Timeout
from conformance.model.metrics import METRICS
from conformance.model.place import Place
from conformance.model.trial import Measurement, Outcome
from conformance.model.zone import Interval, Zone

#: the chance that a run over a whole zone finds any violation where there is none
ALPHA = 0.01
#: that the median is inside the confidence interval
CONFIDENCE = 0.9
#: the same of what a known deviation must be inside by to be gone
SURE = 0.99
#: how often a cell's trials are judged, at most, each time with more of them
LOOKS = 4
#: of one cell; more would take days
MOST_TRIALS = 10_000
#: the same where nothing is asked for
USUALLY_MOST = 20
_NOT_COUNTED = f"in a cell that cannot tell {power.MUST_TELL:.0%}: shown and not counted"


class Status(enum.StrEnum):
    CONFORMS = "conforms"
    #: as far as so many trials of so wide a spread can tell
    COMPATIBLE = "compatible"
    VIOLATES = "violates"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    ERROR = "error"

    @property
    def passes(self) -> bool:
        """Whether it was judged, and nothing was found against it."""
        return self in (Status.CONFORMS, Status.COMPATIBLE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """`value` is the median over the n trials, `interval` its confidence interval; None where unknown.

    `p`: how likely a basis itself would be so far outside, or None where the interval is not outside. `permitted` is
    what is permitted to a sender of `packet_bytes`, None where their size does not matter.
    """

    status: Status
    zone_id: str
    place: Place
    permitted: Interval
    reason: str
    n: int = 0
    value: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    packet_bytes: float | None = None
    told: power.Told | None = None
    #: whether it conforms by so wide an interval, too, that a known deviation is gone (SURE)
    sure: bool = False

    @property
    def counted(self) -> bool:
        """Whether the verdict on the zone depends on it: the cell can tell enough."""
        return self.permitted.counted

    def taken_back(self, reason: str) -> "Verdict":
        """Return what is left of a violation that trials with fresh seeds did not show again."""
        return dataclasses.replace(self, status=Status.INCONCLUSIVE, reason=reason, p=None)

    @property
    def words(self) -> str:
        """The reason, with what would have been detected."""
        return f"{self.reason}; {self.told.words} would have been detected" if self.told else self.reason

    @property
    def borderline(self) -> bool:
        """Whether it is outside, and not clear of the zone after as many trials as any cell usually has."""
        outside = self.value is not None and self.value not in self.permitted
        return self.status is Status.INCONCLUSIVE and self.n >= USUALLY_MOST and outside and self.counted


def level(family: float) -> float:
    """Return the greatest chance with which one of `family` questions may be violated, at one of its looks."""
    return ALPHA / LOOKS / family


def false_alarms(family: int, by: str = "Holm") -> str:
    """Return how often anything of a `family` of cells is wrongly violated, as a sentence's part."""
    cells = f"{family} cell{'s' if family != 1 else ''}"
    return f"false alarms in at most {ALPHA:.0%} of runs ({by} over {cells})"


def decided(statuses: Iterable[Status]) -> bool:
    """Say whether any of these says something of the stack."""
    return bool(set(statuses) - {Status.UNSUPPORTED, Status.ERROR})


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneVerdict:
    """The verdicts on the cells or points of a zone, taken together. `family`: how many could have violated it."""

    zone_id: str
    verdicts: Mapping[Place, Verdict]
    family: int

    @property
    def status(self) -> Status:
        return overall(self.verdicts.values())

    @property
    def false_alarms(self) -> str:
        """The rate that holds for this zone, as a sentence's part."""
        return false_alarms(self.family)


#: of several verdicts the first of these that occurs is the verdict on all
_WORST_FIRST = (
    Status.ERROR, Status.VIOLATES, Status.UNSUPPORTED, Status.INCONCLUSIVE, Status.COMPATIBLE, Status.CONFORMS,
)  # fmt: skip


class HasStatus(Protocol):
    """A verdict of any kind."""

    @property
    def status(self) -> Status: ...

    @property
    def counted(self) -> bool: ...


_V = TypeVar("_V", bound=HasStatus)


class ProfiledZone(Protocol):
    """A Zone or a SplitZone."""

    @property
    def id(self) -> str: ...

    @property
    def profile(self) -> str: ...

    def digest_at(self, place: Place) -> str | None: ...


def overall(verdicts: Iterable[HasStatus]) -> Status:
    """Return the Status of a zone from the verdicts on its cells: violates where one does, conforms where all do.

    What is not counted matters where nothing is.
    """
    found = {verdict.status for verdict in deciding(verdicts)}
    return next(status for status in _WORST_FIRST if status in found)


def deciding(verdicts: Iterable[_V]) -> list[_V]:
    """Return the verdicts that decide on all, and on an exit status: those that count, or all where none does."""
    every = list(verdicts)
    return [verdict for verdict in every if verdict.counted] or every


def last_look(first: int, most: int | None = None) -> int:
    """Return the most trials of a cell that begins with `first`: `most`, or the usual where nothing was asked for."""
    return max(first, USUALLY_MOST) if most is None else most


def looks(first: int, most: int) -> tuple[int, ...]:
    """Return the numbers of trials at which a cell is judged: at most LOOKS of them, from `first` to `most`, evenly in
    ratio.
    """
    if not 1 <= first <= most:
        raise UserError(f"at most {most} trials, beginning with {first}", "the first number may not be above the last")
    if most > MOST_TRIALS:
        raise UserError(f"at most {most} trials", f"no cell takes more than {MOST_TRIALS}")
    ratio = (most / first) ** (1 / (LOOKS - 1))
    return tuple(sorted({round(first * ratio**i) for i in range(LOOKS)}))


def obstacle(zone: ProfiledZone, measurements: Sequence[Measurement]) -> tuple[Status, str] | None:
    """Return (Status, reason) where measurements of some places say nothing about congestion control, else None.

    Raises UserError where they are of more than one scheme, or under another profile or scenario than the zone's.
    """
    settings = {m.trial.setting: places.of(m.trial.setting) for m in measurements}
    # At each point of a scenario the digest is another; what it must be there is asked below.
    profiles = {setting.profile_digest for setting in settings if setting.network is None}
    runs = {m.trial.run for m in measurements}
    if len(runs) > 1 or len(profiles) > 1:
        where = ", ".join(sorted({place.id for place in settings.values()})[:2])
        raise UserError(f"measurements of unlike runs in cell {where}", "judge each run by itself")
    for setting, place in settings.items():
        asked = zone.digest_at(place)
        if setting.profile_digest != asked:
            what = "profile" if setting.network is None else "scenario"
            raise UserError(
                f"zone {zone.id} was measured under another {zone.profile} {what} (digest {asked})"
                f" than these results ({setting.profile_digest})",
                f"use the {what} it names or derive the zone anew",
            )
    for outcome, status in ((Outcome.ERROR, Status.ERROR), (Outcome.UNSUPPORTED, Status.UNSUPPORTED)):
        bad = [m for m in measurements if m.outcome is outcome]
        if bad:
            n = f" ({len(bad)} of {len(measurements)} trials)" if len(measurements) > 1 else ""
            return status, f"{bad[0].message}{n}"
    return None


def judge(
    zone: Zone, place: Place, measurements: Sequence[Measurement], family: int = 1, more: bool = False
) -> Verdict:
    """Judge one cell or point of a zone by the measurements of one scheme; `family` questions are judged in all.

    `more`: whether more trials may follow, so that what they might settle is inconclusive and not yet compatible. A
    trial that timed out may have any utilization up to its bound. Any error makes the cell an error: what failed may
    not be left out of a median. Raises UserError where the measurements are of more than one scheme or another profile:
    unlike runs are never pooled.
    """
    more = more and zone.intervals[place].counted  # for what is not counted nobody measures more
    verdict = _assess(zone, place, measurements, more)
    if verdict.p is not None and verdict.p > level(family):
        verdict = _unclear(verdict, family)
    return verdict if more else _with_power(verdict, zone.metric, family)


def _with_power(verdict: Verdict, metric: str, family: int) -> Verdict:
    """Return the verdict with what would have been detected, where that is the question and the zone knows."""
    unclear = verdict.status in (Status.COMPATIBLE, Status.INCONCLUSIVE) and verdict.n
    if not unclear or not verdict.permitted.basis.values:
        return verdict
    told = power.told(verdict.permitted, metric, verdict.n, level(max(family, 1)))
    return dataclasses.replace(verdict, told=told)


def _unclear(verdict: Verdict, family: int) -> Verdict:
    chance = f"so would the reference be in {verdict.p:.1g} of runs"
    allowed = f"in a family of {family} a violation needs at most {level(family):.1g}"
    reason = f"{verdict.reason}, but {chance}, and {allowed}: more trials needed"
    return dataclasses.replace(verdict, status=Status.INCONCLUSIVE, reason=reason)


def _assess(zone: Zone, place: Place, measurements: Sequence[Measurement], more: bool = False) -> Verdict:
    """Return the Verdict as if `p` were small enough."""
    permitted = zone.intervals[place]

    def verdict(status: Status, reason: str, **kw: Any) -> Verdict:
        return Verdict(status=status, zone_id=zone.id, place=place, permitted=permitted, reason=reason, **kw)

    if not measurements:
        return verdict(Status.ERROR, "nothing was measured")
    if {places.of(m.trial.setting) for m in measurements} != {place}:
        raise UserError(f"measurements of other {zone.noun}s than {place.id}", f"judge each {zone.noun} by itself")
    in_the_way = obstacle(zone, measurements)
    if in_the_way:
        return verdict(*in_the_way, n=len(measurements))
    values = [zone.value(m) for m in measurements]
    late = [m.outcome is Outcome.TIMEOUT for m in measurements]
    unseen_late = [is_late for is_late, value in zip(late, values, strict=True) if value is None]
    if unseen_late and all(unseen_late):
        # It is the stack that did not end in time, and nothing that failed.
        return verdict(Status.INCONCLUSIVE, f"a transfer timed out, so its {zone.metric} is not known", n=len(values))
    missing = METRICS[zone.metric].missing
    if missing and set(values) == {None}:
        return verdict(Status.UNSUPPORTED, missing, n=len(values))
    highest = [value for value in values if value is not None]
    if len(highest) < len(values):
        unseen = len(values) - len(highest)
        return verdict(Status.ERROR, f"{zone.metric} was not seen in {unseen} of {len(values)} trials")
    permitted, packet_bytes = permitted_to(permitted, measurements)
    return verdict(**_compare(zone.metric, permitted, highest, late, more), packet_bytes=packet_bytes)


def permitted_to(permitted: Interval, measurements: Sequence[Measurement]) -> tuple[Interval, float | None]:
    """Return what is permitted to packets of the size that trials had, and that size: None where it plays no part."""
    if permitted.small_packets == 1.0:
        return permitted, None
    size = packet_bytes(measurements)
    return permitted.at(size), size


def packet_bytes(measurements: Iterable[Measurement]) -> float | None:
    """Return how many bytes packets carried, the median of trials; None where none counted them."""
    sizes = [size for m in measurements if (size := m.packet_bytes) is not None]
    return statistics.median(sizes) if sizes else None


def violates(zone: Zone, place: Place, values: Sequence[float], timed_out: Sequence[bool], family: int) -> bool:
    """Say whether judge() would say so of trials of full packets that gave these values of the zone's metric."""
    return status_of(zone, place, values, family, timed_out) is Status.VIOLATES


def status_of(
    zone: Zone, place: Place, values: Sequence[float], family: int, timed_out: Sequence[bool] | None = None
) -> Status:
    """Return what judge() would say of trials of full packets that gave these values, and were the last of theirs."""
    found = _compare(zone.metric, zone.intervals[place], values, timed_out or [False] * len(values))
    unclear = found["p"] is not None and found["p"] > level(family)
    return Status.INCONCLUSIVE if unclear else Status(found["status"])


def _compare(
    metric: str, permitted: Interval, highest: Sequence[float], timed_out: Sequence[bool], more: bool = False
) -> dict[str, Any]:
    """Return what a Verdict says of values and of what is permitted.

    The values of trials that timed out are upper bounds. Where a basis has two modes, the share of the lower is a
    second test beside the medians, so that both have half of the chance of a false alarm. It takes as many trials
    as an interval of the median does.
    """
    found = _compare_medians(metric, permitted, highest, timed_out, more)
    seen = not any(timed_out) and math.inf not in found["interval"]
    shares = modes.shares(highest, permitted, METRICS[metric]) if seen else None
    if shares is None:
        return found
    p = min(1.0, 2 * shares.p)
    if found["p"] is not None:
        return {**found, "p": min(1.0, 2 * found["p"], p)}
    if p > ALPHA:
        return found
    if not permitted.counted:
        return {**found, "status": Status.INCONCLUSIVE, "reason": f"{shares.words}, {_NOT_COUNTED}", "sure": False}
    return {**found, "status": Status.VIOLATES, "reason": f"another mode: {shares.words}", "p": p, "sure": False}


def _compare_medians(
    metric: str, permitted: Interval, highest: Sequence[float], timed_out: Sequence[bool], more: bool
) -> dict[str, Any]:
    """Return what a Verdict says of the medians."""
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
        return {**found(Status.CONFORMS, "inside the zone"), "sure": _is_sure(permitted, lowest, highest)}
    where = f"{'below' if value < permitted.low else 'above'} the zone"
    if permitted.counted and (interval[1] < permitted.low or interval[0] > permitted.high):
        below = interval[1] < permitted.low
        p = chance.below(highest, permitted) if below else chance.above(lowest, permitted)
        return found(Status.VIOLATES, where, p)
    if math.inf in interval:
        return found(Status.INCONCLUSIVE, f"{n} trials are too few to know")
    if any(timed_out):
        return found(Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known")
    if value in permitted:
        return found(*undecided_inside(more))
    if not permitted.counted:
        return found(Status.INCONCLUSIVE, f"{where}, {_NOT_COUNTED}")
    return found(Status.INCONCLUSIVE, f"{where}, but not clear of its bounds: more trials needed")


def _is_sure(permitted: Interval, lowest: Sequence[float], highest: Sequence[float]) -> bool:
    low, high = statistics.median_interval(lowest, SURE)[0], statistics.median_interval(highest, SURE)[1]
    return permitted.low <= low and high <= permitted.high


def undecided_inside(more: bool) -> tuple[Status, str]:
    """Return (Status, reason) of what is inside a zone and not clear of its bounds; `more`: whether more trials may
    follow.
    """
    if more:
        return Status.INCONCLUSIVE, "inside the zone, but not clear of its bounds: more trials needed"
    return Status.COMPATIBLE, "its median is inside the zone, its spread reaches beyond"

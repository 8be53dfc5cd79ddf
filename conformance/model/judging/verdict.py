"""Judge measurements of a place by a zone: judge(zone, place, measurements) -> Verdict.

The function is pure. Of the eight verdicts, failing.py gives one. Only a violation is ever relabelled, by taken_back().

A verdict compares medians with medians. A scheme *conforms* if its median's confidence interval
(statistics.median_interval) is inside the cell's interval, which reaches from the least to the greatest median of all
bases, widened by the margin. It *violates* if that confidence interval is outside, and a rank-sum test against every
basis rules out chance: a basis's own trials, moved up by the margin, would rank as high (or, moved down, as low) in at
most ALPHA of all runs. The test is Wilcoxon's, exact (statistics.rank_sum_p). The greatest chance over the bases counts
(an intersection-union test: R. L. Berger, Technometrics 24, 1982), so the number of bases costs nothing. All questions
of a run share ALPHA by Holm's procedure, and a cell that is judged again with more trials has a share for each look.

If a cell's spread hides what would matter, all that can be said is that the scheme is *compatible*: its median is
inside, and its confidence interval is not. The verdict then carries the least shift that would have been detected
(power.py).
"""

import collections
import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from conformance.model.errors import UserError
from conformance.model.judging import chance, modes, power, statistics, words
from conformance.model.judging.question import MeasuredSettings, Question, Rule
from conformance.model.judging.zone import Interval, Zone, kind_of
from conformance.model.metrics.metric import Timeout
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.rounding import digits_to_tell
from conformance.model.trials.trial import Measurement, Outcome

#: the greatest chance that a run over a whole zone finds any violation where there is none
ALPHA = 0.01
#: the confidence of the interval of a median
CONFIDENCE = 0.9
#: the same for the interval that must be inside a zone before a known deviation counts as gone
SURE = 0.99
#: the most looks at a cell, each with more trials
LOOKS = 4
#: the most trials of one cell; more would take days
MOST_TRIALS = 10_000
#: the most trials of one cell unless another number is asked for
USUALLY_MOST = 20


class Says(enum.Enum):
    """What a verdict says of the stack."""

    AGAINST = enum.auto()
    #: nothing, as what measures it failed
    FAULT = enum.auto()
    #: nothing yet
    OPEN = enum.auto()
    FOR = enum.auto()
    #: nothing, and nobody asked
    NOTHING = enum.auto()


class Status(enum.StrEnum):
    """The word of a verdict, the worst first: a violation is certain, whatever else failed.

    All that follows from a word follows from what it `says`, but for its look (reporting/marks.py).
    """

    VIOLATES = "violates", Says.AGAINST
    #: its programs end, break off or stay silent where another stack gets through (failing.py)
    FAILS = "fails", Says.AGAINST
    ERROR = "error", Says.FAULT
    INCONCLUSIVE = "inconclusive", Says.OPEN
    UNSUPPORTED = "unsupported", Says.OPEN
    #: the trials are too few, or spread too widely, to say more
    COMPATIBLE = "compatible", Says.FOR
    CONFORMS = "conforms", Says.FOR
    #: no zone judges it, or the cell cannot tell enough (Interval.counted)
    NOT_JUDGED = "not judged", Says.NOTHING

    says: Says

    def __new__(cls, word: str, says: Says = Says.NOTHING) -> Self:
        status = str.__new__(cls, word)
        status._value_, status.says = word, says
        return status

    @property
    def passes(self) -> bool:
        """Whether it was judged, and nothing was found against it."""
        return self.says is Says.FOR

    @property
    def against(self) -> bool:
        """Whether it says that the stack does something wrong."""
        return self.says is Says.AGAINST

    @property
    def decided(self) -> bool:
        """Whether it says what the stack does."""
        return self.says in (Says.FOR, Says.AGAINST)


class ZoneSide(enum.StrEnum):
    """On which side of what is permitted a median lies."""

    BELOW = "below"
    ABOVE = "above"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample: the trial's seed, seconds since its first packet, the number of the packet sent then, and the value."""

    seed: int
    at_s: float
    packet: int
    value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on one question: `value` is the median over the n trials, `interval` its interval at `confidence`.

    Both are None if unknown. `zone_id` and `place` name what was asked: a zone at a place, a clause, or a check of a
    zone's split part. `p`: how likely a basis itself would be so far outside; None if the interval is not outside, or
    if intervals alone decide. `permitted`: what is permitted to a sender of `packet_bytes`, which is None if the size
    of packets does not matter.
    """

    status: Status
    zone_id: str
    place: Point
    permitted: Interval
    reason: str
    n: int = 0
    value: float | None = None
    #: the least value, if transfers timed out, so that only the range up to `value` is known
    least: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float = CONFIDENCE
    p: float | None = None
    packet_bytes: float | None = None
    detectable: power.Told | None = None
    #: whether it conforms by the wider interval (SURE), too, so that a known deviation counts as gone
    sure: bool = False
    #: what the value is, if the question has several: these verdicts are its `parts`, and the worst of them counts
    what: str = ""
    parts: tuple["Verdict", ...] = ()
    #: how many values `value` is the median of, if a trial may have none or several
    samples: int = 0
    #: samples that show it best
    evidence: tuple[Sample, ...] = ()
    #: whether more trials will not help: none showed what is judged, or cells differ in more than chance, and too few
    hidden: bool = False
    #: the same, even after a single trial: the stack does not do what is judged
    absent: bool = False
    #: what it would be, were `p` small enough
    leaning: Status = Status.VIOLATES

    def taken_back(self, reason: str) -> "Verdict":
        """Return this violation as inconclusive, after trials with fresh seeds did not show it again."""
        return dataclasses.replace(self, status=Status.INCONCLUSIVE, reason=reason, p=None)

    @property
    def known_interval(self) -> tuple[float, float] | None:
        """The interval; None if it is not known, or unbounded: with few trials, or on one side if some timed out."""
        return self.interval if self.interval and all(map(math.isfinite, self.interval)) else None

    @property
    def words(self) -> str:
        """The reason, with what would have been detected."""
        return f"{self.reason}; {self.detectable.words} would have been detected" if self.detectable else self.reason

    @property
    def values(self) -> tuple[float, ...]:
        """The ends of the range that holds the median: one value if the median is known, none if nothing is."""
        return tuple(value for value in (self.least, self.value) if value is not None)

    @property
    def side(self) -> ZoneSide | None:
        """The side on which the median surely lies; None if it is inside, or not known."""
        if self.values and max(self.values) < self.permitted.low:
            return ZoneSide.BELOW
        return ZoneSide.ABOVE if self.values and min(self.values) > self.permitted.high else None

    @property
    def borderline(self) -> bool:
        """Whether a median is outside, and it is still unclear after as many trials as a cell usually has at most."""
        unclear = [verdict for verdict in self.parts or (self,) if verdict.status is Status.INCONCLUSIVE]
        outside = any(value not in verdict.permitted for verdict in unclear for value in verdict.values)
        return self.status is Status.INCONCLUSIVE and self.n >= USUALLY_MOST and outside


def level(family: float) -> float:
    """Return the p-value up to which one of `family` questions may be called violated, at one of its looks."""
    return ALPHA / LOOKS / family


def false_alarms(family: int, by: str = "Holm") -> str:
    """Return how often any cell of a `family` violates by a false alarm, as a part of a sentence."""
    cells = f"{family} cell{'s' if family != 1 else ''}"
    return f"false alarms in at most {ALPHA:.0%} of runs ({by} over {cells})"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneVerdict:
    """The verdicts on the cells or points of a zone, taken together. `family`: how many could have violated it."""

    zone_id: str
    verdicts: Mapping[Point, Verdict]
    family: int

    @property
    def status(self) -> Status:
        return overall(self.verdicts.values())


def worst(statuses: Iterable[Status]) -> Status:
    """Return the worst of several statuses; NOT_JUDGED if there are none."""
    there = set(statuses)
    return next((status for status in Status if status in there), Status.NOT_JUDGED)


def counts(statuses: Iterable[Status]) -> str:
    """Return how many there are of each status, the worst first: "2 violates, 1 error, 27 conforms"."""
    number = collections.Counter(statuses)
    return ", ".join(f"{number[status]} {status}" for status in Status if number[status])


def overall(verdicts: Iterable[Verdict]) -> Status:
    """Return the worst status of verdicts: that of a zone, from those on its cells."""
    return worst(verdict.status for verdict in verdicts)


def last_look(first: int, most: int | None = None) -> int:
    """Return the most trials of a cell that begins with `first`: `most`, or the usual number if that is None."""
    return max(first, USUALLY_MOST) if most is None else most


def looks(first: int, most: int) -> tuple[int, ...]:
    """Return the numbers of trials at which a cell is judged: at most LOOKS, from `first` to `most` in equal ratios."""
    if not 1 <= first <= most:
        raise UserError(f"--max-trials {most} is less than --trials, which is {first}", "raise it, or lower --trials")
    if most > MOST_TRIALS:
        raise UserError(f"a maximum of {most} trials is too high", f"give at most {MOST_TRIALS}")
    ratio = (most / first) ** (1 / (LOOKS - 1))
    return tuple(sorted({round(first * ratio**i) for i in range(LOOKS)}))


#: numbers of trials at which a cell is judged, unless others are asked for
USUAL_LOOKS = looks(5, last_look(5))


#: what is said of trials with these outcomes, the worst first; whether the stack is to blame is for failing.py to say
_OBSTACLES = {
    Outcome.ERROR: Status.ERROR,
    Outcome.FAILED: Status.ERROR,
    Outcome.UNSUPPORTED: Status.UNSUPPORTED,
}


def obstacle(
    name: str, under: str, digest_at: Callable[[Point], str], measurements: Sequence[Measurement]
) -> tuple[Status, str] | None:
    """Return (Status, reason) if measurements of some places say nothing about congestion control, else None.

    `digest_at` returns the digest that settings must have, under the profile or scenario `under`, to be judged by what
    is called `name`. Raises UserError if they have another, or are of more than one scheme.
    """
    settings = {m.setting: m.setting.point for m in measurements}
    # The digest differs from point to point of a scenario; the one that a point must have is checked below.
    profiles = {setting.profile_digest for setting in settings if setting.of_profile}
    runs = {m.trial.run for m in measurements}
    if len(runs) > 1 or len(profiles) > 1:
        where = ", ".join(sorted({place.id for place in settings.values()})[:2])
        raise UserError(f"measurements of different runs at {where}", "judge each run by itself")
    for setting, place in settings.items():
        expected = digest_at(place)
        if setting.profile_digest != expected:
            what = "profile" if setting.of_profile else "scenario"
            raise UserError(
                f"{name} was measured under another {under} {what} (digest {expected})"
                f" than these results ({setting.profile_digest})",
                f"use the {what} that the zone names, or derive the zone again",
            )
    for outcome, status in _OBSTACLES.items():
        bad = [m for m in measurements if m.outcome is outcome]
        if bad:
            n = f" ({len(bad)} of {len(measurements)} trials)" if len(measurements) > 1 else ""
            return status, f"{bad[0].message}{n}"
    return None


def judge(
    zone: Zone, place: Point, measurements: Sequence[Measurement], family: int = 1, more: bool = False
) -> Verdict:
    """Judge one cell or point of a zone by the measurements of one scheme; `family` questions are judged in all.

    `more`: whether more trials may follow, so that what they might settle is inconclusive and not yet compatible. A
    trial that timed out may have any utilization up to its bound. Any error makes the cell an error, as what failed may
    not be left out of a median. Raises UserError if the measurements are of more than one scheme or of another profile:
    unlike runs are never pooled.
    """
    verdict = _assess(zone, place, measurements, more)
    if not zone.intervals[place].counted:
        return _not_judged(verdict, zone)
    verdict = by_chance(verdict, family)
    return verdict if more else _with_power(verdict, zone.metric, family)


@dataclasses.dataclass(frozen=True)
class ZoneAt(Rule):
    """A zone at one of its places."""

    zone: Zone = dataclasses.field(hash=False)
    at: Point

    @property
    def id(self) -> str:
        return self.zone.id

    @property
    def place(self) -> Point:
        return self.at

    @property
    def version(self) -> str:
        return self.zone.algorithm_version

    @property
    def judgeable(self) -> bool:
        return self.zone.intervals[self.at].counted

    def judge(self, measured: MeasuredSettings, family: int, more: bool) -> Verdict:
        every = [m for measurements in measured.values() for m in measurements]
        return judge(self.zone, self.at, every, family, more)

    def fewest(self, family: int, least: int = 1) -> int:
        return fewest(self.zone.intervals[self.at], family, least)

    def values(self, measured: MeasuredSettings) -> tuple[float, ...]:
        every = (m for measurements in measured.values() for m in measurements)
        return tuple(value for m in every if (value := self.zone.value(m)) is not None)

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        if verdict.value is None or verdict.interval is None:
            return []
        permitted = verdict.permitted
        digits = digits_to_tell((verdict.value, *verdict.interval), permitted.low, permitted.high, words.DIGITS)
        measured = f"{verdict.value:.{digits}f} (median of {verdict.n} trials; {words.interval(verdict, digits)})"
        return [
            ("measured", f"{self.zone.metric} {measured}"),
            ("permitted", words.permitted(verdict, before, digits)),
            ("basis", words.basis(permitted, before)),
        ]


def fewest(permitted: Interval, family: int, least: int = 1) -> int:
    """Return how many trials, `least` or more, can show that an interval is violated; see Rule.fewest()."""
    # If all of so many trials lie beyond all values of every basis, it violates: no verdict has a smaller p.

    def least_chance(n: int) -> float:
        return min(1.0, 2 * max(statistics.exceedance_p(n, n, basis.n) for basis in permitted.bases))

    known = (n for n in itertools.count(least) if 1 - 2 / 2**n >= CONFIDENCE)  # by the median's widest interval
    return next(n for n in known if least_chance(n) <= level(family))


def ask(zone: Zone, setting: Setting, algorithm: str | None = None) -> Question:
    """Ask whether an algorithm, by default the zone's own, is inside a zone in a setting."""
    return Question(rule=ZoneAt(zone, setting.point), algorithm=algorithm or zone.algorithm, settings=(setting,))


def _not_judged(verdict: Verdict, zone: Zone) -> Verdict:
    """Return a verdict on a cell that cannot tell enough: it keeps what was measured, and says nothing of the stack."""
    permitted = verdict.permitted
    spread = "" if permitted.margin.relative > power.MUST_TELL else f"; trials of {permitted.basis.reference} spread"
    reason = f"{power.BLIND} here: {permitted.margin.words}{spread}"
    reason = zone.shown.get(kind_of(verdict.place, zone.metric), reason)
    if verdict.n and verdict.value is None:
        reason += f"; {verdict.reason}"
    return dataclasses.replace(verdict, status=Status.NOT_JUDGED, reason=reason, p=None, sure=False)


def _with_power(verdict: Verdict, metric: str, family: int) -> Verdict:
    """Return an undecided verdict with what would have been detected, if the zone has trials; others as they are."""
    unclear = verdict.status in (Status.COMPATIBLE, Status.INCONCLUSIVE) and verdict.n
    if not unclear or not verdict.permitted.basis.values:
        return verdict
    detectable = power.told(verdict.permitted, metric, verdict.n, level(max(family, 1)))
    return dataclasses.replace(verdict, detectable=detectable)


def by_chance(verdict: Verdict, family: int) -> Verdict:
    """Return a violation as inconclusive if chance explains it, in a family of so many; others as they are."""
    if verdict.p is None or verdict.p <= level(family):
        return verdict
    chance = f"the reference would be, too, in {verdict.p:.1g} of runs"
    allowed = f"in a family of {family} a violation needs at most {level(family):.1g}"
    reason = f"{verdict.reason}, but {chance}, and {allowed}: more trials needed"
    return dataclasses.replace(verdict, status=Status.INCONCLUSIVE, reason=reason)


def _assess(zone: Zone, place: Point, measurements: Sequence[Measurement], more: bool = False) -> Verdict:
    """Return the Verdict as if any `p` were small enough for a violation."""
    permitted = zone.intervals[place]

    def verdict(status: Status, reason: str, **kw: Any) -> Verdict:
        return Verdict(
            status=status, zone_id=zone.id, place=place, permitted=permitted, reason=reason,
            what=zone.metric, **kw,
        )  # fmt: skip

    if not measurements:
        return verdict(Status.ERROR, "nothing was measured")
    if {m.setting.point for m in measurements} != {place}:
        raise UserError(f"measurements of {zone.noun}s other than {place.id}", f"judge each {zone.noun} by itself")
    in_the_way = obstacle(f"zone {zone.id}", zone.profile, zone.digest_at, measurements)
    if in_the_way:
        return verdict(*in_the_way, n=len(measurements))
    values = [zone.value(m) for m in measurements]
    late = [m.outcome is Outcome.TIMEOUT for m in measurements]
    unseen_late = [is_late for is_late, value in zip(late, values, strict=True) if value is None]
    if unseen_late and all(unseen_late):
        # The stack did not end in time; nothing failed.
        return verdict(Status.INCONCLUSIVE, f"a transfer timed out, so its {zone.metric} is not known", n=len(values))
    missing = METRICS[zone.metric].missing
    if missing and set(values) == {None}:
        return verdict(Status.UNSUPPORTED, missing, n=len(values))
    highest = [value for value in values if value is not None]
    if len(highest) < len(values):
        unseen = len(values) - len(highest)
        return verdict(Status.ERROR, f"{zone.metric} has no value in {unseen} of {len(values)} trials")
    permitted, size = permitted_to(permitted, measurements)
    return verdict(**_compare(zone.metric, permitted, highest, late, more), packet_bytes=size)


def permitted_to(permitted: Interval, measurements: Sequence[Measurement]) -> tuple[Interval, float | None]:
    """Return what is permitted to packets of the size in these trials, and that size: None if it does not matter."""
    if permitted.small_packets == 1.0:
        return permitted, None
    size = packet_bytes(measurements)
    return permitted.at(size), size


def packet_bytes(measurements: Iterable[Measurement]) -> float | None:
    """Return how many bytes packets carried, the median over trials; None if no trial counted them."""
    sizes = [size for m in measurements if (size := m.packet_bytes) is not None]
    return statistics.median(sizes) if sizes else None


def status_in(
    metric: str, permitted: Interval, values: Sequence[float], family: int, timed_out: Sequence[bool] | None = None
) -> Status:
    """Return what judge() would say of trials of full packets that gave these values, if no more trials follow."""
    if not permitted.counted:
        return Status.NOT_JUDGED
    figures = _compare(metric, permitted, values, timed_out or [False] * len(values))
    unclear = figures["p"] is not None and figures["p"] > level(family)
    return Status.INCONCLUSIVE if unclear else Status(figures["status"])


def _compare(
    metric: str, permitted: Interval, highest: Sequence[float], timed_out: Sequence[bool], more: bool = False
) -> dict[str, Any]:
    """Return the fields of a Verdict that follow from values and from what is permitted.

    The values of trials that timed out are upper bounds. If a basis has two modes, the share of trials in the lower one
    is a second test besides the medians, so each of the two has half of the chance of a false alarm. It takes as many
    trials as an interval of the median does.
    """
    figures = compare_medians(metric, permitted, highest, timed_out, more)
    finite = not any(timed_out) and math.inf not in figures["interval"]
    shares = modes.shares(highest, permitted, METRICS[metric]) if finite else None
    if shares is None:
        return figures
    p = min(1.0, 2 * shares.p)
    if figures["p"] is not None:
        return {**figures, "p": min(1.0, 2 * figures["p"], p)}
    if p > ALPHA:
        return figures
    return {**figures, "status": Status.VIOLATES, "reason": f"another mode: {shares.words}", "p": p, "sure": False}


def compare_medians(
    metric: str, permitted: Interval, highest: Sequence[float], timed_out: Sequence[bool], more: bool
) -> dict[str, Any]:
    """Return the fields of a Verdict that follow from the medians alone."""
    n, value = len(highest), statistics.median(highest)
    lowest = [-math.inf if late else v for late, v in zip(timed_out, highest, strict=True)]
    interval = (
        statistics.median_interval(lowest, CONFIDENCE)[0],
        statistics.median_interval(highest, CONFIDENCE)[1],
    )

    def found(status: Status, reason: str, p: float | None = None) -> dict[str, Any]:
        return {"status": status, "reason": reason, "n": n, "value": value, "interval": interval, "p": p}

    if any(timed_out) and METRICS[metric].timeout is Timeout.UNKNOWN:
        return found(Status.INCONCLUSIVE, f"a transfer timed out, so its {metric} covers only a part of it")
    if permitted.low <= interval[0] and interval[1] <= permitted.high:
        low, high = statistics.median_interval(lowest, SURE)[0], statistics.median_interval(highest, SURE)[1]
        return {**found(Status.CONFORMS, "inside the zone"), "sure": permitted.low <= low and high <= permitted.high}
    where = f"{'below' if value < permitted.low else 'above'} the zone"
    if interval[1] < permitted.low or interval[0] > permitted.high:
        below = interval[1] < permitted.low
        p = chance.below(highest, permitted) if below else chance.above(lowest, permitted)
        return found(Status.VIOLATES, where, p)
    if math.inf in interval:
        return found(Status.INCONCLUSIVE, f"{n} trials are too few to tell")
    if any(timed_out):
        return found(Status.INCONCLUSIVE, "a transfer timed out, so only a bound is known")
    if value in permitted:
        return found(*undecided_inside(more))
    return found(Status.INCONCLUSIVE, f"{where}, but not clear of its bounds: more trials needed")


def undecided_inside(more: bool) -> tuple[Status, str]:
    """Return (Status, reason) of a median inside a zone whose interval is not; `more`: whether trials may follow."""
    if more:
        return Status.INCONCLUSIVE, "inside the zone, but not clear of its bounds: more trials needed"
    return Status.COMPATIBLE, "its median is inside the zone, its spread reaches beyond"

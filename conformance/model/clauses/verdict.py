"""Judge clauses: is what trials show within what the document permits?

Each trial has one value. The median of these values is judged by its confidence interval, at the same looks as cells
(verdict.py). The bound comes from the document and not from a reference, so a violation needs no basis. It is
certain if a sender whose median is within the bound would have as many values beyond it in at most the clause's share
of ALPHA of all runs (sign test). If the samples of a trial are independent of each other, as those of random losses
are, each sample is a value.

If a violation must be confirmed with fresh seeds (`twice`), each of the two runs needs only half of the evidence. The
runs are independent, so the chance that both show a violation is the product of both chances, and each may be as large
as the square root of the share. Eight trials and eight more are then enough, while one run would need twenty.
"""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy

from conformance.model.clauses.document import Bound, Clause
from conformance.model.clauses.seen import Absent, Invisible, View
from conformance.model.diagnosis.samples import Samples
from conformance.model.errors import UserError
from conformance.model.judging import statistics, verdict as verdicts, words
from conformance.model.judging.question import MeasuredSettings, Named, Question, Rule
from conformance.model.judging.verdict import CONFIDENCE, SURE, USUAL_LOOKS, Sample, Status, Verdict, level
from conformance.model.judging.zone import NO_MARGIN, Interval
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement

#: why a clause conforms
_WITHIN = "within the document's bound"
#: the most samples that a verdict names as evidence
_MOST_SIGHTINGS = 3


@dataclasses.dataclass(frozen=True)
class ClauseRule(Rule):
    """A clause, for an algorithm. Trials keep their packets."""

    clause: Clause = dataclasses.field(hash=False)
    algorithm: str
    twice: bool = False
    noun = "clauses of"

    @property
    def id(self) -> str:
        return self.clause.id

    @property
    def place(self) -> Point:
        return Named(self.algorithm)

    @property
    def judgeable(self) -> bool:
        return not self.clause.unasked

    @property
    def glances(self) -> bool:
        return self.clause.observable.optional

    @property
    def group(self) -> str:
        return self.clause.specification

    @property
    def named(self) -> str:
        return f"clause {self.id}"

    @property
    def where(self) -> str:
        return self.clause.network.words

    @property
    def selection(self) -> tuple[str, str]:
        return "-k", self.clause.id

    def judge(self, measured: MeasuredSettings, family: int, more: bool) -> Verdict:
        ((setting, measurements),) = measured.items()
        return judge(self, setting, measurements, family, more)

    def fewest(self, family: int, least: int = 1) -> int:
        # Samples that are independent of each other are values, of which a trial may have any number.
        if self.clause.observable.independent:
            return least
        sided = self.clause.bound.sided
        return next(n for n in itertools.count(least) if _chance(sided * 0.5**n, n, self.twice) <= level(family))

    def headline(self, scheme: str, verdict: Verdict) -> str:
        clause = self.clause
        return (
            f"{scheme} {verdict.status} {clause.id} ({clause.source}, {clause.level}): {verdict.reason}\n"
            f"  clause     {clause.text}"
        )

    def lines(self, verdict: Verdict, before: str | None = None) -> list[tuple[str, str]]:
        clause = self.clause
        if verdict.value is None and verdict.status is Status.NOT_JUDGED:
            return []
        if verdict.value is None:
            return [("network", f"{clause.network.words}; hidden by: {clause.invisible}")]
        return [
            ("measured", self.measured(verdict)),
            ("permitted", f"{clause.bound.words(clause.observable.digits)}: {clause.bound.why}"),
            ("seen", "; ".join(self._seen(sample) for sample in verdict.evidence)),
            ("network", clause.network.words),
        ]

    def measured(self, verdict: Verdict) -> str:
        """Return the observable's median with its interval, and the number of values and trials."""
        n, trials, observable = verdict.samples, verdict.n, self.clause.observable
        of = f"{trials} trials" if n == trials else f"{n} values of {trials} trials"
        value = f"{verdict.value:.{observable.digits}f} {observable.unit}".strip()
        return f"{observable.title}: {value} (median of {of}; {words.interval(verdict, observable.digits)})"

    def _seen(self, sample: Sample) -> str:
        """Return a sample's value, and where in a trial it was seen."""
        value = f"{sample.value:.{self.clause.observable.digits}f} {self.clause.observable.unit}".strip()
        return f"{value} at {sample.at_s:.6f} s of seed {sample.seed}, packet {sample.packet}"


def judge(
    rule: ClauseRule, setting: Setting, measurements: Sequence[Measurement], family: int = 1, more: bool = False
) -> Verdict:
    """Judge a clause by the measurements of one scheme; `family` questions are judged in all.

    `more`: more trials may follow. A failed trial makes the verdict an error. Trials that do not show the behaviour
    have no value, but count among the verdict's `n`. Raises UserError for measurements of unlike runs, or of another
    setting.
    """
    clause = rule.clause
    permitted = Interval(low=clause.bound.low, high=clause.bound.high, bases=(), margin=NO_MARGIN)

    def found(status: Status, reason: str, **rest: object) -> Verdict:
        return Verdict(
            status=status, zone_id=clause.id, place=rule.place, permitted=permitted, reason=reason,
            n=len(measurements), what=clause.observable.name, **rest,  # type: ignore[arg-type]
        )  # fmt: skip

    if clause.unasked:
        return found(Status.NOT_JUDGED, clause.unasked)
    if not measurements:
        return found(Status.ERROR, "nothing was measured")
    arrived = [measurement for measurement in measurements if not measurement.never_came]
    if obstacle := verdicts.obstacle(f"clause {clause.id}", setting.profile, lambda _: setting.profile_digest, arrived):
        return found(*obstacle)
    shown, why_not = _observe(clause, measurements)
    if len(shown) < min(clause.trials, len(measurements)) or not shown:
        reason, count = Counter(map(str, why_not)).most_common(1)[0]
        return found(
            Status.INCONCLUSIVE, f"not visible in {count} of {len(measurements)} trials: {reason}", hidden=not shown,
            absent=not shown and all(isinstance(why, Absent) for why in why_not),
        )  # fmt: skip
    each = [
        list(map(float, samples.values)) if clause.observable.independent else [clause.observable.value(samples)]
        for _, samples in shown
    ]
    values = [value for of in each for value in of]
    status, reason, p = compare(clause.bound, values, family, more, rule.twice, clause.observable.independent)
    if status.against and clause.only_shows:
        status, reason, p = Status.NOT_JUDGED, f"{reason}, which {clause.document} leaves open", None
    value, (low, high) = statistics.median(values), statistics.median_interval(values, SURE)
    return found(
        status, reason, samples=len(values), value=value, interval=statistics.median_interval(values, CONFIDENCE), p=p,
        evidence=tuple(_evidence(clause.bound, value, shown)), sure=permitted.low <= low and high <= permitted.high,
    )  # fmt: skip


def on_record(
    clause: Clause, status: Status, reason: str, interval: Sequence[float | None] | None
) -> tuple[Status, str]:
    """Return the verdict on a clause as an older draft has it, and why, of what is on record by another bound.

    Chance needs the values of trials, so a violation must be one by both bounds.
    """
    if clause.unasked:
        return Status.NOT_JUDGED, clause.unasked
    low, high = interval or (None, None)
    if low is None or high is None:
        return status, reason
    if clause.bound.low <= low and high <= clause.bound.high:
        return Status.CONFORMS, _WITHIN
    if status.against and (high < clause.bound.low or low > clause.bound.high):
        return status, reason
    return Status.INCONCLUSIVE, "by the bound of an older draft, more trials are needed"


def ask(clause: Clause, setting: Setting, algorithm: str, twice: bool = True) -> Question:
    """Ask whether an algorithm does what a clause says; `twice`: see ClauseRule."""
    rule = ClauseRule(clause, algorithm, twice)
    return Question(rule=rule, algorithm=algorithm, settings=(setting,))


ShownTrials = list[tuple[Measurement, Samples]]


def _observe(clause: Clause, measurements: Sequence[Measurement]) -> tuple[ShownTrials, list[Invisible]]:
    """Return the trials that show a clause, each with its samples, and the reasons why others do not."""
    shown: ShownTrials = []
    why_not: list[Invisible] = []
    for measurement in measurements:
        try:
            look = clause.observable.look(measurement)
        except UserError as why:
            raise UserError(f"seed {measurement.trial.seed}: {why.cause}", why.mend) from None
        if isinstance(look, Invisible):
            why_not.append(look)
        else:
            shown.append((measurement, look))
    return shown, why_not


def compare(
    bound: Bound, values: Sequence[float], family: int, more: bool, twice: bool, pooled: bool = False
) -> tuple[Status, str, float | None]:
    """Return the verdict on values by a bound, why, and how likely they are by chance; see ClauseRule and _chance()."""
    low, high = statistics.median_interval(values, CONFIDENCE)
    if bound.low <= low and high <= bound.high:
        return Status.CONFORMS, _WITHIN, None
    value = statistics.median(values)
    if high < bound.low or low > bound.high:
        where = "below" if value < bound.low else "above"
        beyond = sum(v < bound.low for v in values) if value < bound.low else sum(v > bound.high for v in values)
        once = min(1.0, bound.sided * statistics.sign_test_p(len(values), beyond))
        p = _chance(once, len(values), twice, pooled)
        if p <= level(family):
            return Status.VIOLATES, f"{where} the document's bound", p
        return Status.INCONCLUSIVE, f"{where} the bound, but chance does that in {p:.1g} of runs: more trials needed", p
    if value in bound:
        unclear = "within the bound, but not clear of it"
        return Status.INCONCLUSIVE, f"{unclear}: more trials needed" if more else unclear, None
    return Status.INCONCLUSIVE, "beyond the bound, but not clear of it: more trials needed", None


def _chance(once: float, n: int, twice: bool, pooled: bool = False) -> float:
    """Return how likely a violation is by chance alone: `once` in one run of `n` values; with `twice`, in both runs.

    level() is the share of one of LOOKS looks. With `twice`, each of the two runs may be so far beyond the bound at any
    of its looks, so both are in at most (LOOKS * once)**2 of sessions, which is LOOKS * once**2 for each look. At the
    usual looks, the sign test has so few possible p-values that once**2 suffices; tests count this exactly. It does not
    suffice if values are `pooled`, or for other values of `n`.
    """
    if not twice:
        return once
    coarse = n in USUAL_LOOKS and not pooled
    return min(1.0, (1 if coarse else verdicts.LOOKS) * once**2)


def _evidence(bound: Bound, value: float, shown: ShownTrials) -> Iterator[Sample]:
    """Yield the samples that illustrate the verdict best: those nearest the median and on its side of the bound."""
    points = [
        (abs(float(v) - value), measurement.trial.seed, float(at), float(v), measurement)
        for measurement, samples in shown
        for v, at in zip(samples.values, samples.times_s, strict=True)
        if (float(v) in bound) == (value in bound)
    ]
    for _, seed, at_s, v, measurement in sorted(points, key=lambda point: point[:4])[:_MOST_SIGHTINGS]:
        packet = int(numpy.searchsorted(View.of(measurement).sent_s, at_s, side="right"))
        yield Sample(seed=seed, at_s=at_s, packet=packet, value=v)

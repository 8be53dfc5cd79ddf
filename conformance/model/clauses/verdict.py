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
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy

from conformance.model.clauses.document import Bound, Clause
from conformance.model.clauses.seen import Absent, Invisible, Seen, never_came
from conformance.model.diagnosis.samples import Samples
from conformance.model.errors import UserError
from conformance.model.family import USUAL_LOOKS
from conformance.model.judging import statistics, verdict
from conformance.model.judging.verdict import CONFIDENCE, SURE, Status, level
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement

#: the most samples that a verdict names as evidence
_MOST_SEEN = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A sample: the trial's seed, seconds since its first packet, the number of the packet sent then, and the value."""

    seed: int
    at_s: float
    packet: int
    value: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClauseVerdict:
    """`value` is the median over `n` values of `trials` trials; None if nothing was visible.

    `p`: the chance of as many values beyond the bound, if the median's interval is beyond it; with `twice`, the chance
    that a repeat has as many, too. `hidden`: nothing was visible in any trial, so more trials will not help. `absent`:
    they will not help even after a single trial, as the stack does not do what the clause is about.
    """

    status: Status
    clause_id: str
    bound: Bound
    reason: str
    trials: int = 0
    n: int = 0
    value: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    seen: tuple[Evidence, ...] = ()
    hidden: bool = False
    absent: bool = False
    sure: bool = False

    @property
    def zone_id(self) -> str:
        """The name of the clause in reports."""
        return self.clause_id

    def taken_back(self, reason: str) -> "ClauseVerdict":
        """Return this violation as inconclusive, after trials with fresh seeds did not show it again."""
        return dataclasses.replace(self, status=Status.INCONCLUSIVE, reason=reason, p=None)

    @property
    def borderline(self) -> bool:
        """Whether the value is beyond the bound, but still inconclusive after the usual number of trials."""
        beyond = self.value is not None and self.value not in self.bound
        return self.status is Status.INCONCLUSIVE and self.trials >= verdict.USUALLY_MOST and beyond


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """The profile and digest that measurements of a clause must have, in the form that verdict.obstacle() takes."""

    id: str
    profile: str
    digest: str

    def digest_at(self, place: Point) -> str | None:
        return self.digest


def judge(
    clause: Clause,
    setting: Setting,
    measurements: Sequence[Measurement],
    family: int = 1,
    more: bool = False,
    twice: bool = False,
) -> ClauseVerdict:
    """Judge a clause by the measurements of one scheme; `family` questions are judged in all.

    `more`: more trials may follow. `twice`: a violation counts only if fresh seeds show it, too. A failed trial makes
    the verdict an error. Trials that do not show the behaviour have no value, but count among `trials`. Raises
    UserError for measurements of unlike runs, or of another setting.
    """

    def found(status: Status, reason: str, **rest: object) -> ClauseVerdict:
        return ClauseVerdict(
            status=status, clause_id=clause.id, bound=clause.bound, reason=reason,
            trials=len(measurements), **rest,  # type: ignore[arg-type]
        )  # fmt: skip

    if not measurements:
        return found(Status.ERROR, "nothing was measured")
    made = [one for one in measurements if not never_came(one)]
    if obstacle := verdict.obstacle(_Asked(clause.id, setting.profile, setting.profile_digest), made):
        return found(*obstacle)
    shown, why_not = _observe(clause, measurements)
    if len(shown) < min(clause.trials, len(measurements)) or not shown:
        reason, count = Counter(map(str, why_not)).most_common(1)[0]
        return found(
            Status.INCONCLUSIVE, f"not visible in {count} of {len(measurements)} trials: {reason}", hidden=not shown,
            absent=not shown and all(isinstance(why, Absent) for why in why_not),
        )  # fmt: skip
    each = [
        list(map(float, one.values)) if clause.observable.independent else [clause.observable.value(one)]
        for _, one in shown
    ]
    values = [value for of in each for value in of]
    status, reason, p = _compare(clause.bound, values, family, more, twice, clause.observable.independent)
    value = statistics.median(values)
    return found(
        status, reason, n=len(values), value=value, interval=statistics.median_interval(values, CONFIDENCE), p=p,
        seen=tuple(_evidence(clause.bound, value, shown)), sure=_inside(clause.bound, values, SURE),
    )  # fmt: skip


Shown = list[tuple[Measurement, Samples]]


def _observe(clause: Clause, measurements: Sequence[Measurement]) -> tuple[Shown, list[Invisible]]:
    """Return the trials that show a clause, each with its samples, and the reasons why others do not."""
    shown: Shown = []
    why_not: list[Invisible] = []
    for measurement in measurements:
        try:
            found = clause.observable.look(measurement)
        except UserError as why:
            raise UserError(f"seed {measurement.trial.seed}: {why.cause}", why.mend) from None
        if isinstance(found, Invisible):
            why_not.append(found)
        else:
            shown.append((measurement, found))
    return shown, why_not


def _compare(
    bound: Bound, values: Sequence[float], family: int, more: bool, twice: bool, pooled: bool = False
) -> tuple[Status, str, float | None]:
    low, high = statistics.median_interval(values, CONFIDENCE)
    if bound.low <= low and high <= bound.high:
        return Status.CONFORMS, "within the document's bound", None
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
    return min(1.0, (1 if coarse else verdict.LOOKS) * once**2)


def refuse_blind(clause: Clause, family: int, most: int, twice: bool = False) -> None:
    """Raise UserError if `most` trials could never show a violation of a clause, one of `family` that are judged."""

    def too_likely(trials: int) -> bool:
        return _chance(clause.bound.sided * 0.5**trials, trials, twice) > level(family)

    if not clause.observable.independent and too_likely(most):
        needed = next(n for n in range(most, 10 * most + 100) if not too_likely(n))
        raise UserError(
            f"clause {clause.id}: {most} trials can never show that one of {family} clauses is violated",
            f"give --max-trials {needed}, or fewer clauses",
        )


def _inside(bound: Bound, values: Sequence[float], confidence: float) -> bool:
    low, high = statistics.median_interval(values, confidence)
    return bound.low <= low and high <= bound.high


def _evidence(bound: Bound, value: float, shown: Shown) -> Iterator[Evidence]:
    """Yield the samples that illustrate the verdict best: those nearest the median and on its side of the bound."""
    found = [
        (abs(float(v) - value), measurement.trial.seed, float(at), float(v), measurement)
        for measurement, samples in shown
        for v, at in zip(samples.values, samples.times_s, strict=True)
        if (float(v) in bound) == (value in bound)
    ]
    for _, seed, at_s, v, measurement in sorted(found, key=lambda one: one[:4])[:_MOST_SEEN]:
        packet = int(numpy.searchsorted(Seen.of(measurement).sent_s, at_s, side="right"))
        yield Evidence(seed=seed, at_s=at_s, packet=packet, value=v)

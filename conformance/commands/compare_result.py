"""The result of `conformance compare`: what was compared, what could not be, and the exit status that follows."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from conformance.commands import compare_measured
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Compared, Movement, Quantity
from conformance.model.trials.trial import Measurement, Scheme
from conformance.support.record import At, Record, extended

#: the default margin: how far apart cells may be if one side serves for the other, as a share of what zones permit
MARGIN = 1.0
#: what the two sides are called, wherever two builds are compared
ROLES = ("base", "head")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side as it was given, and its scheme for each algorithm."""

    #: As given on the command line.
    given: str
    schemes: tuple[Scheme, ...]

    @property
    def name(self) -> str:
        """The side as it was given, and its stack and version as far as that does not say them."""
        builds = dict(scheme.id.split("/")[1:] for scheme in self.schemes)
        if self.given in builds:
            return f"{self.given} {builds[self.given]}"
        return f"{self.given} ({', '.join(' '.join(build) for build in builds.items())})"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A cell or point that is not compared because a trial of one side ended in an error, or cannot be made."""

    SHOWN = (
        "side", "algorithm=measurement.scheme.algorithm", "profile=measurement.setting.profile",
        "cell=measurement.setting.point", "outcome=measurement.outcome", "message=measurement.message",
    )  # fmt: skip

    side: str
    measurement: Measurement

    @property
    def place(self) -> Point:
        """The cell, or the point of a scenario."""
        return self.measurement.setting.point


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Further:
    """What would decide a comparison in which nothing is known to have moved.

    `leading`: the unclear quantity that differs most. `trials`: of each side; None if more than a hundred are needed.
    `seconds`: how long they take; None if that is not known.
    """

    leading: Compared | None
    trials: int | None
    seconds: float | None


class ComparedRecord(Record):
    algorithm: Annotated[str, At("quantity.algorithm")]
    kind: Annotated[Literal["feature", "metric"], At("quantity.kind")]
    #: A feature of `conformance why`, or a metric.
    name: Annotated[str, At("quantity.name")]
    #: What a feature points at, such as beta; null for a metric.
    label: Annotated[str | None, At("quantity.label")]
    profile: Annotated[str, At("quantity.profile")]
    cell: Annotated[str, At("quantity.place.id")]
    change: Movement
    #: Median over the base's trials.
    before: float
    #: Median over the head's trials.
    after: float
    #: after - before
    difference: float
    #: Confidence interval of the difference; null if there are too few trials.
    interval: Annotated[list[float] | None, At("known_interval")]
    #: Smallest difference that counts.
    matters: float
    #: P-value of the rank-sum test, adjusted for the family (Holm).
    p: float
    #: Numbers of trials of the base and of the head.
    trials: Annotated[list[int], At("n")]
    #: Whether each seed gave both sides the same value.
    identical: bool


class SaidRecord(ComparedRecord):
    #: For a feature: what the head does.
    sentence: str | None


class OneSidedRecord(Record):
    algorithm: Annotated[str, At("0.algorithm")]
    name: Annotated[str, At("0.name")]
    cell: Annotated[str, At("0.place.id")]
    side: Annotated[str, At("1")]


class NotMeasuredRecord(Record):
    algorithm: Annotated[str, At("0")]
    profile: Annotated[str, At("1")]
    cell: Annotated[str, At("2.id")]
    #: Trials of each side that there was time for.
    trials: Annotated[int, At("3")]


class UndecidedRecord(Record):
    #: The unclear quantity that differs most; null if none is unclear.
    leading: SaidRecord | None
    #: Trials of each side that would decide; null if more than a hundred.
    trials: int | None
    #: How long these take beyond those that were made; null if that is not known.
    seconds: float | None


class NotShownRecord(Record):
    algorithm: str
    name: str
    profile: str
    cell: Annotated[str, At("place.id")]


class ServesRecord(Record):
    #: How far apart cells may be, as a share of what zones permit (10 % and the metric's absolute margin).
    margin: float
    #: Whether it is shown, in every cell and by two one-sided tests at 5 % each, that one side serves for the other.
    #: False means not shown.
    serves: bool
    #: Metrics in cells that may differ by the margin or more, the widest interval first.
    not_shown: list[NotShownRecord]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Result):
    """All that was compared, the largest changes first. `sentences`: for each feature, what the second side does.

    `margin`: how far apart cells may be if one side serves for the other, as a share of what zones permit. The question
    is asked if the sides are one build on two kernels; `margin` is None if it is not asked.
    """

    SCHEMA = "compare"
    SHOWN = (
        "alpha", "confidence", "family", "trials", "same_build", "sides", "count", "compared=said", "one_sided",
        "left_out", "not_measured", "problems", "lacking", "never_happened=never", "undecided=would_decide",
        "kernels=service",
    )  # fmt: skip
    #: Family-wise error rate over all comparisons: how often anything is reported as moved although nothing did.
    alpha: ClassVar[float] = comparison.ALPHA
    #: Confidence of each interval by itself.
    confidence: ClassVar[float] = comparison.CONFIDENCE

    sides: tuple[ComparedSide, ComparedSide]
    #: Algorithms that are the same build on the same kernel on both sides; nothing was measured for them.
    same_build: tuple[str, ...]
    #: The most trials of each cell and side; where two trials of both sides are alike, no more are needed.
    trials: int
    #: How many quantities share the error rate: all that were planned.
    family: int
    compared: tuple[Compared, ...]
    sentences: Mapping[Quantity, str]
    #: Features that only one side shows.
    one_sided: Annotated[tuple[tuple[Quantity, str], ...], list[OneSidedRecord]] = ()
    #: Cells in which a trial of one side ended in an error, or cannot be made.
    left_out: tuple[LeftOut, ...] = ()
    #: (algorithm, profile, place) that was not measured because the budget ended
    unmeasured: tuple[tuple[str, str, Point], ...] = ()
    #: the same of what differs in a first look, or may, and was to get further trials
    begun: tuple[tuple[str, str, Point], ...] = ()
    #: the same of cells that need not be measured if nothing differs in features, nor where networks change
    rest: tuple[tuple[str, str, Point], ...] = ()
    #: Traces that could not be examined, as sentences.
    problems: tuple[str, ...] = ()
    #: What was not compared because a file lacks it, as sentences.
    lacking: tuple[str, ...] = ()
    margin: float | None = None
    #: Events that never happened in what is compared, and why; "" if they were not tried.
    never: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: whether --changes can make them happen
    can_change: bool = False
    further: Further | None = None

    @property
    def count(self) -> dict[Movement, int]:
        """How many quantities moved, are unclear, and are the same."""
        return {change: len(self.of(change)) for change in Movement}

    @property
    def said(self) -> list[SaidRecord]:
        """What moved, then what is unclear, then what is the same; of each, the largest change first."""
        return [_said(compared, self.sentences.get(compared.quantity)) for compared in self.compared]

    @property
    def not_measured(self) -> Annotated[list[tuple[str, str, Point, int]], list[NotMeasuredRecord]]:
        """Cells that the budget left no time for, also those that need not be measured because nothing else differs."""
        begun = [(*where, comparison.FIRST_LOOK) for where in self.begun]
        return [*((*where, 0) for where in self.unmeasured + self.rest), *begun]

    @property
    def service(self) -> Annotated["Comparison | None", ServesRecord | None]:
        """For one build on two kernels, or two values of a sysctl: whether one side serves for the other; else null."""
        return None if self.margin is None else self

    @property
    def would_decide(self) -> UndecidedRecord | None:
        """What would decide, if nothing is known to have moved and something is unclear or not measured; else null."""
        if self.further is None:
            return None
        first = self.further.leading
        leading = None if first is None else _said(first, self.sentences.get(first.quantity))
        return UndecidedRecord(leading=leading, trials=self.further.trials, seconds=self.further.seconds)

    @property
    def identical(self) -> bool:
        """Whether every difference is exactly zero."""
        return bool(self.compared) and all(c.identical for c in self.compared) and not self.one_sided

    @property
    def late(self) -> tuple[tuple[str, str, Point], ...]:
        """What was not measured in time, and might show a difference."""
        return self.unmeasured if self.identical else self.unmeasured + self.rest

    @property
    def undecided(self) -> int:
        """How many quantities are unclear, or were seen on one side only."""
        return len(self.of(Movement.UNCLEAR)) + len(self.one_sided)

    def of(self, change: Movement) -> list[Compared]:
        """Return the quantities with this change."""
        return [c for c in self.compared if c.change is change]

    @property
    def not_shown(self) -> list[Quantity]:
        """The metrics in cells that may differ by the margin or more, the widest interval first."""
        if self.margin is None:
            return []
        compared = [c for c in self.compared if c.quantity.label is None and not self._equivalent(c)]
        wide = sorted(compared, key=lambda c: c.interval[0] - c.interval[1])
        return [*(q for q, _ in self.one_sided if q.label is None), *(c.quantity for c in wide)]

    @property
    def serves(self) -> bool:
        """Whether one side is shown to serve for the other: in every cell, with none left out and nothing moved."""
        cells = any(c.quantity.label is None for c in self.compared)
        gaps = self.of(Movement.MOVED) or self.left_out or self.late or self.begun or self.not_shown
        return self.margin is not None and cells and not gaps

    def _equivalent(self, c: Compared) -> bool:
        assert self.margin is not None
        return comparison.is_equivalent(c, compare_measured.tolerance(METRICS[c.quantity.name], self.margin))

    @property
    def blind(self) -> bool:
        """Whether there are so few trials that no quantity could have been found to move."""
        least = min((2 / math.comb(sum(c.n), c.n[0]) for c in self.compared), default=1.0)
        return least * self.family > comparison.ALPHA and any(not c.identical for c in self.compared)

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if anything moved, else ERROR or UNKNOWN if something is unclear or was not compared, else DONE.

        With two kernels, it is also UNKNOWN if one is not shown to serve for the other.
        """
        if self.of(Movement.MOVED):
            return ExitStatus.VIOLATES
        failed = of_outcomes(left.measurement.outcome for left in self.left_out)
        nothing = not self.compared and not self.same_build
        unknown = (
            nothing or self.blind or bool(self.undecided or self.left_out or self.late or self.begun or self.problems)
        )
        unknown |= self.margin is not None and not self.serves
        return worst((failed, ExitStatus.UNKNOWN if unknown else ExitStatus.DONE))


def _said(compared: Compared, sentence: str | None) -> SaidRecord:
    return extended(SaidRecord, compared, ComparedRecord, sentence=sentence)

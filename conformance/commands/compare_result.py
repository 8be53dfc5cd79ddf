"""The result of `conformance compare`: what was compared, what could not be, and the exit status that follows."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from conformance.commands import common, compare_measured
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Change, Compared, Quantity
from conformance.model.trials.trial import Measurement, Scheme

#: the default margin: how far apart cells may be if one side serves for the other, as a share of what zones permit
MARGIN = 1.0
#: what the two sides are called, wherever two builds are compared
ROLES = ("base", "head")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side as it was given, and its scheme for each algorithm."""

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
    """A cell or point that is not compared because trials of one side failed or timed out in it."""

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that was compared, the largest changes first. `sentences`: for each feature, what the second side does.

    `margin`: how far apart cells may be if one side serves for the other, as a share of what zones permit. The question
    is asked if the sides are one build on two kernels; `margin` is None if it is not asked.
    """

    sides: tuple[Side, Side]
    #: algorithms for which both sides are the same build on the same kernel, so that nothing can differ
    same_build: tuple[str, ...]
    trials: int
    compared: tuple[Compared, ...]
    sentences: Mapping[Quantity, str]
    #: (quantity, side) of quantities that only one side has
    one_sided: tuple[tuple[Quantity, str], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    #: (algorithm, profile, place) that was not measured because the budget ended
    unmeasured: tuple[tuple[str, str, Point], ...] = ()
    #: the same of cells that need not be measured if nothing differs in features, nor where networks change
    rest: tuple[tuple[str, str, Point], ...] = ()
    #: sentences about traces that could not be made or read
    problems: tuple[str, ...] = ()
    #: sentences about what limits the comparison, such as results that a file lacks
    lacking: tuple[str, ...] = ()
    margin: float | None = None
    #: {event: why} of events of events.py that never happened in what is compared; "" if they were not tried
    never: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: whether --changes can make them happen
    can_change: bool = False
    further: Further | None = None

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
        return len(self.of(Change.UNCLEAR)) + len(self.one_sided)

    def of(self, change: Change) -> list[Compared]:
        """Return the quantities with this change."""
        return [c for c in self.compared if c.change is change]

    @property
    def not_shown(self) -> list[Quantity]:
        """The metrics in cells that may differ by the margin or more, the widest interval first."""
        if self.margin is None:
            return []
        found = [c for c in self.compared if c.quantity.label is None and not self._equivalent(c)]
        wide = sorted(found, key=lambda c: c.interval[0] - c.interval[1])
        return [*(q for q, _ in self.one_sided if q.label is None), *(c.quantity for c in wide)]

    @property
    def serves(self) -> bool:
        """Whether one side is shown to serve for the other: in every cell, with none left out and nothing moved."""
        cells = any(c.quantity.label is None for c in self.compared)
        gaps = self.of(Change.MOVED) or self.left_out or self.late or self.not_shown
        return self.margin is not None and cells and not gaps

    def _equivalent(self, c: Compared) -> bool:
        assert self.margin is not None
        return comparison.is_equivalent(c, compare_measured.tolerance(METRICS[c.quantity.name], self.margin))

    @property
    def blind(self) -> bool:
        """Whether there are so few trials that no quantity could have been found to move."""
        family = max(len(self.compared), 1)
        least = min((2 / math.comb(sum(c.n), c.n[0]) for c in self.compared), default=1.0)
        return least * family > comparison.ALPHA and any(not c.identical for c in self.compared)

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if anything moved, else ERROR or UNKNOWN if something is unclear or was not compared, else DONE.

        With two kernels, it is also UNKNOWN if one is not shown to serve for the other.
        """
        if self.of(Change.MOVED):
            return ExitStatus.VIOLATES
        failed = of_outcomes(left.measurement.outcome for left in self.left_out)
        nothing = not self.compared and not self.same_build
        unknown = nothing or self.blind or bool(self.undecided or self.left_out or self.late or self.problems)
        unknown |= self.margin is not None and not self.serves
        return worst((failed, ExitStatus.UNKNOWN if unknown else ExitStatus.DONE))

    def to_json(self) -> Document:
        """Return a document of schemas/compare.json."""
        return document(
            "compare", self.exit_status, alpha=comparison.ALPHA, confidence=comparison.CONFIDENCE,
            family=len(self.compared), trials=self.trials, same_build=list(self.same_build),
            sides=[
                {"given": side.given, "schemes": [common.scheme_json(scheme) for scheme in side.schemes]}
                for side in self.sides
            ],
            count={str(change): len(self.of(change)) for change in Change},
            compared=[self._json(c) for c in self.compared],
            one_sided=[
                {"algorithm": q.algorithm, "name": q.name, "cell": q.place.id, "side": side}
                for q, side in self.one_sided
            ],
            left_out=[
                {
                    "side": left.side, "algorithm": left.measurement.trial.scheme.algorithm,
                    "profile": left.measurement.setting.profile, "cell": left.place.id,
                    "outcome": str(left.measurement.outcome), "message": left.measurement.message,
                }
                for left in self.left_out
            ],
            not_measured=[
                {"algorithm": algorithm, "profile": profile, "cell": place.id}
                for algorithm, profile, place in self.unmeasured + self.rest
            ],
            problems=list(self.problems), lacking=list(self.lacking), never_happened=dict(self.never),
            undecided=self.further and {
                "leading": self.further.leading and self._json(self.further.leading),
                "trials": self.further.trials, "seconds": self.further.seconds,
            },
            kernels=None if self.margin is None else {
                "margin": self.margin, "serves": self.serves,
                "not_shown": [
                    {"algorithm": q.algorithm, "name": q.name, "profile": q.profile, "cell": q.place.id}
                    for q in self.not_shown
                ],
            },
        )  # fmt: skip

    def _json(self, c: Compared) -> dict[str, Any]:
        q = c.quantity
        known = all(map(math.isfinite, c.interval))
        return {
            "algorithm": q.algorithm, "kind": "feature" if q.label else "metric", "name": q.name, "label": q.label,
            "profile": q.profile, "cell": q.place.id, "change": str(c.change), "before": c.before, "after": c.after,
            "difference": c.difference, "interval": list(c.interval) if known else None, "matters": c.matters,
            "p": c.p, "trials": list(c.n), "identical": c.identical, "sentence": self.sentences.get(q),
        }  # fmt: skip

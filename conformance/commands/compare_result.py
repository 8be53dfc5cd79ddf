"""What `conformance compare` finds out: all that was compared, what could not be, and what follows for its status."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from conformance.commands import common, compare_measured
from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus, of_outcomes, worst
from conformance.model import place as places
from conformance.model.metrics import METRICS
from conformance.model.place import Place
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Change, Compared, Quantity
from conformance.model.trial import Measurement, Scheme

#: of what zones permit, how far apart cells may be where one side serves for the other
MARGIN = 1.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side, as it was given, and the scheme of each algorithm that it came to."""

    given: str
    schemes: tuple[Scheme, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A cell or point that is not compared, as trials of one side failed or timed out in it."""

    side: str
    measurement: Measurement

    @property
    def place(self) -> Place:
        """Return where it is: a cell, or a point of a scenario."""
        return places.of(self.measurement.setting)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All that was compared, the largest changes first. `sentences`: of features, what the second side does.

    `margin`: where the sides are one build on two kernels, how far apart cells may be where one side serves for the
    other, as a share of what zones permit. It is None where that is not asked.
    """

    sides: tuple[Side, Side]
    #: algorithms of which both sides are one build on one kernel: nothing can differ
    same_build: tuple[str, ...]
    trials: int
    compared: tuple[Compared, ...]
    sentences: Mapping[Quantity, str]
    #: features that one side alone shows: (quantity, side)
    one_sided: tuple[tuple[Quantity, str], ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    #: (algorithm, profile, place) that the budget left no time for
    unmeasured: tuple[tuple[str, str, Place], ...] = ()
    #: traces that could not be looked at
    problems: tuple[str, ...] = ()
    #: what was not compared, as a file lacks it
    lacking: tuple[str, ...] = ()
    margin: float | None = None

    def of(self, change: Change) -> list[Compared]:
        """Return what became so."""
        return [c for c in self.compared if c.change is change]

    @property
    def not_shown(self) -> list[Quantity]:
        """Return the metrics in cells that may differ by the margin or more, the widest interval first."""
        if self.margin is None:
            return []
        found = [c for c in self.compared if c.quantity.label is None and not self._equivalent(c)]
        wide = sorted(found, key=lambda c: c.interval[0] - c.interval[1])
        return [*(q for q, _ in self.one_sided if q.label is None), *(c.quantity for c in wide)]

    @property
    def serves(self) -> bool:
        """Say whether it is shown that one side serves for the other: in every cell, none left out, nothing moved."""
        cells = any(c.quantity.label is None for c in self.compared)
        gaps = self.of(Change.MOVED) or self.left_out or self.unmeasured or self.not_shown
        return self.margin is not None and cells and not gaps

    def _equivalent(self, c: Compared) -> bool:
        assert self.margin is not None
        return comparison.is_equivalent(c, compare_measured.tolerance(METRICS[c.quantity.name], self.margin))

    @property
    def blind(self) -> bool:
        """Say whether there are so few trials that nothing could have been said to move."""
        family = max(len(self.compared), 1)
        least = min((2 / math.comb(sum(c.n), c.n[0]) for c in self.compared), default=1.0)
        return least * family > comparison.ALPHA and any(not c.identical for c in self.compared)

    @property
    def exit_status(self) -> ExitStatus:
        """Say VIOLATES if anything moved; else ERROR or UNKNOWN if something could not be compared; else DONE.

        Of two kernels, say UNKNOWN also where it is not shown that one serves for the other.
        """
        if self.of(Change.MOVED):
            return ExitStatus.VIOLATES
        failed = of_outcomes(left.measurement.outcome for left in self.left_out)
        nothing = not self.compared and not self.same_build
        unknown = nothing or self.blind or bool(self.left_out or self.unmeasured or self.problems)
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
                for algorithm, profile, place in self.unmeasured
            ],
            problems=list(self.problems), lacking=list(self.lacking),
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

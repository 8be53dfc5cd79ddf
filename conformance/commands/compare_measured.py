"""Measure the sides of `conformance compare`, and turn their measurements into values of metrics."""

import dataclasses
from collections.abc import Mapping, Sequence

from conformance.commands.measuring import answers
from conformance.engine.benches import Bench
from conformance.engine.plan import plan
from conformance.engine.questions import Key
from conformance.model.diagnosis.feature_table import FOLLOWS
from conformance.model.metric import RELATIVE_MARGIN, Metric
from conformance.model.place import Place
from conformance.model.studies.comparison import Quantity, Tolerance
from conformance.model.trial import Measurement, Outcome
from conformance.support.notes import Notes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One side: `good` holds settings whose trials all succeeded, `left_out` a failed trial of each other setting."""

    good: Mapping[Key, Sequence[Measurement]]
    left_out: Mapping[Key, Measurement]


def measured(
    bench: Bench, work: Sequence[Key], seeds: range, results: str, workers: int | None, notes: Notes,
    budget_s: float | None = None,
) -> Measured:  # fmt: skip
    """Measure all seeds of each setting; settings not measured within `budget_s` seconds are in neither mapping.

    Raises UserError.
    """
    asked = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    made = answers(asked, bench, results, workers, notes, budget_s=budget_s, compares_kernels=True)
    found = {answer.key: answer.measurements for answer in made}
    return sorted_out(found)


def sorted_out(found: Mapping[Key, Sequence[Measurement]]) -> Measured:
    """Separate the settings whose trials all succeeded from the others."""
    bad = {key: [m for m in made if m.outcome is not Outcome.OK] for key, made in found.items()}
    return Measured(
        good={key: made for key, made in found.items() if not bad[key]},
        left_out={key: trials[0] for key, trials in bad.items() if trials},
    )


def quantity(metric: Metric, algorithm: str, profile: str, place: Place, tolerance: Tolerance) -> Quantity:
    """Return a metric in a cell or at a point as a Quantity; its weight says that it follows from other behavior."""
    return Quantity(
        algorithm=algorithm, name=metric.name, place=place, profile=profile, tolerance=tolerance,
        digits=metric.digits + 1, unit=metric.unit, weight=FOLLOWS,
    )  # fmt: skip


def tolerance(metric: Metric, share: float) -> Tolerance:
    """Return a share of the deviation that zones permit from a value of a metric."""
    return Tolerance(absolute=metric.margin * share, relative=RELATIVE_MARGIN * share)


def values(metric: Metric, measurements: Sequence[Measurement]) -> dict[int, float]:
    """Return {seed: value}, in order of seed, of the measurements that have the metric."""
    found = {m.trial.seed: metric.of(m) for m in measurements}
    return {seed: value for seed, value in sorted(found.items()) if value is not None}

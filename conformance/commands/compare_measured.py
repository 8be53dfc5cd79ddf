"""Measure the two sides of `conformance compare` alike: all trials of each setting, and what their metrics are."""

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
    """One side: `good` are the settings whose trials all succeeded; `left_out` has a trial of each that did not."""

    good: Mapping[Key, Sequence[Measurement]]
    left_out: Mapping[Key, Measurement]


def measured(
    bench: Bench, work: Sequence[Key], seeds: range, results: str, workers: int | None, notes: Notes,
    budget_s: float | None = None,
) -> Measured:  # fmt: skip
    """Measure all seeds of each setting; those that were not measured after `budget_s` seconds are in neither.

    Raise UserError.
    """
    asked = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    made = answers(asked, bench, results, workers, notes, budget_s=budget_s, compares_kernels=True)
    found = {answer.key: answer.measurements for answer in made}
    return sorted_out(found)


def sorted_out(found: Mapping[Key, Sequence[Measurement]]) -> Measured:
    """Tell settings whose trials all succeeded from others."""
    bad = {key: [m for m in made if m.outcome is not Outcome.OK] for key, made in found.items()}
    return Measured(
        good={key: made for key, made in found.items() if not bad[key]},
        left_out={key: trials[0] for key, trials in bad.items() if trials},
    )


def quantity(metric: Metric, algorithm: str, profile: str, place: Place, tolerance: Tolerance) -> Quantity:
    """Return a metric at a cell or a point as something to compare. It follows from what an algorithm does."""
    return Quantity(
        algorithm=algorithm, name=metric.name, place=place, profile=profile, tolerance=tolerance,
        digits=metric.digits + 1, unit=metric.unit, weight=FOLLOWS,
    )  # fmt: skip


def tolerance(metric: Metric, share: float) -> Tolerance:
    """Return this share of what zones permit around a value of a metric."""
    return Tolerance(absolute=metric.margin * share, relative=RELATIVE_MARGIN * share)


def values(metric: Metric, measurements: Sequence[Measurement]) -> dict[int, float]:
    """Return {seed: value} of those that have the metric."""
    found = {m.trial.seed: metric.of(m) for m in measurements}
    return {seed: value for seed, value in sorted(found.items()) if value is not None}

"""Measure the sides of `conformance compare`: values of metrics."""

import dataclasses
import time
from collections.abc import Mapping, Sequence

from conformance.commands.measuring import answers
from conformance.engine.benches import Bench, Means
from conformance.engine.progress import RunProgress
from conformance.model.diagnosis.feature_table import FOLLOWS
from conformance.model.judging.question import Key
from conformance.model.judging.session import plan
from conformance.model.metrics.metric import RELATIVE_MARGIN, Metric
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Quantity, Tolerance
from conformance.model.trials.trial import Measurement, Outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSide:
    """One side: `good` holds settings whose trials say what the stack does, `left_out` a bad trial of any other."""

    good: Mapping[Key, Sequence[Measurement]]
    left_out: Mapping[Key, Measurement]


@dataclasses.dataclass(kw_only=True)
class TrialCost:
    """How many trials were made, not found in files, and the wall seconds that they took."""

    trials: int = 0
    seconds: float = 0.0

    def add(self, trials: int, since_s: float) -> None:
        """Add trials that were made since a time of time.monotonic()."""
        self.trials += trials
        self.seconds += time.monotonic() - since_s if trials else 0.0

    def estimate_s(self, trials: int) -> float | None:
        """Return how long so many further trials take at the pace so far; None if it is not known."""
        return self.seconds / self.trials * trials if self.trials else None


def measured(
    bench: Bench, work: Sequence[Key], seeds: range, means: Means, budget_s: float | None, role: str,
    spent: TrialCost,
) -> dict[Key, Sequence[Measurement]]:  # fmt: skip
    """Return the measurements of all seeds of each setting that is measured within `budget_s` seconds.

    `role` names the side in the progress bar; what is made is added to `spent`. Raises UserError.
    """
    planned = plan(trials=len(seeds), first_seed=seeds[0], work=work)
    began_s, fresh = time.monotonic(), 0

    def count(progress: RunProgress) -> None:
        nonlocal fresh
        fresh = progress.fresh

    answered = answers(
        planned, bench, means, budget_s=budget_s, compares_kernels=True, what=f"measuring {role}", on_trial=count,
    )  # fmt: skip
    measurements = {answer.key: answer.measurements for answer in answered}
    spent.add(fresh, began_s)
    return measurements


def sorted_out(measurements: Mapping[Key, Sequence[Measurement]]) -> MeasuredSide:
    """Separate the settings whose trials say what the stack does, also if that is to fail or to last, from the others.

    A stack that serves one body on a connection cannot pause, which is no reason to leave out what else it does where
    packets are kept. A state that never came is no error, either.
    """
    bad = {
        key: [
            m
            for m in trials
            if not m.never_came
            and (m.outcome is Outcome.ERROR or (m.outcome is Outcome.UNSUPPORTED and not key[1].packets))
        ]
        for key, trials in measurements.items()
    }
    return MeasuredSide(
        good={key: measurements for key, measurements in measurements.items() if not bad[key]},
        left_out={key: trials[0] for key, trials in bad.items() if trials},
    )


def quantity(metric: Metric, algorithm: str, profile: str, place: Point, matters: float) -> Quantity:
    """Return a metric in a cell or at a point as a Quantity; its weight says that it follows from other behavior."""
    return Quantity(
        algorithm=algorithm, name=metric.name, place=place, profile=profile, tolerance=tolerance(metric, matters),
        digits=metric.digits + 1, unit=metric.unit, weight=FOLLOWS,
    )  # fmt: skip


def tolerance(metric: Metric, share: float) -> Tolerance:
    """Return a share of the deviation that zones permit from a value of a metric."""
    return Tolerance(absolute=metric.margin * share, relative=RELATIVE_MARGIN * share)


def values(metric: Metric, measurements: Sequence[Measurement]) -> dict[int, float]:
    """Return {seed: value}, in order of seed, of the measurements that have the metric."""
    by_seed = {m.trial.seed: metric.value(m) for m in measurements}
    return {seed: value for seed, value in sorted(by_seed.items()) if value is not None}

"""What a search looks for: how much worse a stack does in one network than the stack that it is compared with.

Each goal has a value of a trial, and the smallest difference that counts: a *score* of 1. Scores guide the search; what
it finds counts if trials with fresh seeds show the same (model/studies/comparison.py).
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy

from conformance.model.captures.packets import LOST
from conformance.model.clauses.seen import Invisible, View
from conformance.model.judging import statistics
from conformance.model.metrics import group_metrics
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Quantity, Tolerance, Values
from conformance.model.trials.trial import Measurement, Outcome


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`of`: the value of a trial, None if the trial does not say. `worse`: 1 if more is worse, -1 if less, 0 if either.

    `matters`: the smallest difference between the two stacks that counts.
    """

    name: str
    title: str
    unit: str
    digits: int
    matters: Tolerance
    worse: int
    of: Callable[[Measurement], float | None]
    is_share: bool = False

    def values(self, measurements: Sequence[Measurement]) -> Values:
        """Return {seed: value} of the trials that say it."""
        by_seed = {measurement.trial.seed: self.of(measurement) for measurement in measurements}
        return {seed: value for seed, value in by_seed.items() if value is not None}

    def score(self, ours: Sequence[Measurement], theirs: Sequence[Measurement]) -> float | None:
        """Return how much worse the stack does, in units of what matters; None if a side's trials do not say."""
        sides = [list(self.values(side).values()) for side in (ours, theirs)]
        if not all(sides):
            return None
        mine, other = (statistics.median(side) for side in sides)
        least = self.matters.of(other, mine)
        size = (mine - other) / least if least else 0.0
        return abs(size) if self.worse == 0 else size * self.worse

    def quantity(self, algorithm: str, profile: str, place: Point) -> Quantity:
        """Return what is compared with fresh seeds."""
        return Quantity(
            algorithm=algorithm, name=self.name, place=place, profile=profile, tolerance=self.matters,
            digits=self.digits, unit=self.unit, label=self.name, is_share=self.is_share,
        )  # fmt: skip


def _throughput_mbps(measurement: Measurement) -> float | None:
    """Return the goodput; of a transfer that did not end, the rate at which packets arrived."""
    if measurement.outcome is Outcome.OK:
        return group_metrics.goodput_mbps(measurement, None)
    view = _view(measurement)
    if view is None or view.over_s <= 0:
        return None
    arrived = view.packets.bytes[view.packets.out_ns != LOST].sum()
    return float(8 * arrived / view.over_s / 1e6)


def _silence_s(measurement: Measurement) -> float | None:
    """Return the longest time without a packet from the server, until the transfer is over."""
    view = _view(measurement)
    if view is None or not len(view.sent_s):
        return None
    gaps = numpy.diff(numpy.append(view.sent_s, max(view.over_s, view.sent_s[-1])))
    return float(gaps.max())


def _fails(measurement: Measurement) -> float | None:
    """Return 1 if the stack fails where another one gets through, else 0; None if it is not known."""
    if measurement.outcome is not Outcome.FAILED:
        return 0.0 if measurement.outcome in (Outcome.OK, Outcome.TIMEOUT) else None
    control = measurement.control
    return None if control is None else float(measurement.trial.seed not in control.failures)


def _view(measurement: Measurement) -> View | None:
    if measurement.outcome not in (Outcome.OK, Outcome.TIMEOUT):
        return None
    try:
        return View.of(measurement)
    except Invisible:
        return None


#: the goal that other goals' trials may show, too; it is the last to be shrunk
FAILURE = "failure"
#: {name: Goal}
GOALS: Mapping[str, Goal] = {
    goal.name: goal
    for goal in (
        Goal(
            name="throughput", title="lowest throughput", unit="Mbit/s", digits=2, worse=-1,
            matters=Tolerance(relative=1.0), of=_throughput_mbps,  # half of the other's
        ),
        Goal(
            name="standstill", title="longest silence", unit="s", digits=2, worse=1,
            matters=Tolerance(absolute=2.0, relative=2.0), of=_silence_s,  # three times as long, and two seconds more
        ),
        Goal(
            name="loss", title="most packets dropped by the queue", unit="%", digits=2, worse=1,
            matters=Tolerance(absolute=2.0, relative=2.0),  # as for silence
            of=lambda trial: group_metrics.dropped_pct(trial, None),
        ),
        Goal(
            name="disagreement", title="largest disagreement in throughput", unit="Mbit/s", digits=2, worse=0,
            matters=Tolerance(relative=1.0), of=_throughput_mbps,
        ),
        Goal(
            name=FAILURE, title="a transfer that fails", unit="", digits=2, worse=1, matters=Tolerance(absolute=0.5),
            of=_fails, is_share=True,
        ),
    )
}  # fmt: skip

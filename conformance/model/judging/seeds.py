"""Set apart the seeds of references (from 1 on), of judged trials, and of trials that repeat a violation.

A trial with a reference's seed meets the same random losses as the reference did, and so is no independent witness.
"""

from collections.abc import Iterable

from conformance.model.judging.verdict import MOST_TRIALS
from conformance.model.trials.trial import Measurement

#: the first seed of judged trials, unless another is asked for: no reference has as many trials
JUDGED = 1001
#: the distance from the first seed of trials that violated to that of their repeats: no cell has more trials
FRESH = MOST_TRIALS


def repeats_apart(measurements: Iterable[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Return (trials, those that repeat them with fresh seeds) of one cell, each in order of seed."""
    ordered = sorted(measurements, key=lambda m: m.trial.seed)
    fresh = ordered[0].trial.seed + FRESH if ordered else 0
    return [m for m in ordered if m.trial.seed < fresh], [m for m in ordered if m.trial.seed >= fresh]

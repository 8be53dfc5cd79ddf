"""Which seeds trials have: references from 1 on, what is judged off these, and what repeats a violation off both.

A trial with a reference's seed meets the same random losses as the reference did, and so is no independent witness.
"""

from collections.abc import Iterable

from conformance.model.trial import Measurement
from conformance.model.verdict import MOST_TRIALS

#: of trials that are judged, where nothing else is asked for: no reference has as many trials
JUDGED = 1001
#: of trials that repeat a violation, beyond the first seed of those that violated: no cell has as many trials
FRESH = MOST_TRIALS


def repeats_apart(measurements: Iterable[Measurement]) -> tuple[list[Measurement], list[Measurement]]:
    """Return (trials, those that repeat them with fresh seeds) of one cell, each in order of seed."""
    ordered = sorted(measurements, key=lambda m: m.trial.seed)
    fresh = ordered[0].trial.seed + FRESH if ordered else 0
    return [m for m in ordered if m.trial.seed < fresh], [m for m in ordered if m.trial.seed >= fresh]

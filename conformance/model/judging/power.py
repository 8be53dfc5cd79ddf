"""Compute what a cell of a zone can tell: how far a scheme's median must be from the reference's to violate.

The scheme is made up: it does what the reference did, with every trial multiplied by one factor (or, if the reference's
median is next to nothing, with something added). A shift is *told* if such a scheme violates the zone in at least POWER
of all runs, by the test of verdict.py. Runs are drawn from the reference's own trials, and the draws are always the
same.
"""

import bisect
import dataclasses
import functools
import math
from typing import TYPE_CHECKING

from conformance.model.judging import statistics
from conformance.model.judging.words import DIGITS
from conformance.model.judging.zone import Interval
from conformance.model.metrics.table import METRICS

if TYPE_CHECKING:  # numpy is imported late: it takes long, and few verdicts need it
    import numpy as np
    import numpy.typing as npt

    FloatRows = npt.NDArray[np.float64]

#: the share of runs that must find a shift for it to count as told
POWER = 0.8
#: the shift that a cell must tell to be counted: a scheme that has this share less, or this share more
MUST_TELL = 0.3
#: why a cell that does not tell it is not judged
BLIND = f"a shift of {100 * MUST_TELL:.0f} % cannot be detected"
#: the most trials of a cell, and the most questions, in a usual session: what zones can tell is stated for these
TRIALS, QUESTIONS = 20, 400
_DRAWS = 200
_SEED = 1
#: factors of the shifts that are tried: from 1.02 to eight, each 2 % greater than the one before
_FACTORS = tuple(1.02**step for step in range(1, 106))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The nearest medians below and above the reference's that are told; None if none is.

    `down` and `up` are the distances to them as shares of the reference's median: 0.2 for 20 % less or more. Where the
    absolute margin is more than the relative one, `of_median` is false, and they are shares of the value at which both
    margins are the same.
    """

    low: float | None
    high: float | None
    down: float | None
    up: float | None
    of_median: bool

    @property
    def words(self) -> str:
        """What would have been detected, as a part of a sentence: shifts, or medians if shares are not of a median."""
        if self.of_median:
            shifts = ((self.down, "less"), (self.up, "more"))
            shown = [f"{shift:.0%} {which}".replace("%", " %") for shift, which in shifts if shift is not None]
            return " or ".join(shown) or "no shift"
        ends = (("at most", self.low), ("at least", self.high))
        medians = " or ".join(f"{which} {end:.{DIGITS}f}" for which, end in ends if end is not None)
        return f"a median of {medians}" if medians else "no shift"

    @property
    def enough(self) -> bool:
        """Whether the cell tells what it must tell to be counted, on either side."""
        return any(shift is not None and shift <= MUST_TELL for shift in (self.down, self.up))


@functools.lru_cache(maxsize=4096)
def told(permitted: Interval, metric: str, n: int, level: float) -> Told:
    """Return what `n` trials in a cell tell if a violation needs a p-value of at most `level`."""
    import numpy as np

    reference, margin = permitted.basis, permitted.margin
    drawn = np.random.default_rng(_SEED).choice(np.array(reference.values), size=(_DRAWS, n))
    of = METRICS[metric]
    median = reference.median
    even = margin.absolute / margin.relative if margin.relative else math.inf
    of_median = median >= even

    def moved(factor: float, up: bool) -> "tuple[float, FloatRows]":
        if of_median:
            by = factor if up else 1 / factor
            return median * by, drawn * by
        add = even * (factor - 1) * (1 if up else -1)
        return median + add, drawn + add

    def nearest(up: bool) -> float | None:
        # The farther all trials are moved, the more runs are outside, so bisection finds the first factor that
        # suffices.
        def suffices(factor: float) -> bool:
            return _found(moved(factor, up)[1], permitted, level, up) >= POWER

        first = bisect.bisect_left(_FACTORS, True, key=suffices)
        if first == len(_FACTORS):
            return None
        at, _ = moved(_FACTORS[first], up)
        return None if at < of.least or (of.most is not None and at > of.most) else at

    low, high, scale = nearest(False), nearest(True), max(median, even)
    return Told(
        low=low,
        high=high,
        down=(median - low) / scale if low is not None else None,
        up=(high - median) / scale if high is not None else None,
        of_median=of_median,
    )


def _found(rows: "FloatRows", permitted: Interval, level: float, up: bool) -> float:
    """Return the share of runs (rows of trials) that violate the zone on one side."""
    import numpy as np

    n = rows.shape[1]
    rank = _interval_rank(n)
    if rank is None:
        return 0.0
    ordered = np.sort(rows, axis=1)
    outside = ordered[:, rank - 1] > permitted.high if up else ordered[:, n - rank] < permitted.low
    for basis in permitted.bases:
        shifted = np.array([(permitted.margin.above if up else permitted.margin.below)(v) for v in basis.values])
        wins = np.searchsorted(shifted, rows, side="left") + np.searchsorted(shifted, rows, side="right")
        statistic = wins.sum(axis=1) / 2 if up else n * len(shifted) - wins.sum(axis=1) / 2
        outside &= statistic >= statistics.mann_whitney_critical(n, len(shifted), level / 2)
    return float(outside.mean())


@functools.cache
def _interval_rank(n: int) -> int | None:
    """Return k such that the median's interval reaches from the k-th smallest value to the k-th largest."""
    low, _ = statistics.median_interval(range(1, n + 1))
    return None if math.isinf(low) else int(low)

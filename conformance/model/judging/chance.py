"""Compute how likely a basis itself would have values as far outside the permitted interval as a scheme's."""

from collections.abc import Iterable, Sequence

from conformance.model.judging import statistics
from conformance.model.judging.zone import Interval


def below(values: Sequence[float], permitted: Interval) -> float:
    """Return the chance that a basis, moved down by the margin, would rank so low: the greatest over the bases."""
    negated = [-value for value in values]
    moved = ([-permitted.margin.below(value) for value in basis.values] for basis in permitted.bases)
    return _doubled(statistics.rank_sum_p(negated, of) for of in moved)


def above(values: Sequence[float], permitted: Interval) -> float:
    """Return the chance that a basis, moved up by the margin, would rank so high: the greatest over the bases."""
    moved = ([permitted.margin.above(value) for value in basis.values] for basis in permitted.bases)
    return _doubled(statistics.rank_sum_p(values, of) for of in moved)


def _doubled(chances: Iterable[float]) -> float:
    """Return the greatest, doubled: the chance of being so far outside on either side."""
    return min(1.0, 2 * max(chances))

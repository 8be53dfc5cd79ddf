"""Compute how likely a basis itself would have values as far outside the permitted interval as a scheme's."""

import dataclasses
from collections.abc import Sequence

from conformance.model.judging import statistics
from conformance.model.judging.zone import Basis, Interval, Margin


def below(values: Sequence[float], permitted: Interval) -> float:
    """Return the chance that a basis, moved down by the margin, would rank so low: the greatest over the bases."""
    return above([-value for value in values], _mirrored(permitted))


def above(values: Sequence[float], permitted: Interval) -> float:
    """Return the chance that a basis, moved up by the margin, would rank so high: the greatest over the bases.

    It is doubled: the chance of being so far outside on either side. If only the range of a basis is known, the given
    values beyond that whole range are counted.
    """
    return min(1.0, 2 * max(_of_basis(basis, values, permitted) for basis in permitted.bases))


def _of_basis(basis: Basis, values: Sequence[float], permitted: Interval) -> float:
    n = len(values)
    if basis.values:
        return statistics.rank_sum_p(values, [permitted.margin.above(value) for value in basis.values])
    most = permitted.margin.above(basis.max)
    return statistics.exceedance_p(n, sum(value > most for value in values), basis.n)


def _mirrored(permitted: Interval) -> Interval:
    """Return the interval with every value negated, so that what is below it becomes what is above.

    The margin is a share of a value, so it is applied before the values are negated.
    """
    margin = permitted.margin
    bases = tuple(
        Basis(
            reference=basis.reference, n=basis.n, median=-margin.below(basis.median), min=-margin.below(basis.max),
            max=-margin.below(basis.min), values=tuple(-margin.below(value) for value in reversed(basis.values)),
        )
        for basis in permitted.bases
    )  # fmt: skip
    return dataclasses.replace(
        permitted, low=-permitted.high, high=-permitted.low, bases=bases, margin=Margin(relative=0.0, absolute=0.0)
    )

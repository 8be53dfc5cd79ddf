"""How likely a basis itself would have values so far outside of what is permitted."""

import dataclasses
from collections.abc import Sequence

from conformance.model import statistics
from conformance.model.zone import Basis, Interval, Margin


def below(values: Sequence[float], permitted: Interval) -> float:
    """Return how likely a basis, as far below as the margin allows, would rank so low: of the bases, the likeliest."""
    return above([-value for value in values], _mirrored(permitted))


def above(values: Sequence[float], permitted: Interval) -> float:
    """Return how likely a basis, as far above as the margin allows, would rank so high: of the bases, the likeliest.

    The chance is of being so far outside on either side.
    A bound that was not drawn from values, but from a formula or a published figure, is taken to hold the median, no
    more. Where only the range of a basis is known, its trials beyond all of that count.
    """
    return min(1.0, 2 * max(_of_basis(basis, values, permitted) for basis in permitted.bases))


def _of_basis(basis: Basis, values: Sequence[float], permitted: Interval) -> float:
    n = len(values)
    if basis.values:
        return statistics.rank_sum_p(values, [permitted.margin.above(value) for value in basis.values])
    if basis.n:
        most = permitted.margin.above(basis.max)
        return statistics.exceedance_p(n, sum(value > most for value in values), basis.n)
    return statistics.sign_test_p(n, sum(value > permitted.high for value in values))


def _mirrored(permitted: Interval) -> Interval:
    """Return the same with every value negated, so that what is below becomes what is above.

    The margin is a share of a value, so it is taken before.
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

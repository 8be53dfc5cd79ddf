"""Compute what trials say beyond chance: medians with their confidence intervals, and the chance of a false alarm.

Nothing here assumes a distribution: all of it rests on the order of values alone.

The interval between the k-th smallest and the k-th largest of n independent values holds the median with probability
1 - 2 P[Binomial(n, 1/2) < k], whatever the distribution (H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed.,
section 7.1). With 5 values the widest one, minimum to maximum, has 93.75 %.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, median as median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def median_interval(values: Iterable[float], confidence: float = 0.9) -> tuple[float, float]:
    """Return (low, high), the narrowest symmetric order-statistic interval with at least this confidence.

    If there are too few values for that confidence (fewer than 5 for 90 %), nothing is known: (-inf, inf).
    """
    ordered = sorted(values)
    n = len(ordered)
    best = (-math.inf, math.inf)
    below = 0.0
    for k in range(1, n // 2 + 1):
        below += math.comb(n, k - 1) / 2**n
        if 1 - 2 * below < confidence:
            break
        best = (ordered[k - 1], ordered[n - k])
    return best


def bias_and_rms(differences: Sequence[float]) -> tuple[float, float]:
    """Return (mean, root mean square) of differences. Raises ValueError if there is none."""
    if not differences:
        raise ValueError("no differences")
    n = len(differences)
    return math.fsum(differences) / n, math.sqrt(math.fsum(d * d for d in differences) / n)


def exceedance_p(n: int, k: int, reference_n: int) -> float:
    """Return the probability that at least k of n trials lie below all of `reference_n` others of one distribution.

    Then the k smallest of all n + reference_n values are among the n: C(n, k) / C(n + reference_n, k), and by symmetry
    the same above (exceedances: E. J. Gumbel, H. von Schelling, Ann. Math. Stat. 21, 1950; precedence tests:
    N. Balakrishnan, H. K. T. Ng, Precedence-Type Tests and Applications, 2006, chapter 3). For 5 of 5 trials outside
    the range of 20 of the reference, it is 1.9e-5.
    """
    return math.comb(n, k) / math.comb(n + reference_n, k)


def chi_squared_above(x: float, degrees: int) -> float:
    """Return the probability that chi-squared with so many degrees of freedom exceeds x."""
    half = max(x, 0.0) / 2
    # Q(a + 1, x) = Q(a, x) + x**a exp(-x) / Gamma(a + 1), from a = 1/2 or 1 on (NIST DLMF 8.8.6)
    a = 0.5 if degrees % 2 else 1.0
    chance = math.erfc(math.sqrt(half)) if degrees % 2 else math.exp(-half)
    while a < degrees / 2:
        chance += half**a * math.exp(-half) / math.gamma(a + 1)
        a += 1
    return min(1.0, chance)


def sign_test_p(n: int, k: int) -> float:
    """Return the probability that at least k of n values lie on one given side of their true median.

    The sign test, one-sided and exact (Conover, Practical Nonparametric Statistics, 3.4).
    """
    return sum(math.comb(n, more) for more in range(max(k, 0), n + 1)) / (1 << n)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values: at most alpha exactly where Holm's procedure rejects at family-wise rate alpha.

    The chance that any true hypothesis is among those rejected is at most alpha, however they depend on each other
    (S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Stat. 6, 1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted


#: above this many values, of both kinds together, the normal approximation is used: its error is far below what matters
MOST_EXACT = 400


def mid_ranks(values: Iterable[float]) -> tuple[dict[float, int], tuple[int, ...]]:
    """Return twice the mean rank of each value, {value: an integer}, and the sizes of groups of ties, in order."""
    groups = [(value, len(list(equal))) for value, equal in itertools.groupby(sorted(values))]
    doubled, before = {}, 0
    for value, size in groups:
        doubled[value] = 2 * before + size + 1
        before += size
    return doubled, tuple(size for _, size in groups)


def rank_sum_p(values: Sequence[float], others: Sequence[float]) -> float:
    """Return how likely `values` would rank so high among themselves and `others`, if all were of one distribution.

    It is the p-value of Wilcoxon's rank-sum test, one-sided, exact, ties included: of all ways to choose as many of all
    values, the share whose ranks (mean ranks for equal values) add up to as much or more (F. Wilcoxon, Biometrics
    Bulletin 1, 1945; E. L. Lehmann, Nonparametrics, 1975, section 1.4). Raises ValueError if either is empty.
    """
    if not values or not others:
        raise ValueError("a rank sum needs values of both kinds")
    doubled, sizes = mid_ranks([*values, *others])
    observed = sum(doubled[value] for value in values)
    if sum(sizes) > MOST_EXACT:
        mean, deviation = rank_sum_moments(len(values), sizes)
        return 0.5 * math.erfc((observed / 2 - 0.5 - mean) / (math.sqrt(2) * deviation)) if deviation else 1.0
    return float(rank_sum_tails(len(values), sizes)[observed])


@functools.lru_cache(maxsize=256)
def rank_sum_tails(n: int, sizes: tuple[int, ...]) -> "npt.NDArray[np.float64]":
    """Return, for each doubled rank sum, the share of all choices of n values that have it or a higher one.

    `sizes`: those of the groups of equal values, in order. The array runs from 0 to the highest doubled rank sum.
    """
    import numpy as np

    tails = np.cumsum(rank_sum_ways(n, sizes)[::-1])[::-1] / math.comb(sum(sizes), n)
    return np.minimum(tails, 1.0)


@functools.lru_cache(maxsize=256)
def rank_sum_ways(n: int, sizes: tuple[int, ...]) -> "npt.NDArray[np.float64]":
    """Return, for each doubled rank sum, how many choices of n values have it, 0 < n < sum(sizes).

    `sizes`: those of the groups of equal values, in order. The array runs from 0 to the highest doubled rank sum. To
    save memory, ways are counted for the fewer values, those that are chosen or the rest; the rank sum of one is that
    of all values less that of the other.
    """
    import numpy as np

    total = sum(sizes)
    fewer = min(n, total - n)
    highest = fewer * (2 * total - fewer + 1)
    ways = np.zeros((fewer + 1, highest + 1))
    ways[0, 0] = 1.0
    before = 0
    for size in sizes:
        rank = 2 * before + size + 1
        for _ in range(size):
            ways[1:, rank:] += ways[:-1, : highest + 1 - rank].copy()
        before += size
    counts: npt.NDArray[np.float64] = ways[fewer].copy()
    if fewer < n:
        of_all, lowest = total * (total + 1), fewer * (fewer + 1)
        counts = np.concatenate((np.zeros(of_all - highest), counts[lowest:][::-1]))
    return counts


def rank_sum_moments(n: int, sizes: tuple[int, ...]) -> tuple[float, float]:
    """Return mean and standard deviation of the rank sum of n values, with correction for ties (Lehmann, 1.4)."""
    total = sum(sizes)
    ties = sum(size**3 - size for size in sizes) / (total * (total - 1))
    return n * (total + 1) / 2, math.sqrt(n * (total - n) / 12 * (total + 1 - ties))


@functools.cache
def mann_whitney_critical(n: int, others: int, chance: float) -> float:
    """Return the least Mann-Whitney statistic of n values against others, without ties, that has at most this chance.

    It is infinite if there is none. For many values it comes from the normal approximation.
    """
    sizes, least = (1,) * (n + others), n * (n + 1) / 2
    if n + others > MOST_EXACT:
        mean, deviation = rank_sum_moments(n, sizes)
        critical = math.ceil(mean - least + 0.5 - NormalDist().inv_cdf(chance) * deviation)
        return critical if critical <= n * others else math.inf
    sums = (rank_sum_tails(n, sizes) <= chance).nonzero()[0]
    return float(sums[0] / 2 - least) if len(sums) else math.inf

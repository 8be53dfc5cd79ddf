"""What trials say beyond chance: medians with their confidence intervals, and the chance of a false alarm.

Nothing here assumes a distribution; all of it rests on order alone.

The interval between the k-th smallest and the k-th largest of n independent values holds the median with
probability 1 - 2 P[Binomial(n, 1/2) < k], whatever the distribution (H. A. David, H. N. Nagaraja, Order
Statistics, 3rd ed., section 7.1). With 5 values the widest one, minimum to maximum, has 93.75 %.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import median as median


def median_interval(values: Iterable[float], confidence: float = 0.9) -> tuple[float, float]:
    """Return (low, high), the narrowest symmetric order-statistic interval with at least this confidence.

    Where there are too few values for that confidence (fewer than 5 for 90 %), nothing is known:
    (-inf, inf).
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
    """Return (mean, root mean square) of differences. Raises ValueError when there is none."""
    if not differences:
        raise ValueError("no differences")
    n = len(differences)
    return math.fsum(differences) / n, math.sqrt(math.fsum(d * d for d in differences) / n)


def exceedance_p(n: int, k: int, reference_n: int) -> float:
    """Return the probability that at least k of n trials lie below all of `reference_n` others, of one distribution.

    Then the k smallest of all n + reference_n values are all of the first kind: C(n, k) / C(n + reference_n, k), and
    by symmetry the same above (exceedances: E. J. Gumbel, H. von Schelling, Ann. Math. Stat. 21, 1950; precedence
    tests: N. Balakrishnan, H. K. T. Ng, Precedence-Type Tests and Applications, 2006, chapter 3). 5 of 5 trials
    outside what 20 of the reference did: 1.9e-5.
    """
    return math.comb(n, k) / math.comb(n + reference_n, k)


def sign_test_p(n: int, k: int) -> float:
    """Return the probability that at least k of n values lie on one given side of their median, or beyond it."""
    import scipy.stats  # late: it takes long, and few verdicts need it

    return float(scipy.stats.binom.sf(k - 1, n, 0.5))


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


def holm(p_values: Sequence[float], alpha: float) -> set[int]:
    """Return the indices of the hypotheses that Holm's procedure rejects: {index}."""
    return {index for index, p in enumerate(holm_adjusted(p_values)) if p <= alpha}

"""Medians and their confidence intervals, from order statistics.

The interval between the k-th smallest and the k-th largest of n independent values holds the median with
probability 1 - 2 P[Binomial(n, 1/2) < k], whatever the distribution (H. A. David, H. N. Nagaraja, Order
Statistics, 3rd ed., section 7.1). With 5 values the widest one, minimum to maximum, has 93.75 %.
"""

import math


def median(values):
    """The middle value, or the mean of the two middle ones. Raises ValueError when there is none."""
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values, no median")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def median_interval(values, confidence=0.9):
    """(low, high): the narrowest symmetric order-statistic interval with at least this confidence.

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


def bias_and_rms(differences):
    """(mean, root mean square) of differences. Raises ValueError when there is none."""
    if not differences:
        raise ValueError("no differences")
    n = len(differences)
    return math.fsum(differences) / n, math.sqrt(math.fsum(d * d for d in differences) / n)

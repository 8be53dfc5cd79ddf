"""Find cells in which trials fall into two modes, and compare a scheme's share of trials in the lower mode.

BBRv2 and BBRv3 near their loss threshold fill the link in some trials and all but stop in others. A median says nothing
of that: if half of the reference's trials are low, a stack that is low in every trial has a permitted median. The share
of trials in the low mode does show it, by Fisher's exact test (R. A. Fisher, J. R. Stat. Soc. 85, 1922), which assumes
nothing of either mode. The reference should have 60 trials: if 20 of 20 trials of a stack are low, p is 4e-4 against 10
of 20, which is too much if many cells are judged, and 2e-5 against 30 of 60.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence

from conformance.model.judging.zone import Basis, Interval, Margin
from conformance.model.metrics.metric import Metric

#: the least share of the variance that two modes must explain. The best cut of a normal distribution explains 2/pi,
#: that of a uniform one 3/4. Of draws of 60 uniform values, 1 in 800 reaches this share; of 30 values, 1 in 50; of
#: normal values, next to none
_EXPLAINED = 0.85
#: the least share of the trials that each mode must have: fewer are a tail
_LEAST_SHARE = 0.15
#: the fewest values that can show modes
_FEWEST = 30


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Two modes: `low` of `n` values lie below `threshold`, the middle of the gap between them."""

    threshold: float
    low: int
    n: int

    @property
    def share(self) -> float:
        """The share of values in the low mode."""
        return self.low / self.n


def modes(values: Iterable[float]) -> Modes | None:
    """Return the two modes of at least 30 values; None if one mode describes them as well, or if there are fewer.

    The cut between them leaves the least variance within both sides (W. D. Fisher, J. Am. Stat. Assoc. 53, 1958).
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < _FEWEST:
        return None
    mean = math.fsum(ordered) / n
    total = math.fsum((value - mean) ** 2 for value in ordered)
    if ordered[0] == ordered[-1] or not total:
        return None
    # If n values are cut after the k-th, both sides' means explain D**2 * n / (k * (n - k)), where D is the sum of the
    # first k deviations.
    explained = {
        k: deviations**2 * n / (k * (n - k)) / total
        for k, deviations in enumerate(itertools.accumulate(value - mean for value in ordered[:-1]), 1)
        if ordered[k - 1] < ordered[k]
    }
    cut = max(explained, key=lambda k: explained[k])
    if explained[cut] < _EXPLAINED or min(cut, n - cut) < _LEAST_SHARE * n:
        return None
    return Modes(threshold=(ordered[cut - 1] + ordered[cut]) / 2, low=cut, n=n)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The low mode of a scheme's trials and of a basis's; `p` is the p-value of both having the same share in it."""

    ours: Modes
    basis: Modes
    p: float

    @property
    def words(self) -> str:
        """How the two differ, as a part of a sentence."""
        ours, basis = self.ours, self.basis
        beside = f"{basis.low} of the basis's {basis.n}"
        return f"{ours.low} of {ours.n} trials are below {basis.threshold:.4g}, against {beside}"


def shares(values: Sequence[float], permitted: Interval, metric: Metric) -> Shares | None:
    """Return the share of trials in the low mode beside that of a basis: the one with the greatest p-value.

    None if no basis has two modes that are farther apart than the margin, as nearer ones do not matter, or if a basis
    holds no values. If the trials are more often in the mode that is no fault of the metric, `p` is 1.
    """
    matter = next((m for m in map(_that_matter, permitted.bases, itertools.repeat(permitted.margin)) if m), None)
    if matter is None or not all(basis.values for basis in permitted.bases):
        return None
    ours = at(matter.threshold, values)
    beside = [
        Shares(ours=ours, basis=theirs, p=share_p(ours, theirs))
        for theirs in (at(matter.threshold, basis.values) for basis in permitted.bases)
    ]
    likeliest = max(beside, key=lambda shares: shares.p)
    lower = likeliest.ours.share > likeliest.basis.share
    no_fault = metric.only_above if lower else metric.only_below
    return dataclasses.replace(likeliest, p=1.0) if no_fault else likeliest


@functools.lru_cache(maxsize=4096)
def _that_matter(basis: Basis, margin: Margin) -> Modes | None:
    """Return the modes of a basis if they are farther apart than the margin, else None."""
    both = modes(basis.values)
    if both is None:
        return None
    low = max(value for value in basis.values if value < both.threshold)
    high = min(value for value in basis.values if value > both.threshold)
    return both if margin.above(low) < high else None


def at(threshold: float, values: Sequence[float]) -> Modes:
    """Return how other values, such as a stack's, are divided by a reference's threshold."""
    return Modes(threshold=threshold, low=sum(value < threshold for value in values), n=len(values))


def share_p(ours: Modes, reference: Modes) -> float:
    """Return the two-sided p-value of Fisher's exact test that both have the same share of trials in the low mode."""
    # Counted here, because importing scipy.stats takes two seconds.
    low = ours.low + reference.low
    possible = range(max(0, low - reference.n), low + 1)
    ways = {k: math.comb(ours.n, k) * math.comb(reference.n, low - k) for k in possible}
    return sum(way for way in ways.values() if way <= ways[ours.low]) / sum(ways.values())

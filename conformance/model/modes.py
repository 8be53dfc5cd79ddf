"""Cells in which a transfer goes one of two ways: which share of the trials goes the lower one.

BBRv2 and BBRv3 near their loss threshold fill the link in some trials and all but stop in others. A median says nothing
of that: where half of the reference's trials are low, a stack that is low in every trial has a permitted median. The
share of the low mode tells, by Fisher's exact test (R. A. Fisher, J. R. Stat. Soc. 85, 1922), which assumes nothing of
either mode. 60 trials of the reference are wanted: of 20 trials 20 low against 10 of 20 have p = 4e-4, which is too
much where many cells are judged, and against 30 of 60 they have 2e-5.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence

from conformance.model.metric import Metric
from conformance.model.zone import Basis, Interval, Margin

#: share of the variance that two modes explain, at least: the best cut of a normal distribution explains 2/pi and of a
#: uniform one 3/4; of 60 uniform values 1 draw in 800 reaches this, of 30 one in 50, of normal ones next to none
_EXPLAINED = 0.85
#: share of the trials that each mode has, at least: less is a tail
_LEAST_SHARE = 0.15
#: fewer values tell no modes
_FEWEST = 30


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Two modes: `low` of `n` values lie below `threshold`, the middle of the gap between them."""

    threshold: float
    low: int
    n: int

    @property
    def share(self) -> float:
        """The share of the low mode."""
        return self.low / self.n


def modes(values: Iterable[float]) -> Modes | None:
    """Return the two modes of at least 30 values; None where one mode describes them as well, or there are fewer.

    The cut is the one that leaves the least variance within both sides (W. D. Fisher, J. Am. Stat. Assoc. 53, 1958).
    """
    ordered = sorted(values)
    n = len(ordered)
    if n < _FEWEST:
        return None
    mean = math.fsum(ordered) / n
    total = math.fsum((value - mean) ** 2 for value in ordered)
    if ordered[0] == ordered[-1] or not total:
        return None
    # Of n values cut after the k-th, both sides' means explain D**2 * n / (k * (n - k)), D the sum of k deviations.
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
    """The low mode of a scheme's trials beside a basis's; `p` is the chance that both shares of it are one."""

    ours: Modes
    basis: Modes
    p: float

    @property
    def words(self) -> str:
        """Return what is unlike, as a part of a sentence."""
        ours, basis = self.ours, self.basis
        return f"{ours.low} of {ours.n} trials are below {basis.threshold:.4g}, where {basis.low} of {basis.n} are"


def shares(values: Sequence[float], permitted: Interval, metric: Metric) -> Shares | None:
    """Return how the share of the low mode differs from that of the likeliest basis.

    None where no basis has two modes that are farther apart than the margin: what is nearer does not matter. Trials
    that are more often in the mode that is no fault of a metric have a `p` of 1.
    """
    found = next((m for m in map(_that_matter, permitted.bases, itertools.repeat(permitted.margin)) if m), None)
    if found is None or not all(basis.values for basis in permitted.bases):
        return None
    ours = at(found.threshold, values)
    beside = [
        Shares(ours=ours, basis=theirs, p=share_p(ours, theirs))
        for theirs in (at(found.threshold, basis.values) for basis in permitted.bases)
    ]
    likeliest = max(beside, key=lambda one: one.p)
    lower = likeliest.ours.share > likeliest.basis.share
    no_fault = metric.only_above if lower else metric.only_below
    return dataclasses.replace(likeliest, p=1.0) if no_fault else likeliest


@functools.lru_cache(maxsize=4096)
def _that_matter(basis: Basis, margin: Margin) -> Modes | None:
    """Return the modes of a basis that are farther apart than the margin."""
    found = modes(basis.values)
    if found is None:
        return None
    low = max(value for value in basis.values if value < found.threshold)
    high = min(value for value in basis.values if value > found.threshold)
    return found if margin.above(low) < high else None


def at(threshold: float, values: Sequence[float]) -> Modes:
    """Return how other values, such as a stack's, fall by a reference's threshold."""
    return Modes(threshold=threshold, low=sum(value < threshold for value in values), n=len(values))


def share_p(ours: Modes, reference: Modes) -> float:
    """Return Fisher's two-sided p that both shares of the low mode are one; the same whichever way they differ."""
    import scipy.stats  # late: it takes long, and few verdicts need it

    table = [[ours.low, ours.n - ours.low], [reference.low, reference.n - reference.low]]
    return float(scipy.stats.fisher_exact(table).pvalue)

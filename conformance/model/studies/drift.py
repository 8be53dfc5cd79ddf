"""What moved between two versions of the same thing: two kernels, two sysctl settings. Cell by cell, beyond noise.

Noise is what seeds do. A cell has *moved* when the rank sum test (F. Wilcoxon, Biometrics Bulletin 1, 1945; H. B. Mann,
D. R. Whitney, Annals of Mathematical Statistics 18, 1947) says that its trials differ, at a family-wise error rate kept
over all cells by Holm's method (S. Holm, Scandinavian Journal of Statistics 6, 1979), and when its median moved by
enough to matter. The test is exact, also where values are equal. That both sides use the same seeds is not made use
of: the same random numbers meet other packets as soon as anything differs.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy
import scipy.stats

from conformance.model import statistics
from conformance.model.setting import Cell

ALPHA, MATTERS = 0.01, 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class Drift:
    """One cell before and after: medians of a metric, and the test's p-value, adjusted for all cells."""

    cell: Cell
    before: float
    after: float
    p: float
    moved: bool

    @property
    def difference(self) -> float:
        return self.after - self.before


def compare(
    before: Mapping[Cell, Sequence[float]],
    after: Mapping[Cell, Sequence[float]],
    alpha: float = ALPHA,
    matters: float = MATTERS,
) -> list[Drift]:
    """Drifts, in order of cell, of the cells that both hold; each is {cell: [value of each trial]}."""
    cells = sorted(set(before) & set(after))
    adjusted = statistics.holm_adjusted([rank_sum_p(before[cell], after[cell]) for cell in cells])
    found = []
    for cell, p in zip(cells, adjusted, strict=True):
        a, b = statistics.median(before[cell]), statistics.median(after[cell])
        found.append(Drift(cell=cell, before=a, after=b, p=p, moved=p < alpha and abs(b - a) >= matters))
    return found


def smallest_p(n: int) -> float:
    """The smallest p-value that n trials a side can give, when all of one side lie above all of the other."""
    return 2 / math.comb(2 * n, n)


def rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p-value of the rank sum test, by its permutation distribution given the ties that there are."""
    doubled = (2 * scipy.stats.rankdata([*a, *b])).astype(int)  # mid-ranks are halves
    observed, total = int(doubled[: len(a)].sum()), int(doubled.sum())
    # ways[k, s]: subsets of k values whose doubled ranks add up to s
    ways = numpy.zeros((len(a) + 1, total + 1))
    ways[0, 0] = 1
    for rank in doubled:
        ways[1:, rank:] += ways[:-1, : total + 1 - rank].copy()
    sums = numpy.arange(total + 1)
    expected = total * len(a) / len(doubled)
    extreme = abs(sums - expected) >= abs(observed - expected) - 1e-9
    return float(ways[-1, extreme].sum() / ways[-1].sum())

"""What moved between two versions of the same thing: two kernels, two sysctl settings. Cell by cell, beyond noise.

Noise is what seeds do. A cell has *moved* when the Mann-Whitney U test (H. B. Mann, D. R. Whitney, Annals of
Mathematical Statistics 18, 1947; exact where no two values are equal) says that its trials differ, at a family-wise
error rate kept over all cells by Holm's method (S. Holm, Scandinavian Journal of Statistics 6, 1979), and when its
median moved by enough to matter.
"""

import dataclasses

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
    def difference(self):
        return self.after - self.before


def compare(before, after, alpha=ALPHA, matters=MATTERS):
    """Drifts, in order of cell, of the cells that both hold; each is {cell: [value of each trial]}."""
    cells = sorted(set(before) & set(after))
    adjusted = holm([_p(before[cell], after[cell]) for cell in cells])
    found = []
    for cell, p in zip(cells, adjusted, strict=True):
        a, b = statistics.median(before[cell]), statistics.median(after[cell])
        found.append(Drift(cell=cell, before=a, after=b, p=p, moved=p < alpha and abs(b - a) >= matters))
    return found


def _p(a, b):
    values = [*a, *b]
    if len(set(values)) == 1:
        return 1.0
    method = "exact" if len(set(values)) == len(values) else "asymptotic"
    return float(scipy.stats.mannwhitneyu(a, b, alternative="two-sided", method=method).pvalue)


def holm(p_values):
    """Adjusted p-values: below alpha exactly where Holm's step-down method rejects at family-wise rate alpha."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        adjusted[i] = largest
    return adjusted

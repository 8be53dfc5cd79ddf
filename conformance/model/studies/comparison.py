"""What moved between two sides: two builds of a stack, two kernels, two sysctl settings. Beyond noise, and by enough.

Noise is what seeds do. Each quantity (a metric in a cell, or a feature that `why` reads from traces) has a value for
each trial, and is

- `moved` where the rank sum test (F. Wilcoxon, Biometrics Bulletin 1, 1945; H. B. Mann, D. R. Whitney, Annals of
  Mathematical Statistics 18, 1947) says that the two sides' trials differ, at a family-wise error rate of ALPHA kept
  over all that is compared by Holm's method (S. Holm, Scandinavian Journal of Statistics 6, 1979), and where the
  medians differ by enough to matter;
- `same` where every seed gave both sides the same value, or where the CONFIDENCE interval of the difference (J. L.
  Hodges, E. L. Lehmann, Annals of Mathematical Statistics 34, 1963) holds nothing that matters: a difference that
  matters is called the same in at most (1 - CONFIDENCE) / 2 of cases (two one-sided tests: D. J. Schuirmann, Journal
  of Pharmacokinetics and Biopharmaceutics 15, 1987);
- `unclear` otherwise: more trials would tell.

Test and interval are exact, the test also where values are equal; of very many trials, they are by the normal
approximation. That both sides use the same seeds counts only where nothing differs at all: the same random numbers
meet other packets as soon as anything does.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy

from conformance.model import statistics
from conformance.model.place import Place

#: the chance that anything is said to have moved where nothing did
ALPHA = 0.01
#: of the interval that decides what is the same
CONFIDENCE = 0.9
#: of what two implementations may differ by, what counts between two builds of one
MATTERS = 0.5
#: of tests that are exact: a probability's rounding
_ROUNDING = 1e-9


class Change(enum.StrEnum):
    """What became of a quantity, from one side to the other."""

    SAME = "same"
    MOVED = "moved"
    UNCLEAR = "unclear"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The smallest difference that matters: `absolute`, and `relative` to the smaller of two values."""

    absolute: float = 0.0
    relative: float = 0.0

    def of(self, before: float, after: float) -> float:
        """Return it for two values; it is the same for both orders."""
        return self.absolute + self.relative * min(abs(before), abs(after))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """Something with a value in each trial. `weight`: how directly it shows a cause, as `why` weighs features."""

    algorithm: str
    name: str
    place: Place
    profile: str
    tolerance: Tolerance
    digits: int = 3
    unit: str = ""
    weight: float = 1.0
    #: what a feature points at, such as beta; None of a metric
    label: str | None = None


#: the values of a side, {seed: value}
Values = Mapping[int, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One quantity on both sides: medians, an interval of their difference, and the p-value adjusted for all."""

    quantity: Quantity
    before: float
    after: float
    #: trials of each side
    n: tuple[int, int]
    #: infinite where there are too few trials
    interval: tuple[float, float]
    p: float
    #: whether each seed gave both sides the same value
    identical: bool
    change: Change

    @property
    def difference(self) -> float:
        """Return the second side's median less the first's."""
        return self.after - self.before

    @property
    def matters(self) -> float:
        """Return the smallest difference that matters."""
        return self.quantity.tolerance.of(self.before, self.after)

    @property
    def size(self) -> float:
        """Return the difference in units of what matters."""
        if not self.difference:
            return 0.0
        return abs(self.difference) / self.matters if self.matters else math.inf


def is_equivalent(compared: Compared, margin: Tolerance) -> bool:
    """Say whether it is shown that both sides differ by less than this: two one-sided tests, each at 5 %.

    (1 - CONFIDENCE) / 2 is that rate (Schuirmann, as above). Of several quantities all of which must be equivalent, the
    chance of saying so wrongly is no greater (an intersection-union test: R. L. Berger, Technometrics 24, 1982).
    """
    least = margin.of(compared.before, compared.after)
    return compared.identical or (-least < compared.interval[0] and compared.interval[1] < least)


def compare(sides: Mapping[Quantity, tuple[Values, Values]], alpha: float = ALPHA) -> list[Compared]:
    """Return the Compared of each quantity, {quantity: (before, after)}, in the order given; all are one family.

    Each side needs a value.
    """
    p_values = statistics.holm_adjusted(
        [
            1.0 if _identical(before, after) else rank_sum_p(list(before.values()), list(after.values()))
            for before, after in sides.values()
        ]
    )
    return [
        _compared(quantity, before, after, p, alpha)
        for (quantity, (before, after)), p in zip(sides.items(), p_values, strict=True)
    ]


def _compared(quantity: Quantity, before: Values, after: Values, p: float, alpha: float) -> Compared:
    a, b = statistics.median(before.values()), statistics.median(after.values())
    identical = _identical(before, after)
    interval = (0.0, 0.0) if identical else shift_interval(list(before.values()), list(after.values()))
    found = Compared(
        quantity=quantity, before=a, after=b, n=(len(before), len(after)), interval=interval, p=p,
        identical=identical, change=Change.UNCLEAR,
    )  # fmt: skip
    least = found.matters
    if identical:
        change = Change.SAME
    elif p <= alpha and found.difference and abs(found.difference) >= least:
        change = Change.MOVED
    else:
        change = Change.SAME if -least < interval[0] and interval[1] < least else Change.UNCLEAR
    return dataclasses.replace(found, change=change)


def _identical(before: Values, after: Values) -> bool:
    """Say whether each seed gave both sides the same value; one side may have seeds that the other did not need."""
    common = before.keys() & after.keys()
    return len(common) == min(len(before), len(after)) and all(before[seed] == after[seed] for seed in common)


def largest_first(compared: Iterable[Compared]) -> list[Compared]:
    """Return what moved, then what is unclear, then what is the same; of each what shows most, first.

    What is seen directly comes before what follows from it: a window that is cut less is reduced sooner, grows
    otherwise and fills a path otherwise.
    """
    order = (Change.MOVED, Change.UNCLEAR, Change.SAME)
    return sorted(compared, key=lambda c: (order.index(c.change), -min(c.size, _MOST_SIZE) * c.quantity.weight))


#: beyond this, how much larger a difference is says nothing of where it comes from (as in diagnosis/ranking.py)
_MOST_SIZE = 8


def smallest_p(n: int) -> float:
    """Return the smallest p-value that n trials a side can give, when all of one side lie above all of the other."""
    return 2 / math.comb(2 * n, n)


def fewest_trials(family: int, alpha: float = ALPHA) -> int:
    """Return how many trials a side it takes to show that one of `family` quantities moved."""
    return next(n for n in itertools.count(1) if smallest_p(n) * max(family, 1) <= alpha)


def rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of the rank sum test, by its permutation distribution given the ties.

    Of many values it is by the normal approximation.
    """
    doubled, sizes = statistics.mid_ranks([*a, *b])
    observed = sum(doubled[value] for value in a)
    if sum(sizes) > statistics.MOST_EXACT:
        mean, deviation = statistics.rank_sum_moments(len(a), sizes)
        beyond = max(0.0, abs(observed / 2 - mean) - 0.5)
        return math.erfc(beyond / (math.sqrt(2) * deviation)) if deviation else 1.0
    ways = statistics.rank_sum_ways(len(a), sizes)
    expected = len(a) * (sum(sizes) + 1)
    extreme = abs(numpy.arange(len(ways)) - expected) >= abs(observed - expected)
    return float(ways[extreme].sum() / ways.sum())


def shift_interval(a: Sequence[float], b: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return an interval of b's values less a's, with at least this confidence: the inverse of the rank sum test.

    Of too few values for that, nothing is known: (-inf, inf).
    """
    rank = _interval_rank(len(a), len(b), confidence)
    if not rank:
        return -math.inf, math.inf
    differences = sorted(y - x for x in a for y in b)
    return differences[rank - 1], differences[-rank]


def _interval_rank(n: int, m: int, confidence: float) -> int:
    """Return which of all n m differences, counted from either end, bounds the interval; 0 where none does."""
    critical = statistics.mann_whitney_critical(n, m, (1 - confidence) / 2 + _ROUNDING)
    return 0 if math.isinf(critical) else int(n * m - critical) + 1

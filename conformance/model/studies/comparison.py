"""Tell what moved between two sides (builds of a stack, kernels, sysctl settings) beyond noise, and by enough.

Noise is the variation between seeds. Each quantity (a metric in a cell, or a feature that `why` reads from traces) has
a value for each trial, and is

- `moved` if the rank-sum test (F. Wilcoxon, Biometrics Bulletin 1, 1945; H. B. Mann, D. R. Whitney, Annals of
  Mathematical Statistics 18, 1947) says that the two sides' trials differ, and if the medians differ by enough to
  matter. Holm's method (S. Holm, Scandinavian Journal of Statistics 6, 1979) keeps a family-wise error rate of ALPHA
  over everything that is compared;
- `same` if every seed gave both sides the same value, or if the CONFIDENCE interval of the difference (J. L. Hodges,
  E. L. Lehmann, Annals of Mathematical Statistics 34, 1963) contains no difference that matters: one that matters is
  called the same in at most (1 - CONFIDENCE) / 2 of cases (two one-sided tests: D. J. Schuirmann, Journal of
  Pharmacokinetics and Biopharmaceutics 15, 1987);
- `unclear` otherwise: more trials would tell.

A quantity may also be a share of trials, such as that of failures: the rank-sum test of values that are 0 or 1 is
Fisher's exact test. It has no interval, so it is the same only if every trial is.

Test and interval are exact, the test also with ties; with very many trials, both use the normal approximation. Both
sides use the same seeds, and are not paired: as soon as anything differs, the same random numbers meet other packets.
What trials of a seed still have in common, such as how many losses they meet, makes both more careful, not less.
"""

import dataclasses
import enum
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy

from conformance.model.judging import statistics
from conformance.model.networks.place import Point

#: the chance that anything is said to have moved although nothing did
ALPHA = 0.01
#: the confidence of the interval that decides what is the same
CONFIDENCE = 0.9
#: the share of what two implementations may differ by that matters between two builds of one implementation
MATTERS = 0.5
#: trials of a place that are made first: sides that are equal in these need no more
FIRST_LOOK = 2
#: rounding error of a probability in exact tests
_ROUNDING = 1e-9


class Movement(enum.StrEnum):
    """How a quantity changed from one side to the other."""

    SAME = "same"
    MOVED = "moved"
    UNCLEAR = "unclear"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """The smallest difference that matters: `absolute`, and `relative` to the smaller of two values."""

    absolute: float = 0.0
    relative: float = 0.0

    def of(self, before: float, after: float) -> float:
        """Return the smallest difference that matters between two values, in either order."""
        return self.absolute + self.relative * min(abs(before), abs(after))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A quantity with a value in each trial. `weight`: how directly it shows a cause, as `why` weighs features."""

    algorithm: str
    name: str
    place: Point
    profile: str
    tolerance: Tolerance
    digits: int = 3
    unit: str = ""
    weight: float = 1.0
    #: what a feature points at, such as beta; None for a metric
    label: str | None = None
    #: whether its values are 0 or 1, so that shares of trials are compared, not medians
    is_share: bool = False
    #: whether it is read where the network and the application stay as they are
    is_steady: bool = False

    @property
    def kind(self) -> str:
        """What it is: a "feature" or a "metric"."""
        return "feature" if self.label else "metric"

    @property
    def is_ratio(self) -> bool:
        """Whether a factor matters, and not a difference."""
        return not self.tolerance.absolute and self.tolerance.relative > 0

    @property
    def precedence(self) -> int:
        """Its place among quantities that moved, the least first: what a steady network shows, then what events show.

        What a fault does in a steady network, it does everywhere: events show what follows. Where only events differ,
        trials in steady networks are equal. Metrics, and shares of trials, follow from both.
        """
        if self.label is None or self.is_share:
            return 2
        return 0 if self.is_steady else 1


#: the values of a side, {seed: value}
Values = Mapping[int, float]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One quantity on both sides: medians, an interval of their difference, and the p-value adjusted for the family."""

    quantity: Quantity
    before: float
    after: float
    #: trials of each side
    n: tuple[int, int]
    #: infinite if there are too few trials
    interval: tuple[float, float]
    p: float
    #: whether each seed gave both sides the same value
    identical: bool
    change: Movement

    @property
    def known_interval(self) -> tuple[float, float] | None:
        """The interval; None if there are too few trials."""
        return self.interval if all(map(math.isfinite, self.interval)) else None

    @property
    def difference(self) -> float:
        """The second side's median less the first's."""
        return self.after - self.before

    @property
    def matters(self) -> float:
        """The smallest difference that matters."""
        return self.quantity.tolerance.of(self.before, self.after)

    @property
    def telling(self) -> float:
        """How much it differs, and how directly that shows a cause."""
        return min(self.size, _MOST_SIZE) * self.quantity.weight

    @property
    def size(self) -> float:
        """The difference in units of what matters, of ratios by their logarithms."""
        if not self.difference:
            return 0.0
        if self.quantity.is_ratio and min(self.before, self.after) > 0:
            return abs(math.log(self.after / self.before)) / math.log1p(self.quantity.tolerance.relative)
        return abs(self.difference) / self.matters if self.matters else math.inf


def is_equivalent(compared: Compared, margin: Tolerance) -> bool:
    """Return whether both sides are shown to differ by less than `margin`: two one-sided tests, each at 5 %.

    (1 - CONFIDENCE) / 2 is that rate (Schuirmann, as above). If several quantities must all be equivalent, the chance
    of saying so wrongly is no greater (an intersection-union test: R. L. Berger, Technometrics 24, 1982).
    """
    least = margin.of(compared.before, compared.after)
    return compared.identical or (-least < compared.interval[0] and compared.interval[1] < least)


def compare(sides: Mapping[Quantity, tuple[Values, Values]], alpha: float = ALPHA, family: int = 0) -> list[Compared]:
    """Return the Compared of each quantity in {quantity: (before, after)}, in that order; all are one family.

    Each side needs at least one value. `family`: how many quantities were planned, if that is more.
    """
    p_values = [
        1.0 if is_identical(before, after) else rank_sum_p(list(before.values()), list(after.values()))
        for before, after in sides.values()
    ]
    adjusted = statistics.holm_adjusted([*p_values, *[1.0] * (family - len(sides))])
    return [
        _compared(quantity, before, after, p, alpha)
        for (quantity, (before, after)), p in zip(sides.items(), adjusted, strict=False)
    ]


def _compared(quantity: Quantity, before: Values, after: Values, p: float, alpha: float) -> Compared:
    middle = _mean if quantity.is_share else statistics.median
    a, b = middle(before.values()), middle(after.values())
    identical = is_identical(before, after)
    if quantity.is_share and not identical:
        interval = -math.inf, math.inf
    else:
        interval = (0.0, 0.0) if identical else shift_interval(list(before.values()), list(after.values()))
    compared = Compared(
        quantity=quantity, before=a, after=b, n=(len(before), len(after)), interval=interval, p=p,
        identical=identical, change=Movement.UNCLEAR,
    )  # fmt: skip
    least = compared.matters
    if identical:
        change = Movement.SAME
    elif p <= alpha and compared.difference and abs(compared.difference) >= least:
        change = Movement.MOVED
    else:
        change = Movement.SAME if _is_equal(compared, before, after) else Movement.UNCLEAR
    return dataclasses.replace(compared, change=change)


def _is_equal(compared: Compared, before: Values, after: Values) -> bool:
    """Return whether the interval of the difference holds nothing that matters; of ratios, that of their logarithms."""
    quantity, (low, high), least = compared.quantity, compared.interval, compared.matters
    if quantity.is_ratio and min((*before.values(), *after.values())) > 0:
        low, high = shift_interval(list(map(math.log, before.values())), list(map(math.log, after.values())))
        least = math.log1p(quantity.tolerance.relative)
    return -least < low and high < least


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)


def is_identical(before: Values, after: Values) -> bool:
    """Return whether each seed gave both sides the same value; one side may have seeds that the other did not need.

    One that needed no more has two. A single equal one of many is what few trials show, and may be equal by chance.
    """
    common, least = before.keys() & after.keys(), min(len(before), len(after))
    few = least < min(FIRST_LOOK, max(len(before), len(after)))
    return len(common) == least and not few and all(before[seed] == after[seed] for seed in common)


def largest_first(compared: Iterable[Compared]) -> list[Compared]:
    """Return what moved, then what is unclear, then what is the same; in each of these, what shows most comes first.

    What shows a cause directly comes before what follows from it: a window that is cut less is reduced sooner, grows
    differently and fills a path differently.
    """
    order = (Movement.MOVED, Movement.UNCLEAR, Movement.SAME)
    return sorted(
        compared,
        key=lambda c: (order.index(c.change), c.quantity.precedence, -c.telling),
    )


#: beyond this, a larger difference says no more about its cause: eight tolerances, as in diagnosis/ranking.py
_MOST_SIZE = 8 / MATTERS


def smallest_p(n: int) -> float:
    """Return the smallest p-value of n trials a side, reached if all values of one side are above the other's."""
    return 2 / math.comb(2 * n, n)


def fewest_trials(family: int, is_share: bool = False) -> int:
    """Return how many trials each side needs to show that one of `family` quantities moved; shares, from 0 to 1/2."""
    step, least_p = (2, _p_of_half) if is_share else (1, smallest_p)
    return next(n for n in itertools.count(step, step) if least_p(n) * max(family, 1) <= ALPHA)


def _p_of_half(n: int) -> float:
    """Return the p of a share that is 0 in n trials of one side, and 1 in half of n trials of the other."""
    return rank_sum_p([0.0] * n, [0.0, 1.0] * (n // 2))


def trials_that_decide(compared: Compared, planned: int, most: int, tried: int | None = None) -> int | None:
    """Return how many trials a side would make an unclear quantity clear; None if even `most` would not.

    `tried`: how many trials were made, if not all show the quantity. If these are not all that were `planned`, it is
    those. If too few show it for the test, as many more are needed as let so many show it. Otherwise the medians are
    taken to stay where they are, and the interval to shrink with the root of the number of trials, until the difference
    that matters is outside. Where the difference matters, the rank sum has to say so, too: how far it is from its mean
    grows with that root.
    """
    n = min(compared.n)
    tried = tried or n
    if tried < planned:
        return planned
    if compared.quantity.is_share:
        return min(2 * n, most)
    half = (compared.interval[1] - compared.interval[0]) / 2
    room = abs(abs(compared.difference) - compared.matters)
    needed = n * (half / room) ** 2 if room else math.inf
    if abs(compared.difference) >= compared.matters and compared.p > ALPHA:
        far = _normal_score(compared.p)
        needed = max(needed, n * (_normal_score(ALPHA) / far) ** 2 if far else math.inf)
    if n < planned:
        needed = planned
    needed = max(n + 1, needed) * tried / n
    return math.ceil(needed) if needed <= most else None


def _normal_score(p: float) -> float:
    """Return how many standard deviations from its mean a normal value has a two-sided p-value of `p`."""
    return -NormalDist().inv_cdf(p / 2)


def rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p-value of the rank-sum test, from its permutation distribution given the ties.

    With many values, it comes from the normal approximation.
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
    """Return an interval of the shift from a's values to b's, with at least this confidence.

    It is the inverse of the rank-sum test. With too few values for that, it is (-inf, inf).
    """
    rank = _interval_rank(len(a), len(b), confidence)
    if not rank:
        return -math.inf, math.inf
    differences = sorted(y - x for x in a for y in b)
    return differences[rank - 1], differences[-rank]


def _interval_rank(n: int, m: int, confidence: float) -> int:
    """Return which of all n m differences, counted from either end, bounds the interval; 0 if none does."""
    critical = statistics.mann_whitney_critical(n, m, (1 - confidence) / 2 + _ROUNDING)
    return 0 if math.isinf(critical) else int(n * m - critical) + 1

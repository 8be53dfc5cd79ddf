"""How repeats and known deviations change error rates, by simulation (docs/findings-rates.md)."""

import random

import pytest
from helpers import CELL, measurements, zone

from conformance.model.judging.expectation import Expected, Known, Surprise, compare, update
from conformance.model.judging.session import at_first_clear
from conformance.model.judging.verdict import USUAL_LOOKS, Status, ZoneSide, ZoneVerdict, judge
from conformance.model.judging.zone import Basis, Interval, Margin, hull

pytestmark = pytest.mark.slow
THOROUGH = pytest.mark.thorough

#: number of cells in a row of the matrix
ROW = 30
MARGIN = Margin(relative=0.1, absolute=0.0)


class Stack:
    """A stack in one cell, whose trials are like those of the reference (20 trials) times a factor."""

    def __init__(self, chance, cv, factor):
        self._chance, self._cv, self._factor = chance, cv, factor
        basis = Basis.of("r", [chance.gauss(0.5, 0.5 * cv) for _ in range(20)])
        low, high = hull([basis], MARGIN)
        interval = Interval(low=low, high=high, bases=(basis,), margin=MARGIN)
        self._zone = zone(intervals={CELL: interval})

    def verdict(self, family=ROW, until_sure=False):
        """Judge trials with fresh seeds at looks 5, 8, 13 and 20."""
        values = [self._factor * self._chance.gauss(0.5, 0.5 * self._cv) for _ in range(USUAL_LOOKS[-1])]
        made = measurements(values)

        def unclear(found):
            clear = found.sure if until_sure and found.status.passes else found.status is not Status.INCONCLUSIVE
            return [] if clear else [None]

        def at(numbers, more):
            return judge(self._zone, CELL, made[: numbers[None]], family, more)

        return at_first_clear(USUAL_LOOKS, {None: 20}, at, unclear)


def fails(cv, factor, runs=150):
    """Return (share of runs that violate, share that violate again with fresh seeds)."""
    chance = random.Random(f"{cv} {factor}")
    once = twice = 0
    for _ in range(runs):
        stack = Stack(chance, cv, factor)
        if stack.verdict().status is Status.VIOLATES:
            once += 1
            twice += stack.verdict(family=1).status is Status.VIOLATES
    return once / runs, twice / runs


@pytest.mark.parametrize(
    ("cv", "factor", "least"), [(0.05, 1.2, 0.75), (0.05, 1.3, 0.99), (0.1, 1.3, 0.65), (0.1, 1.5, 0.99)]
)
def test_repeating_costs_hardly_any_power(cv, factor, least):
    once, twice = fails(cv, factor)
    assert least <= twice <= once <= twice + 0.05


@pytest.mark.parametrize("cv", [0.05, pytest.param(0.1, marks=THOROUGH), pytest.param(0.2, marks=THOROUGH)])
def test_an_honest_stack_does_not_violate_so_that_nothing_is_repeated(cv):
    assert fails(cv, 1.0) == (0.0, 0.0)
    assert fails(cv, 1.1)[1] <= 0.01


@pytest.mark.parametrize("cv", [pytest.param(0.05, marks=THOROUGH), 0.1])
def test_a_build_that_changes_nothing_flips_no_row(cv):
    """`before` is strict both ways, without borderline entries and repeats. Stacks differ by up to 30 %."""
    chance, rows = random.Random(f"flips {cv}"), 25
    before = after = 0
    for _ in range(rows):
        flips = [flipped(Stack(chance, cv, 1 + chance.uniform(-0.3, 0.3))) for _ in range(ROW)]
        before += any(old for old, _ in flips)
        after += any(new for _, new in flips)
    assert before >= 0.3 * rows
    assert after <= 0.04 * rows


def flipped(stack):
    """Return whether a cell's entry, or its absence, fails the next build: by the former rules, and by today's."""
    first = stack.verdict()
    found = ZoneVerdict(zone_id="cubic/heatmap", verdicts={CELL: first}, family=ROW)
    (entry,) = update((), [found], lambda _: ()) or (None,)
    second = stack.verdict(until_sure=entry is not None and entry.verdict is Known.VIOLATES)
    violates = second.status is Status.VIOLATES
    listed = first.status is Status.VIOLATES
    before = second.status.passes if listed else violates
    surprise = compare(second, entry)
    if surprise is Surprise.NEW:
        surprise = compare(second, entry, stack.verdict(family=1))
    return before, surprise.fails


def test_what_is_borderline_is_listed_as_such_and_leaves_the_list_when_it_is_sure():
    interval = zone().intervals[CELL]
    made = zone(intervals={CELL: interval})
    unclear = judge(made, CELL, measurements([0.55] * 8 + [0.65] * 12))
    assert unclear.borderline
    found = ZoneVerdict(zone_id=made.id, verdicts={CELL: unclear}, family=1)
    (entry,) = update((), [found], lambda _: ())
    assert entry == Expected(
        zone_id=made.id,
        cells=frozenset({CELL}),
        verdict=Known.BORDERLINE,
        side=ZoneSide.ABOVE,
        reason="not explained yet",
    )
    for values, kept in (([0.9] * 8, 1), ([0.5] * 5, 1), ([0.5] * 8, 0)):
        now = ZoneVerdict(zone_id=made.id, verdicts={CELL: judge(made, CELL, measurements(values))}, family=1)
        assert compare(now.verdicts[CELL], entry) is Surprise.NONE
        assert len(update((entry,), [now], lambda _: ())) == kept
    assert not judge(made, CELL, measurements([0.55] * 2 + [0.65] * 3)).borderline

"""Comparisons of two sides: what moved beyond noise, and by enough to matter; what is the same; what is unclear."""

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from conformance.model.judging import statistics
from conformance.model.networks.place import Cell
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Movement, Quantity, Tolerance


def quantity(at=1, matters=0.01, **changes):
    return Quantity(
        algorithm="cubic", name="utilization", place=Cell(10, at, 1), profile="atc25",
        tolerance=Tolerance(absolute=matters), **changes,
    )  # fmt: skip


QUANTITIES = [quantity(d) for d in range(1, 31)]


def side(values):
    return dict(enumerate(values, 1))


def noise(rng, mean, trials=10):
    return side(rng.gauss(mean, 0.02) for _ in range(trials))


def one(before, after, **changes):
    (found,) = comparison.compare({quantity(**changes): (side(before), side(after))})
    return found


def test_a_cell_that_moved_is_found_among_those_that_did_not():
    rng = random.Random(1)
    sides = {q: (noise(rng, 0.5), noise(rng, 0.6 if q == QUANTITIES[7] else 0.5)) for q in QUANTITIES}
    assert [c.quantity for c in comparison.compare(sides) if c.change is Movement.MOVED] == [QUANTITIES[7]]


def test_what_was_planned_and_not_measured_shares_the_error_rate():
    """Nine trials a side, all apart: p is 4.1e-5, of at most 243 quantities enough."""
    sides = {QUANTITIES[0]: (side([0.5] * 9), side([0.6] * 9))}
    (few,), (many,) = (comparison.compare(sides, family=n) for n in (243, 244))
    assert (few.change, many.change) == (Movement.MOVED, Movement.UNCLEAR)
    assert few.p == pytest.approx(243 * comparison.smallest_p(9))


def test_certain_but_too_small_to_matter_is_the_same():
    found = one([0.954] * 10, [0.955] * 10)
    assert found.p < comparison.ALPHA and found.change is Movement.SAME
    assert one([0.954] * 10, [0.955] * 10, matters=0.0005).change is Movement.MOVED


def test_large_but_uncertain_is_unclear():
    found = one([0.3, 0.5, 0.7], [0.6, 0.8, 0.4])
    assert found.change is Movement.UNCLEAR and found.interval[0] < 0 < found.interval[1]
    few = one([0.5], [0.9])
    assert few.change is Movement.UNCLEAR and few.interval == (-math.inf, math.inf)


def test_the_test_is_exact_with_ties_too():
    """It is compared with a count over all 252 ways of choosing 5 of 10 values."""
    a, b = [1.0, 2.0, 2.0, 3.0, 3.0], [2.0, 3.0, 4.0, 4.0, 5.0]
    ranks = [1, 3, 3, 6, 6, 3, 6, 8.5, 8.5, 10]
    observed, mean = sum(ranks[:5]), sum(ranks) / 2
    chosen = [sum(c) for c in itertools.combinations(ranks, 5)]
    expected = sum(abs(s - mean) >= abs(observed - mean) for s in chosen) / len(chosen)
    assert comparison.rank_sum_p(a, b) == pytest.approx(expected)
    assert comparison.rank_sum_p([0.5] * 10, [0.8] * 10) == pytest.approx(comparison.smallest_p(10))
    assert comparison.rank_sum_p(range(20), range(20, 40)) == pytest.approx(comparison.smallest_p(20))


@pytest.mark.slow
def test_many_trials_are_compared_nearly_as_few_are(monkeypatch):
    draw = random.Random(5)
    a, b = ([round(draw.gauss(shift, 1), 2) for _ in range(60)] for shift in (0.0, 0.25))
    exact = comparison.rank_sum_p(a, b), comparison.shift_interval(a, b)
    monkeypatch.setattr(comparison.statistics, "MOST_EXACT", 0)
    statistics.mann_whitney_critical.cache_clear()
    near = comparison.rank_sum_p(a, b), comparison.shift_interval(a, b)
    statistics.mann_whitney_critical.cache_clear()
    assert near[0] == pytest.approx(exact[0], rel=0.001)
    assert near[1] == pytest.approx(exact[1], abs=0.01)
    assert comparison.rank_sum_p(a * 50, b * 50) < exact[0]


def test_the_interval_is_that_of_the_tables():
    """The critical value of the two-sided rank-sum test at 10 % is 4 for 5 and 5 values, and 15 for 8 and 8 values."""
    for n, critical in ((5, 4), (8, 15)):
        a, b = [0.0] * n, [float(k) for k in range(n)]
        differences = sorted(y - x for x in a for y in b)
        assert comparison.shift_interval(a, b) == (differences[critical], differences[-critical - 1])


def test_as_many_trials_as_can_show_that_one_moved():
    for family in (1, 20, 64, 65):
        n = comparison.fewest_trials(family)
        assert comparison.smallest_p(n) * family <= comparison.ALPHA < comparison.smallest_p(n - 1) * family
        moved = {quantity(at): (side([0.5] * n), side([0.5] * n)) for at in range(2, family + 1)}
        moved[quantity(1)] = side([0.5] * n), side([0.9] * n)
        assert [c.quantity for c in comparison.compare(moved) if c.change is Movement.MOVED] == [quantity(1)]


def test_a_side_with_more_seeds_than_the_other_needed_is_still_identical():
    rng = random.Random(3)
    many = noise(rng, 0.5, trials=8)
    few = {seed: many[seed] for seed in (1, 2)}
    (found,) = comparison.compare({quantity(): (many, few)})
    assert found.identical and found.change is Movement.SAME
    (other,) = comparison.compare({quantity(): (many, {**few, 2: 0.9})})
    assert not other.identical


def test_one_equal_trial_of_many_is_no_evidence_that_sides_are_the_same():
    many = side([3.0] * 9)
    (found,) = comparison.compare({quantity(): (many, {4: 3.0})})
    assert (found.identical, found.change) == (False, Movement.UNCLEAR)
    (alone,) = comparison.compare({quantity(): ({4: 3.0}, {4: 3.0})})
    assert alone.identical


def test_what_is_seen_directly_comes_before_what_follows():
    beta = quantity(1, label="beta", weight=1.0)
    follows = quantity(2, weight=0.25)
    sides = {
        follows: (side([0.5] * 10), side([0.9] * 10)),
        quantity(3): (side([0.5] * 10), side([0.5] * 10)),
        beta: (side([0.70] * 10), side([0.75] * 10)),
    }
    found = comparison.largest_first(comparison.compare(sides))
    assert [c.quantity.place.one_way_delay_ms for c in found] == [1, 2, 3]


def test_what_a_steady_network_shows_comes_before_what_events_show_and_both_before_metrics():
    event = quantity(1, label="app_limited", weight=3.0)
    steady = quantity(2, label="growth", is_steady=True)
    metric, share = quantity(3), quantity(4, label="failures", is_share=True)
    small, large = (side([0.5] * 10), side([0.55] * 10)), (side([0.0] * 10), side([1.0] * 10))
    found = comparison.largest_first(comparison.compare({share: large, metric: large, event: large, steady: small}))
    assert [c.quantity for c in found][:2] == [steady, event] and {c.change for c in found} == {Movement.MOVED}


def test_a_ratio_is_as_large_and_as_equal_in_either_direction():
    factor = dataclasses.replace(QUANTITIES[0], tolerance=Tolerance(relative=0.2))
    low, high = side([2.0, 2.1, 1.9, 2.0, 2.05] * 2), side([5.0, 5.1, 4.9, 5.0, 5.05] * 2)
    (up,), (down,) = comparison.compare({factor: (low, high)}), comparison.compare({factor: (high, low)})
    assert up.size == pytest.approx(down.size) == pytest.approx(math.log(2.5) / math.log(1.2))
    near = side([value * 1.1 for value in low.values()])
    assert {c.change for c in comparison.compare({factor: (low, near)})} == {Movement.SAME}
    assert {c.change for c in comparison.compare({factor: (near, low)})} == {Movement.SAME}


def test_more_trials_are_proposed_until_the_rank_sum_can_tell_as_well():
    clear = one([0.50, 0.52, 0.48, 0.51], [0.81, 0.83, 0.80, 0.79], matters=0.02)
    assert clear.change is Movement.UNCLEAR and clear.interval[0] > clear.matters
    needed = comparison.trials_that_decide(clear, planned=4, most=100)
    assert needed == math.ceil(4 * (2.5758 / 2.1893) ** 2) == 6
    assert comparison.trials_that_decide(dataclasses.replace(clear, p=1.0), planned=4, most=100) is None


@pytest.mark.parametrize(("family", "trials"), [(1, 14), (4, 16)])
def test_a_share_of_half_of_the_trials_takes_more_of_them(family, trials):
    assert comparison.fewest_trials(family, is_share=True) == trials > comparison.fewest_trials(family)


VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=7)
SIDES = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=6)


def of(sides):
    return {quantity(at): (side(a), side(b)) for at, (a, b) in enumerate(sides, 1)}


@given(SIDES)
def test_swapping_the_sides_negates_differences_and_changes_nothing_else(sides):
    there = comparison.compare(of(sides))
    back = comparison.compare(of([(b, a) for a, b in sides]))
    for one, other in zip(there, back, strict=True):
        assert other.difference == -one.difference
        assert other.interval == (-one.interval[1], -one.interval[0])
        assert (one.before, one.after, one.change) == (other.after, other.before, other.change)
        assert other.p == pytest.approx(one.p)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_equal_inputs_are_all_the_same(sides):
    for found in comparison.compare(of([(values, list(values)) for values in sides])):
        assert (found.change, found.identical, found.difference) == (Movement.SAME, True, 0)
        assert (found.p, found.interval) == (1.0, (0.0, 0.0))


@pytest.mark.slow
@given(SIDES, st.randoms(use_true_random=False))
def test_the_order_of_trials_and_of_quantities_does_not_matter(sides, rng):
    def shuffled(values):
        items = list(values.items())
        rng.shuffle(items)
        return dict(items)

    there = of(sides)
    other = {q: (shuffled(before), shuffled(after)) for q, (before, after) in there.items()}
    keys = list(other)
    rng.shuffle(keys)
    found = {c.quantity: c for c in comparison.compare(there)}
    for c in comparison.compare({q: other[q] for q in keys}):
        expected = found[c.quantity]
        assert dataclasses.replace(c, p=0.0) == dataclasses.replace(expected, p=0.0)
        assert c.p == pytest.approx(expected.p)


@pytest.mark.slow
def test_the_family_wise_error_rate_is_kept():
    """Of 200 comparisons of 30 cells in which nothing moved, two or three raise an alarm at 1 %, hardly ever ten."""
    rng = random.Random(2)
    alarms = 0
    for _ in range(200):
        sides = {q: (noise(rng, 0.5), noise(rng, 0.5)) for q in QUANTITIES}
        alarms += any(c.p < comparison.ALPHA for c in comparison.compare(sides))
    assert alarms <= 9


@pytest.mark.slow
def test_what_matters_is_hardly_ever_called_the_same():
    """Of 400 shifts that just matter, at most 5 % are called the same, so hardly ever 32."""
    rng = random.Random(4)
    wrong = 0
    for _ in range(400):
        sides = {quantity(matters=0.03): (noise(rng, 0.5, 8), noise(rng, 0.53, 8))}
        wrong += comparison.compare(sides)[0].change is Movement.SAME
    assert wrong < 32


def test_as_many_trials_are_proposed_as_would_make_an_unclear_quantity_clear():
    unclear = one([0.50, 0.52, 0.48, 0.51], [0.51, 0.53, 0.50, 0.49], matters=0.02)
    assert unclear.change is Movement.UNCLEAR
    assert comparison.trials_that_decide(unclear, planned=8, most=100) == 8
    # It differs by 0.005, and the interval's half is 0.03: it is to be as narrow as the 0.015 that are left.
    half = (unclear.interval[1] - unclear.interval[0]) / 2
    expected = math.ceil(4 * (half / (unclear.matters - unclear.difference)) ** 2)
    assert comparison.trials_that_decide(unclear, planned=4, most=100) == expected > 4
    assert comparison.trials_that_decide(unclear, planned=4, most=expected - 1) is None
    on_the_edge = dataclasses.replace(unclear, after=unclear.before + unclear.matters)
    assert comparison.trials_that_decide(on_the_edge, planned=4, most=100) is None
    # What half of the trials show takes twice as many, and none that were made are made again.
    assert comparison.trials_that_decide(unclear, planned=4, most=100, tried=8) == 13
    assert comparison.trials_that_decide(one([0.5], [0.9]), planned=8, most=100, tried=8) == 64
    too_few = dataclasses.replace(unclear, interval=(-math.inf, math.inf))
    assert comparison.trials_that_decide(too_few, planned=4, most=100) is None

import collections
import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from conformance.model.judging import statistics

values = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_median_of_an_even_number_is_the_mean_of_the_middle_two():
    assert statistics.median([4, 1, 3, 2]) == 2.5
    with pytest.raises(ValueError, match="no median"):
        statistics.median([])


@pytest.mark.parametrize(
    ("count", "confidence", "interval"),
    [
        (4, 0.9, (-math.inf, math.inf)),
        (5, 0.9, (1, 5)),  # 1 - 2/2**5 = 93.75 %
        (20, 0.95, (6, 15)),  # the textbook's table for n = 20: 95.86 %
    ],
)
def test_an_interval_of_the_median_ends_at_two_ranks(count, confidence, interval):
    assert statistics.median_interval(range(count, 0, -1), confidence) == interval


@given(values)
def test_the_interval_holds_the_median(found):
    low, high = statistics.median_interval(found)
    assert low <= statistics.median(found) <= high


@given(values, st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_more_confidence_never_narrows(found, a, b):
    wide, narrow = (statistics.median_interval(found, c) for c in (max(a, b), min(a, b)))
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


def test_bias_and_rms():
    bias, rms = statistics.bias_and_rms([0.1, -0.1, 0.1, 0.1])
    assert bias == pytest.approx(0.05)
    assert rms == pytest.approx(0.1)


@pytest.mark.parametrize(("n", "reference_n"), [(3, 3), (2, 5), (4, 2)])
def test_the_chance_of_exceedances_is_that_of_counting_all_orders(n, reference_n):
    """All orders of n trials among those of the reference are equally likely."""
    orders = list(itertools.combinations(range(n + reference_n), n))
    for k in range(n + 1):
        # If k of our trials are below the reference's smallest, the k smallest places are ours.
        hits = sum(set(range(k)) <= set(ours) for ours in orders)
        assert statistics.exceedance_p(n, k, reference_n) == pytest.approx(hits / len(orders))


def test_five_of_five_beyond_twenty_of_the_reference_are_no_chance():
    assert statistics.exceedance_p(5, 5, 20) == pytest.approx(1 / 53130)


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_more_trials_outside_are_less_likely(n, reference_n, data):
    k = data.draw(st.integers(1, n))
    assert statistics.exceedance_p(n, k, reference_n) < statistics.exceedance_p(n, k - 1, reference_n)
    assert statistics.sign_test_p(n, k) < statistics.sign_test_p(n, k - 1)


def test_the_sign_test_is_a_coin():
    assert statistics.sign_test_p(5, 5) == 1 / 32
    assert statistics.sign_test_p(3, 0) == 1


def rejected_by_holm(p_values, alpha):
    return {at for at, p in enumerate(statistics.holm_adjusted(p_values)) if p <= alpha}


def test_holm_goes_on_until_the_first_that_is_not_small_enough():
    # The textbook's steps at alpha 0.05: 0.05/4, 0.05/3, 0.05/2, 0.05.
    assert rejected_by_holm([0.01, 0.04, 0.03, 0.005], 0.05) == {0, 3}
    assert rejected_by_holm([0.02, 0.012, 0.6], 0.05) == {0, 1}
    assert rejected_by_holm([], 0.05) == set()


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_rejects_whatever_bonferroni_does_and_only_the_smallest(p_values):
    assert all(p <= q <= 1.0 for p, q in zip(p_values, statistics.holm_adjusted(p_values), strict=True))
    rejected = rejected_by_holm(p_values, 0.05)
    assert {i for i, p in enumerate(p_values) if p <= 0.05 / len(p_values)} <= rejected
    assert all(p_values[i] <= p_values[j] for i in rejected for j in range(len(p_values)) if j not in rejected)


def test_holm_keeps_the_family_wise_rate():
    """Of 2000 families of 20 true hypotheses, about 5 % have any that is rejected (standard error 0.5 %)."""
    draw = random.Random(9)
    families = 2000
    false = sum(bool(rejected_by_holm([draw.random() for _ in range(20)], 0.05)) for _ in range(families))
    assert 0.03 < false / families < 0.065


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.data())
def test_the_ways_of_a_rank_sum_are_those_of_counting_all_choices(sizes, data):
    """This includes choices of more than half of the values, which are counted by the values left over."""
    total = sum(sizes)
    if total == 1:
        return
    n = data.draw(st.integers(1, total - 1))
    doubled, found = statistics.mid_ranks(value for value, size in enumerate(sizes) for _ in range(size))
    assert found == tuple(sizes)
    ranks = [doubled[value] for value, size in enumerate(sizes) for _ in range(size)]
    counted = collections.Counter(sum(chosen) for chosen in itertools.combinations(ranks, n))
    ways = statistics.rank_sum_ways(n, tuple(sizes))
    assert {at: count for at, count in enumerate(ways) if count} == counted


@pytest.mark.slow
def test_many_values_are_judged_nearly_as_few_are(monkeypatch):
    """The sizes are where the approximation begins, the chances decide verdicts, and ties come from rounding."""
    draw = random.Random(4)
    sides = [[round(draw.gauss(shift, 1), 2) for _ in range(n)] for n, shift in ((340, 0.85), (60, 0.0))]
    exact = statistics.rank_sum_p(*sides), statistics.mann_whitney_critical(340, 60, 1e-6)
    monkeypatch.setattr(statistics, "MOST_EXACT", 0)
    statistics.mann_whitney_critical.cache_clear()
    near = statistics.rank_sum_p(*sides), statistics.mann_whitney_critical(340, 60, 1e-6)
    statistics.mann_whitney_critical.cache_clear()
    assert exact[0] < 1e-6
    assert math.log(near[0]) == pytest.approx(math.log(exact[0]), rel=0.05)
    assert near[1] == pytest.approx(exact[1], rel=0.005)


def test_thousands_of_values_take_no_table():
    assert statistics.rank_sum_p(range(10_000), range(-10_000, 0)) == 0.0
    assert statistics.mann_whitney_critical(10_000, 60, 1e-6) < 600_000

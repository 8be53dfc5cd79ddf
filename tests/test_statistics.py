import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model import statistics

values = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def test_median_of_an_even_number_is_the_mean_of_the_middle_two():
    assert statistics.median([4, 1, 3, 2]) == 2.5
    with pytest.raises(ValueError, match="no median"):
        statistics.median([])


def test_five_values_give_minimum_to_maximum_at_90_percent():
    assert statistics.median_interval([5, 3, 1, 2, 4]) == (1, 5)  # 1 - 2/2**5 = 93.75 %


def test_four_values_are_too_few():
    assert statistics.median_interval([1, 2, 3, 4]) == (-math.inf, math.inf)


def test_twenty_values_at_95_percent_are_the_sixth_and_the_fifteenth():
    # The textbook's table for n = 20: ranks 6 and 15, 95.86 %
    assert statistics.median_interval(range(1, 21), 0.95) == (6, 15)


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

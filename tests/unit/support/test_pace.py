"""Pace: an estimate of remaining time that leaves out one-time costs."""

import pytest
from helpers import Clock
from hypothesis import given, strategies as st

from conformance.support.pace import Pace


def test_the_start_of_a_guest_does_not_count():
    clock = Clock()
    pace = Pace(clock=clock)
    for done in range(1, 7):
        clock.now = 33 + 2 * done  # the start takes 33 s
        pace.reached(done)
    assert pace.remaining_s(74) == pytest.approx(148)


def test_nothing_is_said_while_little_is_known():
    clock = Clock()
    pace = Pace(clock=clock)
    assert pace.remaining_s(80) is None
    clock.now = 33
    pace.reached(1)
    assert pace.remaining_s(79) is None


def test_the_estimate_counts_down_between_two_pieces():
    clock = Clock()
    pace = Pace(fewest=1, clock=clock)
    for clock.now in (10, 20):
        pace.reached(clock.now / 10)
    assert pace.remaining_s(3) == pytest.approx(30)
    clock.now = 25
    assert pace.remaining_s(3) == pytest.approx(25)
    clock.now = 99
    assert pace.remaining_s(3) == 0


@given(st.floats(0, 1000), st.floats(0.01, 100), st.integers(6, 50), st.integers(0, 1000))
def test_at_an_even_pace_the_estimate_is_exact_however_long_the_start_took(start_s, each_s, done, left):
    clock = Clock()
    pace = Pace(clock=clock)
    for number in range(1, done + 1):
        clock.now = start_s + number * each_s
        pace.reached(number)
    assert pace.remaining_s(left) == pytest.approx(each_s * left, rel=1e-6, abs=1e-6)

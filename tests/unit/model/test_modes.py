import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.model import modes

LOW, HIGH = 0.06, 0.60


def two_ways(rng, n, share):
    """n values of which a share is low."""
    return [abs(rng.gauss(LOW, 0.02)) if rng.random() < share else rng.gauss(HIGH, 0.05) for _ in range(n)]


def test_two_modes_are_found_with_their_shares():
    found = modes.modes([0.05] * 20 + [0.07] * 10 + [0.6] * 30)
    assert (found.low, found.n, found.share) == (30, 60, 0.5)
    assert found.threshold == pytest.approx(0.335)


def test_of_two_modes_nearly_every_draw_is_told():
    rng = random.Random(1)
    assert sum(modes.modes(two_ways(rng, 60, 0.5)) is not None for _ in range(200)) >= 197


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.gauss(0.6, 0.2),
        lambda rng: rng.uniform(0, 1),
        lambda rng: rng.expovariate(1),
        lambda rng: rng.lognormvariate(0, 0.5),
    ],
    ids=["normal", "uniform", "exponential", "lognormal"],
)
def test_one_mode_rarely_passes_for_two(draw):
    rng = random.Random(2)
    assert sum(modes.modes([draw(rng) for _ in range(60)]) is not None for _ in range(400)) <= 4


def test_few_values_equal_values_and_a_tail_are_no_modes():
    assert modes.modes([LOW] * 14 + [HIGH] * 15) is None
    assert modes.modes([0.5] * 60) is None
    assert modes.modes([LOW] * 5 + [HIGH] * 55) is None
    assert modes.modes([LOW] * 9 + [HIGH] * 51) is not None


@given(st.lists(st.floats(0, 1), min_size=30, max_size=70))
def test_modes_do_not_depend_on_the_order(values):
    found = modes.modes(values)
    assert modes.modes(values[::-1]) == found
    if found:
        assert min(values) < found.threshold < max(values)
        assert found.low == modes.at(found.threshold, values).low


def test_a_stack_that_is_always_low_is_told_by_60_trials_of_the_reference():
    """The audit's figures: a median does not see it."""
    always = modes.at(0.3, [LOW] * 20)
    of_60, of_20 = modes.at(0.3, [LOW, HIGH] * 30), modes.at(0.3, [LOW, HIGH] * 10)
    assert modes.share_p(always, of_60) == pytest.approx(2.6e-5, rel=0.3)
    assert modes.share_p(always, of_20) == pytest.approx(4e-4, rel=0.3)
    assert modes.share_p(of_20, of_60) == 1.0


def test_a_share_that_is_the_same_is_rarely_told_apart():
    rng = random.Random(3)
    alpha, told = 0.01, 0
    for _ in range(200):
        reference = modes.modes(two_ways(rng, 60, 0.5))
        told += modes.share_p(modes.at(reference.threshold, two_ways(rng, 20, 0.5)), reference) <= alpha
    assert told <= 7  # of 2 expected at most: Fisher's test is conservative


def test_the_cut_per_round_is_what_rounds_with_losses_leave():
    rounds = [100, 70, 49, 34.3, 34.3, 50, 35]
    assert modes.cut_per_round(rounds, [True, True, True, False, False, True, False]) == pytest.approx(0.7)
    assert modes.cut_per_round(rounds, [False] * 7) is None
    assert modes.cut_per_round(rounds, [True, True, False, False, False, False, False]) is None


def test_a_round_that_probes_was_not_cut_and_one_without_data_tells_nothing():
    assert modes.cut_per_round([10, 20, 30, 40], [True] * 4) == 1.0
    assert modes.cut_per_round([0, 10, 7, 4.9, 3.43], [True] * 5) == pytest.approx(0.7)


def test_rounds_of_which_not_all_are_known_are_refused():
    with pytest.raises(ValueError, match="2 rounds, 1 of them known"):
        modes.cut_per_round([1, 2], [True])

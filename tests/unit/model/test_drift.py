"""Drift: what moved beyond noise, and by enough to matter."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.commands import drift as command
from conformance.model import statistics
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.studies import drift

CELLS = [Cell(10, d, 1) for d in range(1, 31)]


def noise(rng, mean):
    return [rng.gauss(mean, 0.02) for _ in range(10)]


def test_a_cell_that_moved_is_found_among_those_that_did_not():
    rng = random.Random(1)
    before = {cell: noise(rng, 0.5) for cell in CELLS}
    after = {cell: noise(rng, 0.6 if cell == CELLS[7] else 0.5) for cell in CELLS}
    assert [d.cell for d in drift.compare(before, after) if d.moved] == [CELLS[7]]


def test_certain_but_too_small_to_matter():
    before, after = {CELLS[0]: [0.954] * 10}, {CELLS[0]: [0.955] * 10}
    (found,) = drift.compare(before, after)
    assert found.p < drift.ALPHA and not found.moved
    (found,) = drift.compare(before, after, matters=0.0005)
    assert found.moved


def test_the_test_is_exact_with_ties_too():
    """Against all 252 ways of choosing 5 of 10 values, counted one by one."""
    a, b = [1.0, 2.0, 2.0, 3.0, 3.0], [2.0, 3.0, 4.0, 4.0, 5.0]
    ranks = [1, 3, 3, 6, 6, 3, 6, 8.5, 8.5, 10]
    observed, mean = sum(ranks[:5]), sum(ranks) / 2
    chosen = [sum(c) for c in itertools.combinations(ranks, 5)]
    expected = sum(abs(s - mean) >= abs(observed - mean) for s in chosen) / len(chosen)
    assert drift.rank_sum_p(a, b) == pytest.approx(expected)
    assert drift.rank_sum_p([0.5] * 10, [0.8] * 10) == pytest.approx(drift.smallest_p(10))
    assert drift.rank_sum_p(range(20), range(20, 40)) == pytest.approx(drift.smallest_p(20))


def test_the_same_values_did_not_move():
    same = {CELLS[0]: [0.9] * 10}
    assert drift.compare(same, same)[0].p == 1.0


@pytest.mark.slow
def test_the_family_wise_error_rate_is_kept():
    """200 comparisons of 30 cells in which nothing moved: at 1 % two or three raise an alarm, hardly ever ten."""
    rng = random.Random(2)
    alarms = 0
    for _ in range(200):
        sides = [{cell: noise(rng, 0.5) for cell in CELLS} for _ in range(2)]
        alarms += any(d.p < drift.ALPHA for d in drift.compare(*sides))
    assert alarms <= 9


@pytest.mark.slow
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_holm_is_monotone_and_between_the_p_value_and_bonferroni(p_values):
    adjusted = statistics.holm_adjusted(p_values)
    for p, q in zip(p_values, adjusted, strict=True):
        assert p <= q <= 1.0
    assert min(adjusted) == pytest.approx(min(1.0, min(p_values) * len(p_values)))
    ranks = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert all(adjusted[a] <= adjusted[b] for a, b in itertools.pairwise(ranks))


@pytest.mark.parametrize(
    ("kernels", "sysctls", "sides"),
    [
        (("6.1", "default"), (), [("6.1", ()), ("default", ())]),
        ((), ("net.ipv4.a=1",), [(None, ()), (None, (("net.ipv4.a", "1"),))]),
        (
            ("6.1",),
            ("net.ipv4.a=1", "net.ipv4.a=2"),
            [("6.1", (("net.ipv4.a", "1"),)), ("6.1", (("net.ipv4.a", "2"),))],
        ),
        (("6.1", "x"), ("net.ipv4.a=1",), [("6.1", (("net.ipv4.a", "1"),)), ("x", (("net.ipv4.a", "1"),))]),
    ],
)
def test_sides_from_the_command_line(kernels, sysctls, sides):
    assert [(v.kernel, v.sysctls) for v in command.variants(kernels, sysctls)] == sides


@pytest.mark.parametrize(
    ("kernels", "sysctls"), [((), ()), (("a",), ()), (("a", "a"), ()), (("a", "b", "c"), ()), ((), ("net.ipv4.a",))]
)
def test_what_makes_no_two_sides_is_refused(kernels, sysctls):
    with pytest.raises(UserError):
        command.variants(kernels, sysctls)

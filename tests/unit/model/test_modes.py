import dataclasses
import random
import statistics

import pytest
import scipy.stats
from helpers import CELL, measurements, zone
from hypothesis import given, strategies as st

from conformance.model.judging import modes, zone as zones
from conformance.model.judging.approach import approach
from conformance.model.judging.verdict import Status, judge
from conformance.model.judging.zone import Basis, Interval, Margin
from conformance.model.metrics.table import METRICS

ZONE = zone(0.4, 0.6)

UTILIZATION = METRICS["utilization"]

LOW, HIGH = 0.06, 0.60


def two_ways(rng, n, share):
    """Return n random values, of which a share is low."""
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
    """These are the audit's figures; a median does not show the difference."""
    always = modes.at(0.3, [LOW] * 20)
    of_60, of_20 = modes.at(0.3, [LOW, HIGH] * 30), modes.at(0.3, [LOW, HIGH] * 10)
    assert modes.share_p(always, of_60) == pytest.approx(2.6e-5, rel=0.3)
    assert modes.share_p(always, of_20) == pytest.approx(4e-4, rel=0.3)
    assert modes.share_p(of_20, of_60) == 1.0


@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_shares_are_compared_by_fishers_exact_test(n, others, data):
    ours, reference = (modes.Modes(threshold=0.5, low=data.draw(st.integers(0, of)), n=of) for of in (n, others))
    table = [[ours.low, ours.n - ours.low], [reference.low, reference.n - reference.low]]
    assert modes.share_p(ours, reference) == pytest.approx(scipy.stats.fisher_exact(table).pvalue)


def test_a_share_that_is_the_same_is_rarely_told_apart():
    rng = random.Random(3)
    alpha, told = 0.01, 0
    for _ in range(200):
        reference = modes.modes(two_ways(rng, 60, 0.5))
        told += modes.share_p(modes.at(reference.threshold, two_ways(rng, 20, 0.5)), reference) <= alpha
    assert told <= 7  # 2 are expected at most, because Fisher's test is conservative


def two_mode_zone(counted=True):
    """Return a zone whose reference is low in 33 of 60 trials, so that its median is low."""
    values = (*(LOW + 0.0001 * k for k in range(33)), *(HIGH + 0.0001 * k for k in range(27)))
    return dataclasses.replace(ZONE, intervals={CELL: interval_of(values, counted)})


def interval_of(values, counted=True):
    margin = Margin(relative=0.1, absolute=0.0005)
    ordered = tuple(sorted(values))
    basis = Basis(
        reference="made",
        n=len(values),
        median=statistics.median(values),
        min=ordered[0],
        max=ordered[-1],
        values=ordered,
    )
    low, high = zones.hull([basis], margin)
    return Interval(low=low, high=high, bases=(basis,), margin=margin, counted=counted)


def test_a_stack_that_is_low_in_every_trial_violates_although_its_median_is_permitted():
    found = judge(two_mode_zone(), CELL, measurements([LOW] * 20))
    assert found.status is Status.VIOLATES and found.value in found.permitted
    assert found.reason == "another mode: 20 of 20 trials are below 0.3316, against 33 of the basis's 60"


def test_a_stack_that_is_low_as_often_as_the_reference_does_not_violate():
    as_often = measurements([LOW] * 11 + [HIGH] * 9)
    assert judge(two_mode_zone(), CELL, as_often).status is Status.COMPATIBLE
    assert approach(two_mode_zone(), CELL, as_often, 1) > 1


def test_no_mode_is_judged_where_the_cell_is_not():
    assert judge(two_mode_zone(counted=False), CELL, measurements([LOW] * 20)).status is Status.NOT_JUDGED


def test_a_share_may_be_too_likely_in_a_large_family():
    found = judge(two_mode_zone(), CELL, measurements([LOW] * 20), family=400)
    assert found.status is Status.INCONCLUSIVE and "more trials needed" in found.reason
    assert judge(two_mode_zone(), CELL, measurements([LOW] * 40), family=400).status is Status.VIOLATES


def test_modes_nearer_than_the_margin_do_not_matter():
    near = interval_of([0.80] * 30 + [0.85] * 30)
    assert modes.modes(near.basis.values) is not None
    assert modes.shares([0.80] * 40, near, UTILIZATION) is None
    assert modes.shares([LOW] * 40, interval_of([LOW] * 30 + [HIGH] * 30), UTILIZATION).p < 1e-6


def test_of_several_bases_the_likeliest_counts():
    """A stack that is always low, like one of two bases, is not told apart."""
    first, second = interval_of([LOW] * 30 + [HIGH] * 30), interval_of([LOW] * 60)
    both = dataclasses.replace(first, bases=(first.basis, second.basis))
    assert modes.shares([LOW] * 40, both, UTILIZATION).p == 1.0


@pytest.mark.parametrize(
    ("metric", "in_one_mode", "is_fault"),
    [
        ("harm_pct", LOW, False), ("harm_pct", HIGH, True), ("jain_index", HIGH, False), ("jain_index", LOW, True),
        ("utilization", LOW, True), ("utilization", HIGH, True),
    ],
)  # fmt: skip
def test_a_mode_that_is_no_fault_of_the_metric_convicts_nobody(metric, in_one_mode, is_fault):
    found = modes.shares([in_one_mode] * 40, interval_of([LOW] * 30 + [HIGH] * 30), METRICS[metric])
    assert (found.p < 1e-6) is is_fault and (found.p == 1.0) is not is_fault

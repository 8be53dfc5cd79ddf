"""Relations of claims over intervals: laws that they keep, and verdicts on deliberately wrong data."""

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, strategies as st

from conformance.model.studies import claims
from conformance.model.studies.claims import (
    Alike,
    ClaimVerdict,
    Estimate,
    Falls,
    Instance,
    JudgedClaim,
    Maximum,
    NotSeen,
    Order,
    Rises,
    Within,
)

VALUES = st.lists(st.floats(0.01, 1000), min_size=1, max_size=12)
FIVE = st.lists(st.floats(0.01, 1000), min_size=5, max_size=12)
SERIES = st.lists(st.floats(0.1, 100), min_size=2, max_size=6)
LESS = st.floats(0, 3)
RELATIONS = [
    Within(low=1, high=2), Order(), Order(factor=2), Rises(), Rises(factor=2), Falls(), Maximum(at=(0,)),
    Alike(points=1.0), Alike(ratio=0.1),
]  # fmt: skip


def exactly(value):
    """Return what is seen in five trials of this value."""
    return Estimate.of([value] * 5)


def instance(relation, n):
    return Instance(relation=relation, quantities=tuple(range(n)), where="", labels=("",) * n)


def judged(relation, seen):
    return claims.judge([instance(relation, len(seen))], dict(enumerate(seen)).__getitem__)


@given(VALUES)
def test_fewer_than_five_trials_have_no_bounds(values):
    seen = Estimate.of(values)
    assert math.isinf(seen.low) == math.isinf(seen.high) == (len(values) < 5)
    assert seen.low <= seen.median <= seen.high


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
@given(data=st.data())
def test_four_trials_decide_nothing(relation, data):
    n = 1 if isinstance(relation, Within) else 3
    seen = [Estimate.of(data.draw(st.lists(st.floats(0.1, 10), min_size=4, max_size=4))) for _ in range(n)]
    assert judged(relation, seen).verdict is ClaimVerdict.INCONCLUSIVE


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
@given(data=st.data())
def test_wider_intervals_only_open_what_was_decided(relation, data):
    """More uncertainty never turns a verdict into its opposite."""
    n = 1 if isinstance(relation, Within) else 3
    narrow = [exactly(data.draw(st.floats(0.1, 10))) for _ in range(n)]
    wide = [dataclasses.replace(one, low=one.low - data.draw(LESS), high=one.high + data.draw(LESS)) for one in narrow]
    before, after = relation.holds(narrow), relation.holds(wide)
    assert after in (before, None)


@given(FIVE, st.floats(0.1, 1000), st.floats(0.1, 1000))
def test_within_agrees_with_its_interval(values, one, other):
    low, high = sorted((one, other))
    seen = Estimate.of(values)
    holds = Within(low=low, high=high).holds([seen])
    assert (holds is True) == (low <= seen.low and seen.high <= high)
    assert (holds is False) == (seen.high < low or seen.low > high)


@given(SERIES)
def test_of_exact_values_order_is_sorting(series):
    falling = all(a > b for a, b in itertools.pairwise(series))
    assert Order().holds([exactly(value) for value in series]) is falling


@given(SERIES, st.floats(1, 3))
def test_what_rises_falls_backwards(series, factor):
    seen = [exactly(value) for value in series]
    assert Rises(factor=factor).holds(seen) is Falls(factor=factor).holds(seen[::-1])


@given(SERIES)
def test_what_rises_does_not_fall(series):
    seen = [exactly(value) for value in series]
    assert not (Rises().holds(seen) and Falls().holds(seen))


def test_a_step_back_of_a_twentieth_is_none():
    assert Rises().holds([exactly(v) for v in (1.0, 0.96, 2.0)]) is True
    assert Rises().holds([exactly(v) for v in (1.0, 0.9, 2.0)]) is False


@given(SERIES, st.randoms(use_true_random=False))
def test_the_maximum_is_where_it_is(series, chance):
    seen = [exactly(value) for value in series]
    at = chance.randrange(len(series))
    if series.count(max(series)) == 1:
        assert Maximum(at=(at,)).holds(seen) is (series[at] == max(series))


@given(SERIES, st.floats(0.01, 2))
def test_alike_is_symmetric_and_knows_the_extremes(series, ratio):
    seen = [exactly(value) for value in series]
    holds = Alike(ratio=ratio).holds(seen)
    assert holds is Alike(ratio=ratio).holds(seen[::-1])
    if abs(max(series) / min(series) - (1 + ratio)) > 1e-6:
        assert holds is (max(series) / min(series) < 1 + ratio)


def test_overlapping_trials_are_open_whatever_their_medians():
    one, other = Estimate.of([1, 2, 3, 4, 5]), Estimate.of([4, 5, 6, 7, 8])
    for relation in (Order(), Rises(), Falls(), Alike(points=1.5), Alike(ratio=0.5)):
        assert judged(relation, [one, other]).verdict is ClaimVerdict.INCONCLUSIVE


def test_wrong_data_differ():
    """No relation reproduces a study that published the opposite of what is measured."""
    low, high = [Estimate.of([v, v + 0.1, v + 0.2, v + 0.3, v + 0.4]) for v in (1.0, 10.0)]
    assert judged(Order(), [high, low]).verdict is ClaimVerdict.REPRODUCED
    for relation in (Order(), Rises(factor=2), Maximum(at=(0,)), Alike(ratio=0.25), Alike(points=1)):
        seen = [low, high] if not isinstance(relation, Rises) else [high, low]
        assert judged(relation, seen).verdict is ClaimVerdict.DIFFERS
    assert judged(Within(low=3, high=4), [low]).verdict is ClaimVerdict.DIFFERS
    assert judged(Order(factor=20), [high, low]).verdict is ClaimVerdict.DIFFERS


def test_chance_alone_seldom_decides_an_order():
    """With five trials of one distribution on each side, one side is wholly beyond the other in 2 of 252 cases."""
    chance = random.Random(1)
    found = [Order().holds([Estimate.of([chance.random() for _ in range(5)]) for _ in range(2)]) for _ in range(4000)]
    assert found.count(True) + found.count(False) < 4000 * 2 / 252 * 1.7


def test_one_place_that_does_not_hold_decides():
    look = {0: exactly(1.0), 1: exactly(5.0), 2: NotSeen("kernel bbrv2 is not built")}.__getitem__
    places = [Instance(relation=Within(low=0, high=2), quantities=(at,), where="", labels=("",)) for at in range(3)]
    assert claims.judge(places, look).verdict is ClaimVerdict.DIFFERS
    found = claims.judge([places[0], places[2]], look)
    assert (found.verdict, found.judged, found.of) == (ClaimVerdict.REPRODUCED, 1, 2)
    assert found.why == "kernel bbrv2 is not built"
    assert claims.judge([places[2]], look).verdict is ClaimVerdict.NOT_JUDGED
    assert claims.judge([], look).verdict is ClaimVerdict.NOT_JUDGED


@pytest.mark.parametrize(
    ("anchor", "verdict", "words"),
    [
        (ClaimVerdict.REPRODUCED, ClaimVerdict.DIFFERS, None),
        (ClaimVerdict.DIFFERS, ClaimVerdict.REPRODUCED, "scaled, and anchor a differs"),
        (ClaimVerdict.INCONCLUSIVE, ClaimVerdict.DIFFERS, "scaled, and anchor a is inconclusive"),
        (ClaimVerdict.NOT_JUDGED, ClaimVerdict.DIFFERS, "scaled, and anchor a was not measured"),
    ],
)
def test_anchors_decide_whether_a_scaled_point_may_stand_for_a_published_one(anchor, verdict, words):
    """The published point holds, the scaled one does not, and the latter counts unless its anchor differs."""
    look = {0: exactly(1.0), 1: exactly(5.0)}.__getitem__
    published, scaled = (
        Instance(relation=Within(low=0, high=2), quantities=(at,), where="", labels=("",), anchors=names)
        for at, names in ((0, ()), (1, ("a",)))
    )
    anchors = {"a": JudgedClaim(verdict=anchor, why=None)}
    found = claims.judge([published, scaled], look, anchors)
    assert found.verdict is verdict
    assert (found.why is None) if words is None else (words in found.why)
    assert claims.judge([published], look, anchors) == claims.judge([published], look), "it rests on no anchor"
    alone = claims.judge([scaled], look, anchors)
    assert alone.verdict is (ClaimVerdict.NOT_JUDGED if anchor is ClaimVerdict.DIFFERS else ClaimVerdict.DIFFERS)
    assert [one.median for one in alone.findings[0].estimates] == [5.0], "what was seen is kept"

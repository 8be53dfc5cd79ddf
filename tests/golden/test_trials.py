"""The golden trials come out as recorded, and what compares them finds what differs."""

import json

import pytest
import trials
from hypothesis import given
from hypothesis import strategies as st

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.guest
def test_golden_trials_are_as_recorded():
    """Of builds that this machine has; those of the default kernel are the ones that every machine has."""
    before, compared = trials.recorded(), []
    for replayed in trials.replay([golden for golden in trials.GOLDENS if golden.name in before]):
        name = replayed.golden.name
        if replayed.why_not or trials.obstacle(replayed.line, before[name]):
            continue
        assert trials.first_difference(before[name], replayed.line) is None, name
        compared.append(name)
    if not compared:
        pytest.skip("kernel and stacks are other builds here than those that were recorded")


def test_every_golden_is_recorded():
    assert {golden.name for golden in trials.GOLDENS} == set(trials.recorded())


@given(DOCUMENTS, DOCUMENTS)
def test_documents_differ_where_they_are_not_equal(one, other):
    equal = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (trials.first_difference(one, other) is None) == equal


def test_the_first_difference_is_named():
    assert trials.first_difference({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}) == ("/a/1/b", 2, 3)
    assert trials.first_difference({"a": 1}, {}) == ("/a", 1, "nothing")
    assert trials.first_difference([1], [1, 2]) == ("/length", 1, 2)
    assert trials.first_difference(1, True) == ("", 1, True)

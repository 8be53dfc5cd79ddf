"""The golden trials come out as recorded, and their comparison finds every difference."""

import json

import attest
import pytest
import trials
from hypothesis import given, strategies as st

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


#: a few of all kinds: a cell, a path that is split, two passes, impairments, a bond, and QUIC
FEW = ("tcp-cubic-loss", "tcp-path-split", "shared-two-passes", "shared-bond", "quic-requests-impaired")


@pytest.mark.guest
@pytest.mark.parametrize("names", [FEW, pytest.param(None, marks=pytest.mark.thorough)], ids=["few", "all"])
def test_golden_trials_are_as_recorded(names):
    """Only builds that this machine has are compared; every machine has those of the default kernel."""
    before, compared = trials.recorded(), []
    for replayed in trials.replay([golden for golden in trials.GOLDENS if golden.name in (names or before)]):
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


@pytest.fixture
def attesting(monkeypatch):
    """Return a function that attests with replays as recorded, except for goldens that are missing or of other builds.

    It returns (exit status, whether sources were attested).
    """
    attested = []
    monkeypatch.setattr(attest.version, "attest", attested.append)

    def run(not_made=(), other_build=()):
        def replay():
            for golden in trials.GOLDENS:
                line = trials.recorded()[golden.name]
                if golden.name in other_build:
                    line["trial"]["scheme"]["stack_digest"] = "another"
                yield trials.Replay(golden=golden, **({"why_not": "x"} if golden.name in not_made else {"line": line}))

        monkeypatch.setattr(trials, "replay", replay)
        return attest.main([]), bool(attested)

    return run


def test_sources_are_attested_where_each_golden_of_the_default_kernel_is_equal(attesting, capsys):
    assert attesting() == (0, True)
    assert "not compared" not in capsys.readouterr().out
    assert attesting(not_made=("tcp-cubic-6.12", "quic-cubic-6.12")) == (0, True)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("; not compared: tcp-cubic-6.12, quic-cubic-6.12 (kernel 6.12)")


def test_a_golden_of_the_default_kernel_that_was_not_compared_attests_nothing(attesting, capsys):
    assert attesting(not_made=("tcp-rival",)) == (2, False)
    assert "attest: not compared: tcp-rival; build" in capsys.readouterr().out.splitlines()[-1]
    assert attesting(other_build=("quic-cubic",), not_made=("tcp-cubic-6.12",)) == (2, False)
    assert "attest: not compared: quic-cubic; build" in capsys.readouterr().out.splitlines()[-1]

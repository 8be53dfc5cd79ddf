"""Which faults explain what clauses measured."""

import pytest

from conformance.model.clauses import faults
from conformance.model.clauses.document import Bound

SIGNATURES = {
    "slow": {"A01": -2.0, "A02": -1.5},
    "deaf": {"A03": 1.4},
    "both": {"A01": -1.2, "A03": 1.2, "A04": 2.0},
    "harmless": {"A02": -0.5},
}


@pytest.mark.parametrize(
    ("bound", "amount", "share"),
    [
        (Bound(low=4, high=6, why=""), 5.5, 0.5),
        (Bound(low=4, high=6, why=""), 3.0, -2.0),
        (Bound(high=6, why=""), 4.5, -0.5),
        (Bound(low=4, why=""), 9.0, 2.0),
        (Bound(low=5, high=6, why=""), 4.9, -0.4),  # the document's value is the bound
    ],
)
def test_a_share_is_the_way_from_the_documents_value_to_the_bound(bound, amount, share):
    assert faults.share(bound, amount, 5.0) == pytest.approx(share)


def named(shares):
    return [explanation.fault for explanation in faults.likeliest(shares, SIGNATURES)]


def test_faults_are_named_one_after_another_for_what_is_left_to_explain():
    shares = {"A01": -2.0, "A02": -1.5, "A03": 1.4, "A04": 0.0}
    explanations = faults.likeliest(shares, SIGNATURES)
    assert [explanation.fault for explanation in explanations] == ["slow", "deaf"]
    assert [explanation.clauses for explanation in explanations] == [("A01", "A02"), ("A03",)]


def test_what_is_kept_speaks_against_a_fault():
    assert named({"A03": 1.3, "A04": 0.0}) == ["deaf"]
    assert named({"A03": 1.2, "A04": 2.0, "A01": -1.2})[0] == "both"


def test_without_a_violated_clause_there_is_no_fault():
    assert named({"A01": -0.9, "A02": -0.9, "A03": 0.0}) == []
    assert named({}) == []

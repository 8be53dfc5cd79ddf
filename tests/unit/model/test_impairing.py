"""Counts of the program that impairs packets, compared with what it was asked to do."""

import pytest

from conformance.model.emulation import impairing
from conformance.model.networks.impairments import Impairments

NOTHING = dict.fromkeys(
    (
        "came", "left", "other", "too_long", "chosen", "again", "burst", "in_bad", "between", "marked", "not_markable",
        "bleached", "duplicated", "reordered", "held", "thinned", "waiting", "late_ns",
    ),
    0,
)  # fmt: skip


def problems(asked, **seen):
    found = {**NOTHING, "came": 10_000, "left": 10_000, **seen}
    return list(impairing.problems([Impairments.from_json(one) for one in (asked or [{}])], found))


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ({}, {}),
        ({"duplicate_pct": 2}, {"duplicated": 210, "left": 10_210}),
        ({"reorder": {"share_pct": 2, "by_packets": 3}}, {"reordered": 190}),
        ({"burst_loss": {"enter_pct": 1, "leave_pct": 50}}, {"in_bad": 190, "burst": 190, "left": 9810}),
        ({"lose": {"first": 9_999, "count": 5}}, {"chosen": 2, "left": 9_998}),
        ({"lose": {"first": 51, "every": 100}}, {"chosen": 100, "left": 9_900}),
        ({"lose": {"first": 51, "every": 100}}, {"chosen": 99, "left": 9_901}),
        ({"lose": {"first": 1, "every": 100, "of": 7}}, {"chosen": 700, "left": 9_300}),
        ({"mark_pct": 1}, {"marked": 90}),
        ({"mark_pct": 1}, {"not_markable": 90, "left": 9_910}),
        ({"slots": {"every_ms": 5, "keep": "newest"}}, {"thinned": 7_000, "left": 3_000}),
        ({"rebind": "port"}, {"rebound": 5_000, "stale": 20, "left": 9_980}),
        # It is not the program's fault if there was no packet in one direction (see moves.py).
        ({"rebind": "address"}, {"rebound": 0, "stale": 49, "left": 9_951}),
    ],
)
def test_what_was_done_as_asked_is_no_problem(asked, seen):
    assert problems([asked], **seen) == []


@pytest.mark.parametrize(
    ("asked", "seen", "words"),
    [
        ({}, {"left": 9_999}, "9999 packets left the hop, but 10000 should have"),
        ({}, {"duplicated": 1, "left": 10_001}, "1 packets were counted as duplicated, and none should have been"),
        ({}, {"late_ns": 2_000_000}, "a packet left the hop 2 ms late"),
        ({"duplicate_pct": 2}, {}, "0 of 10000 packets were duplicated instead of 2 %"),
        ({"duplicate_pct": 2}, {"duplicated": 300, "left": 10_300}, "300 of 10000 packets were duplicated"),
        ({"reorder": {"share_pct": 2, "by_packets": 3}}, {"reordered": 100}, "100 of 10000 packets were reordered"),
        ({"lose": {"first": 10}}, {}, "0 chosen packets were lost, but 1 should have been"),
        (
            {"lose": {"first": 51, "every": 100}},
            {"chosen": 98, "left": 9_902},
            "98 chosen packets were lost, but 99 to 100",
        ),
        (
            {"lose": {"first": 1, "every": 100, "of": 7}},
            {"chosen": 701},
            "701 chosen packets were lost, but 694 to 700",
        ),
        ({"mark_pct": 1}, {"marked": 10}, "10 of 10000 packets were marked instead of 1 %"),
        ({"burst_loss": {"enter_pct": 1, "leave_pct": 50}}, {"in_bad": 200, "burst": 90, "left": 9_910}, "90 of 200"),
        ({"ecn": "bleached"}, {"marked": 3}, "3 packets were counted as marked, and none should have been"),
        ({}, {"rebound": 7, "stale": 0}, "7 packets were rebound, and none should have been"),
    ],
)
def test_what_was_not_done_as_asked_is_said(asked, seen, words):
    assert any(one.startswith(words) for one in problems([asked], **seen))


def test_shares_are_not_compared_where_they_changed():
    assert problems([{}, {"duplicate_pct": 50}], duplicated=10, left=10_010) == []


def test_each_number_of_a_rule_has_its_place():
    asked = Impairments.from_json(
        {
            "reorder": {"share_pct": 1, "by_ms": 2}, "duplicate_pct": 3, "jitter_ms": 4, "mark_pct": 5, "ecn": "all_ce",
            "burst_loss": {"enter_pct": 6, "leave_pct": 7}, "largest_bytes": 800,
            "lose": {"first": 9, "count": 10, "again": 11}, "rebind": "address",
            "hold": {"first": 12, "by_ms": 13, "every": 14, "of": 3},
        }
    )  # fmt: skip
    numbers = list(map(int, impairing.rule(asked, 77, lambda every: every - 1).split()))
    percent, ms = 10**7, 10**6
    assert numbers == [
        77, percent, 0, 0, 2 * ms, 3 * percent, 6 * percent, 7 * percent, 100 * percent, 0, 4 * ms, 0, 0, 5 * percent,
        2, 800, 9, 10, 0, 1, 1, 11, 12 + 13, 1 << 62, 0, 14, 3, 13 * ms, 2,
    ]  # fmt: skip

"""Bursts: which packets left together, and what is kept about them."""

import pytest

from conformance.guest import bursts

#: transmission time of a packet of 1250 bytes at 10 Mbit/s
OWN_NS = 1_000_000


def sent(*gaps_ns):
    at, found = 0, [(0, 1250)]
    for gap in gaps_ns:
        at += gap
        found.append((at, 1250))
    return found


def test_packets_closer_than_a_tenth_of_their_own_time_are_sent_at_once():
    assert bursts.lengths(sent(0, OWN_NS // 10, OWN_NS // 10 + 1, 50), 10) == [3, 2]
    assert bursts.lengths(sent(OWN_NS // 10), 100) == [1, 1]  # on a faster link, these do not leave together
    assert bursts.lengths([], 10) == []


@pytest.mark.parametrize(
    ("found", "usual"), [([1] * 100, 1), ([2] * 200 + [10], 10), ([2] * 500 + [10], 2), ([10, 90], 90), ([1], 1)]
)
def test_all_but_a_hundredth_of_the_packets_are_in_bursts_as_long_as_is_usual_or_shorter(found, usual):
    seen = bursts.summary(found, 0)
    assert (seen.usual, seen.longest, seen.packets) == (usual, max(found), sum(found))


def test_nothing_sent_has_no_bursts():
    assert bursts.summary([], 3) is None

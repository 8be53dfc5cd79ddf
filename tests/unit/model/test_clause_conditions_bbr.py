"""Clauses by which the document's deviations are told, with made-up senders: paced, and through an unlimited queue."""

import pytest
from made_senders import by_fours, paced, permitted, why_not

#: start-up until two BDP are in flight, and Drain until one is, on a path with a round trip of 80 ms
FILLS = [(0.5, 0.08), (1.0, 0.24), (2.0, 0.08), (1.0, 0.24)]
DRAINED = [*FILLS, (0.5, 0.16), (1.0, 4.4)]
#: ten packets, and then all of the link, until its rate grows
GREW = [(0.15, 0.08), (1.0, 0.67)]
#: a body, a silence until the next, and the requests of the two
SILENT = [(1.0, 1.2), (0.0002, 6.84)]
BODIES = {"requests": [(0.0, 1_500_000), (8.0, 1_500_000)]}


def probes(count, apart_s, again_s=0.0):
    """Return parts with so many probes; where `again_s` is given, another follows each so much later."""
    probe = [(1.24, 0.16), (0.8, 0.2)]
    twice = [*probe, (0.99, again_s - 0.36), *probe] if again_s else probe
    return [*DRAINED, *(part for _ in range(count) for part in [*twice, (0.99, apart_s)]), (0.99, 1.0)]


def test_a_probe_after_a_lossy_one_is_followed_at_once():
    assert permitted("BBR501", paced, probes(4, 3.0, again_s=0.5))
    assert not permitted("BBR501", paced, probes(5, 3.0))
    assert "too few" in why_not("BBR501", paced, probes(2, 3.0))


def test_on_a_short_path_probes_come_by_rounds():
    probe = [(1.24, 0.04), (0.8, 0.05)]
    often, seldom = ([(1.0, 1.3), *([*probe, (0.99, apart)] * 6)] for apart in (0.5, 1.8))
    assert permitted("BBR504", paced, often) and not permitted("BBR504", paced, seldom)
    # Two more packets of 17, in two round trips each 0.1 s, are no probes between those that come.
    bunched = [(1.0, 1.3), *([*probe, *[(0.99, 0.06), (1.11, 0.04)] * 5] * 6)]
    assert permitted("BBR504", paced, bunched)
    # Of four at once, a round trip has 16 or 20.
    assert permitted("BBR504", by_fours, [(1.0, 1.3), *([(1.24, 0.08), (0.8, 0.1), (0.99, 0.5)] * 6)])


@pytest.mark.parametrize("clause", ["BBR505", "BBR513"])
def test_losses_end_start_up_or_do_not(clause):
    bulk = {"requests": [*((at / 2, 12_500) for at in range(8)), (3.9, 2_500_000)]}
    goes_on = [(0.5, 4.0), (1.1, 0.2), (2.0, 0.2), (1.0, 2.0)]
    is_over = [(0.5, 4.0), (0.6, 2.0), (0.75, 1.0)]
    assert permitted(clause, paced, is_over, **bulk) and not permitted(clause, paced, goes_on, **bulk)
    assert permitted("BBR506", paced, goes_on, **bulk) and not permitted("BBR506", paced, is_over, **bulk)


def test_where_the_path_became_slower_the_flight_is_two_bdp_and_then_follows():
    slower = {"slower": (3.0, 0.5)}
    two_bdp_until = [(1.0, 3.0), (0.8, 0.1), (0.5, 11.0)]
    assert permitted("BBR507", paced, [(1.0, 3.0), (0.5, 18.0)], **slower)
    assert not permitted("BBR507", paced, [(1.0, 3.0), (1.0, 0.16), (0.5, 18.0)], **slower)
    assert permitted("BBR525", paced, [(1.0, 3.0), (1.0, 0.12), (0.5, 18.0)], **slower)
    assert not permitted("BBR525", paced, [(1.0, 3.0), (1.0, 0.2), (0.5, 18.0)], **slower)
    assert "too soon" in why_not("BBR507", paced, two_bdp_until[:1], **slower)


def test_a_window_of_the_shorter_path_stays_for_ten_seconds():
    assert permitted("BBR508", paced, [(1.0, 3.0), (0.7, 7.5), (1.0, 5.0)])
    assert not permitted("BBR508", paced, [(1.0, 3.0), (0.7, 3.0), (1.0, 9.0)])
    assert permitted("BBR508", paced, [(1.0, 3.0), (0.7, 3.0)], ended_s=16.0)  # it never is back


def test_what_is_in_flight_soon_after_something_happened_in_cruise():
    at = {"triggered": {"cruise": 1.0}}
    for clause in ("BBR511", "BBR529"):
        assert permitted(clause, paced, [(1.0, 5.0)], **at)
        assert not permitted(clause, paced, [(1.0, 1.3), (2.0, 0.08), (1.0, 4.0)], **at)


def test_drain_ends_with_a_bdp_in_flight():
    assert permitted("BBR527", paced, [*FILLS, (1.0, 0.12), (0.5, 0.16), (1.0, 3.0)])
    assert not permitted("BBR527", paced, [*FILLS, (0.9, 2.0), (1.0, 3.0)])
    # The draft has no least time for it.
    assert permitted("BBR527", paced, [*FILLS[:3], (0.5, 0.16), (1.0, 3.0)])
    assert "no more than a BDP" in why_not("BBR527", paced, [(1.0, 6.0)])


@pytest.mark.parametrize(
    ("clause", "right", "wrong", "how"),
    [
        pytest.param("BBR528", [*DRAINED, (1.0, 10.0)], [*FILLS, (1.0, 12.0)], {}, id="a-bdp-after-start-up"),
        pytest.param("BBR522", [(0.4, 6.0)], [(40.0, 0.001), (0.5, 6.0)], {}, id="first-flight-in-twos"),
        pytest.param(
            "BBR532", [*GREW, (1.7, 2.0)], [*GREW, (1.25, 2.0)], {"slower": (0.7, 2.0)}, id="growth-by-quarter"
        ),
        pytest.param("BBR521", [*SILENT, (1.0, 1.2)], [*SILENT, (1.0, 0.08), (0.5, 1.0)], BODIES, id="after-a-silence"),
    ],
)
def test_a_clause_permits_one_sender_and_not_the_other(clause, right, wrong, how):
    assert permitted(clause, paced, right, **how)
    assert not permitted(clause, paced, wrong, **how)


def test_a_large_initial_window_is_no_fault_where_the_rate_grows():
    early = [(0.25, 0.08), (1.0, 0.67), (1.25, 2.0)]
    assert "initial window" in why_not("BBR532", paced, early, slower=(0.7, 2.0))


def test_what_is_lost_after_the_rate_fell_has_a_bound():
    after = [(1.0, 1.0), (0.1, 6.0)]
    first = round(1.0 * 12.5e6 / 1500)
    assert permitted("BBR512", paced, after, lost=set(range(first, first + 30)))
    assert not permitted("BBR512", paced, after, lost=set(range(first, first + 1200)))


def test_the_least_flight_is_that_of_probe_rtt():
    assert not permitted("BBR523", paced, [(1.0, 3.0), (0.3, 0.2), (1.0, 3.0)])
    assert not permitted("BBR524", paced, [(1.0, 12.0)])
    assert "none was overdue" in why_not("BBR524", paced, [(1.0, 10.0)])
    assert permitted("BBR524", paced, [(1.0, 3.0), (0.5, 0.2), (1.0, 3.0)])

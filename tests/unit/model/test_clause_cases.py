"""Observables of the cases in the BBR draft, with made-up senders: paced, and through an unlimited queue."""

import pytest
from made_senders import paced, permitted, why_not

SLOW = [(0.5, 4.0)]
BULK = {"requests": [*((at / 2, 12_500) for at in range(8)), (3.9, 2_500_000)]}
LATE = {"requests": [(0.0, 12_500), (3.9, 2_500_000)]}


def test_a_large_body_shows_whether_start_up_was_over():
    doubles = [*SLOW, (1.1, 0.2), (2.6, 0.2), (1.0, 2.0)]
    keeps = [*SLOW, (0.6, 2.0), (0.75, 1.0)]
    assert permitted("BBR07", paced, doubles, **BULK) and not permitted("BBR02", paced, doubles, **BULK)
    assert permitted("BBR02", paced, keeps, **BULK) and not permitted("BBR07", paced, keeps, **BULK)
    assert why_not("BBR07", paced, keeps, **LATE) == "the sender was slower than its application, which had to wait"
    assert why_not("BBR02", paced, keeps) == "it is not known when bodies were asked for"
    assert why_not("BBR02", paced, [*SLOW, (0.6, 0.1)], **BULK) == "the last body was over within a round trip"


#: start-up puts two BDP in flight
FILLS = [(0.5, 0.08), (1.0, 0.08), (2.0, 0.08), (1.0, 0.16)]


def test_a_drain_that_waits_for_the_flight_alone_is_too_long():
    slower = {"slower": (0.4, 0.55), "triggered": {"drain": 0.4}}
    three = [*FILLS, (0.5, 0.8), (0.89, 0.16), (0.55, 2.0)]
    for_ever = [*FILLS, (0.5, 3.0)]
    assert permitted("BBR04", paced, three, **slower)
    assert not permitted("BBR04", paced, for_ever, **slower)
    assert not permitted("BBR04", paced, [*FILLS, (0.5, 0.2)], **slower, ended_s=4.0)  # it falls silent
    assert "never sent slower" in why_not("BBR04", paced, [*FILLS, (1.0, 3.0)], **slower)


PROBED = [(1.0, 1.0), (1.25, 0.1)]


def test_where_the_path_does_not_drain_the_next_probe_comes_in_time():
    slower = {"slower": (1.1, 0.89), "triggered": {"probe_down": 1.1}}
    refills = [(0.99, 0.04), (1.25, 0.1), (0.89, 2.0)]
    assert permitted("BBR09", paced, [*PROBED, (0.89, 2.5), *refills], **slower)
    assert not permitted("BBR09", paced, [*PROBED, (0.89, 6.0), *refills], **slower)
    assert not permitted("BBR09", paced, [*PROBED, (0.89, 4.0), (0.1, 0.3), *refills], **slower)
    for parts in ([(0.89, 0.2), (0.1, 0.3), (0.89, 2.0), *refills], [(0.89, 1.0)]):
        assert why_not("BBR09", paced, [*PROBED, *parts], **slower).startswith(
            "the path drained, or the transfer was over"
        )


def test_acknowledgements_that_come_together_cost_nothing_and_are_no_bandwidth():
    right = [(0.5, 0.04), (1.0, 0.04), (2.7, 0.04), (1.0, 3.0)]
    assert permitted("BBR12", paced, right) and permitted("BBR112", paced, right)
    assert not permitted("BBR12", paced, [(0.8, 3.0)])
    assert not permitted("BBR112", paced, [(0.5, 0.04), (4.0, 0.04), (1.0, 3.0)])
    assert "two seconds" in why_not("BBR12", paced, [(1.0, 1.0)])
    assert "a round trip" in why_not("BBR112", paced, [(1.0, 0.03)])


def test_nothing_stalls_where_acknowledgements_begin_to_come_together():
    at = {"triggered": {"cruise": 1.0}}
    assert permitted("BBR13", paced, [(1.0, 6.0)], **at)
    assert not permitted("BBR13", paced, [(1.0, 1.0), (0.8, 5.0)], **at)
    assert not permitted("BBR13", paced, [(1.0, 2.0)], **at, ended_s=6.0)
    assert why_not("BBR13", paced, [(1.0, 6.0)]) == "it is not known when the state began that the change waited for"


def test_a_higher_rate_is_used_soon():
    after = [(1.0, 2.5), (1.25, 0.04), (4.0, 0.04), (9.5, 1.0)]
    assert permitted("BBR15", paced, after, slower=(0.9, 10))
    assert not permitted("BBR15", paced, [(1.0, 2.5), (2.0, 4.0)], slower=(0.9, 10))
    assert not permitted("BBR15", paced, [(1.0, 2.5)], slower=(0.9, 10), ended_s=7.0)  # it falls silent


def test_where_the_rate_falls_so_does_what_is_sent():
    assert permitted("BBR16", paced, [(1.0, 1.5), (0.1, 4.0)])
    assert not permitted("BBR16", paced, [(1.0, 1.5), (0.2, 4.0)])
    assert "too soon" in why_not("BBR16", paced, [(1.0, 1.5)])


@pytest.mark.parametrize(
    ("clause", "rate"),
    [("BBR16", 0.1), ("BBR512", 0.1), ("BBR15", 10), ("BBR519", 4), ("BBR507", 0.5), ("BBR508", 1), ("BBR529", 1)],
)
def test_a_sender_that_was_slower_before_the_path_changed_shows_nothing(clause, rate):
    slow = why_not(clause, paced, [(0.5, 30.0)], slower=(0.9, rate), triggered={"cruise": 1.0})
    assert slow.startswith("it did not use the link before the path changed")


@pytest.mark.parametrize(("clause", "held_s"), [("BBR18", 0), ("BBR19", 1)])
def test_what_was_late_and_not_lost_costs_nothing(clause, held_s):
    at = {"triggered": {"cruise": 1.0}}
    before = [(1.0, 1.2), (0.1, held_s)] if held_s else [(1.0, 1.2)]
    assert permitted(clause, paced, [*before, (1.0, 1.5)], **at)
    assert not permitted(clause, paced, [*before, (0.5, 1.5)], **at)


def test_a_probe_that_a_loss_should_end_or_not():
    at = {"triggered": {"probe_up": 0.92}}
    over = [(1.0, 1.04), (0.9, 0.4), (1.0, 3.0)]
    ends = [(1.0, 1.0), (1.25, 0.12), (0.9, 0.4), (1.0, 3.0)]
    goes_on = [(1.0, 1.0), (1.25, 0.4), (0.9, 0.4), (1.0, 3.0)]
    several = {"lost": set(range(840, 844))}
    assert permitted("BBR21", paced, ends, **at, **several) and not permitted("BBR21", paced, goes_on, **at, **several)
    silent = [(1.0, 1.0), (1.25, 0.1), (0.0006, 2.0), (1.0, 1.0)]
    for clause in ("BBR121", "BBR118"):
        assert permitted(clause, paced, goes_on, **at, lost={840}) and not permitted(
            clause, paced, ends, **at, lost={840}
        )
        assert not permitted(clause, paced, silent, **at, lost={840})
        assert why_not(clause, paced, over, **at) == "it no longer probed when it could know what had happened"
    assert not permitted("BBR118", paced, [(1.0, 1.0), (1.25, 0.16), (0.3, 0.08), (1.0, 3.0)], **at, lost={840})
    assert "too soon" in why_not("BBR118", paced, [(1.0, 1.0), (1.25, 0.4)], **at)
    assert why_not("BBR21", paced, over, **at) == "it no longer probed when it could know what had happened"
    assert (
        why_not("BBR21", paced, [(1.0, 1.0), (1.25, 0.4)], **at, **several) == "the transfer was over while it probed"
    )


def test_losses_while_it_cruises_leave_beta():
    at = {"triggered": {"cruise": 1.0}}
    for left in (0.99, 0.6, 0.5):
        assert not permitted("BBR401", paced, [(1.0, 1.45), (left, 2.0)], **at)
    assert permitted("BBR401", paced, [(1.0, 1.45), (0.69, 2.0)], **at)
    assert "nine tenths" in why_not("BBR401", paced, [(0.8, 1.45), (0.56, 2.0)], **at)
    assert "too soon" in why_not("BBR401", paced, [(1.0, 1.45), (0.69, 0.2)], **at)


@pytest.mark.parametrize(("clause", "keeps", "ignores"), [("BBR402", 0.71, 0.9), ("BBR502", 0.89, 0.72)])
def test_evenly_spaced_losses_show_on_which_side_of_the_threshold_they_are(clause, keeps, ignores):
    assert permitted(clause, paced, [(1.0, 4.2), (keeps, 10.0)])
    assert not permitted(clause, paced, [(1.0, 4.2), (ignores, 10.0)])
    assert not permitted("BBR402", paced, [(1.0, 4.2), (0.4, 10.0)])


def test_short_pauses_cost_no_bandwidth():
    asked = [(at, 400_000) for at in (0.0, 1.0, 2.0, 3.0, 4.0)]
    whole, less = [(0.98, 0.32), (0.001, 0.68)], [(0.6, 0.5), (0.001, 0.5)]
    assert permitted("BBR22", paced, whole * 6, requests=asked)
    assert not permitted("BBR22", paced, less * 6, requests=asked)
    assert "no large body" in why_not("BBR22", paced, whole * 6, requests=asked[:2])


def test_what_is_sent_to_a_client_that_has_left_is_no_part_of_the_second_half():
    """A server may send probes for seconds after that; picoquic's did so behind the policer with a large bucket."""
    left = [(1.0, 20.0), (0.002, 15.0)]
    assert permitted("BBR217", paced, left, ended_s=20.0)
    assert not permitted("BBR217", paced, left, ended_s=35.0)
    late = range(20_000, 20_020)
    assert permitted("BBR317", paced, left, lost=late, ended_s=20.0)


def test_a_sender_that_stands_still_until_the_client_is_done_is_seen_to():
    assert not permitted("BBR217", paced, [(1.0, 12.0)], ended_s=20.0)
    assert why_not("BBR317", paced, [(1.0, 8.0)], ended_s=20.0) == "nothing was sent in the second half"

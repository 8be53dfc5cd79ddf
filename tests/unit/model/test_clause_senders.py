"""Observables of clauses on outages, marks and BBR's states, with made-up senders.

Second 3 of a schedule is 2.9 here, because the first packet is sent at 0.1 s (made_senders.BEGAN_NS).
"""

import dataclasses
import itertools

import numpy
import pytest
from made_senders import paced, permitted, seen, timed, why_not, windows

from conformance.model.captures import packets

#: packets of a round trip of 40 ms at 10 Mbit/s
BDP = 33


def probes(begin_s, gaps_s, together=1):
    """Return when packets are sent: a full path until `begin_s`, then probes with these gaps."""
    full = [at * 0.0012 for at in range(int(begin_s / 0.0012))]
    at_s = itertools.accumulate(gaps_s, initial=begin_s + 0.2)
    return [*full, *(at + 0.0001 * number for at in at_s for number in range(together))]


def doubling(first_s, count):
    return [first_s * 2**at for at in range(count)]


# --- little to send


def bodies(packets_at_once):
    """Return when packets are sent: a body of three seconds, little for ten, then a body that begins with a burst."""
    full = [at * 0.0012 for at in range(2500)]
    little = [3.06 + at * 0.02 + number * 0.0001 for at in range(500) for number in range(5)]
    return [
        *full,
        *little,
        *(13.08 + at * 0.0005 for at in range(packets_at_once)),
        *(13.2 + at * 0.0012 for at in range(900)),
    ]


def test_a_window_that_is_not_used_after_a_loss_does_not_grow():
    asked = {"requests": [(0.0, 2_500_000), (3.02, 7500), (13.04, 2_500_000)]}
    assert permitted("CL205", timed, bodies(85), **asked)
    assert not permitted("CL205", timed, bodies(140), **asked)


# --- outages

LOST_BESIDE = "lost beside what happened to the path"


def test_a_short_outage_leaves_what_a_loss_leaves():
    before = [BDP] * 71
    for after, right in (([0.6 * BDP] * 20, True), ([2, 2, 2, 3, 4, 5, 6, 7], False)):
        assert permitted("CL002", windows, [*before, *after], outage=(2.9, 3.0)) is right


@pytest.mark.parametrize("clause", ["CL003", "CL040"])
def test_each_probe_doubles_the_wait(clause):
    assert permitted(clause, timed, probes(2.9, doubling(0.2, 4)), outage=(2.9, 7.9))
    assert not permitted(clause, timed, probes(2.9, [0.3] * 12), outage=(2.9, 7.9))


def test_a_wait_that_is_capped_shows_in_a_long_outage():
    capped = [*doubling(0.2, 5), 5.2, 7.2]  # each is the one before and 2 s at most
    for gaps, right in ((doubling(0.2, 7), True), (capped, False), ([*doubling(0.2, 4), *[2.0] * 7], False)):
        assert permitted("CL203", timed, probes(2.9, gaps), outage=(2.9, 16.9)) is right
    assert "a packet after the outage" in why_not("CL203", timed, probes(2.9, doubling(0.2, 5)), outage=(2.9, 16.9))


def test_what_answers_a_client_is_no_probe():
    """quic-go's client probes too, since the outage hides its answers."""
    sent = sorted([*probes(2.9, doubling(0.2, 4)), 3.12, 3.335, 3.764, 4.622])
    clause, view = seen("CL003", timed, sent, outage=(2.9, 7.9))
    sizes = view.packets.bytes.copy()
    sizes[numpy.isin(sent, [3.12, 3.335, 3.764, 4.622])] = 67
    for answered, right in ((sizes, True), (view.packets.bytes, False)):
        heard = dataclasses.replace(view, packets=dataclasses.replace(view.packets, bytes=answered))
        value = clause.observable.value(clause.observable.samples(heard))
        assert (value in clause.bound) is right


@pytest.mark.parametrize(("together", "right"), [(1, True), (2, True), (3, False)])
def test_a_probe_is_one_packet_or_two(together, right):
    assert permitted("CL037", timed, probes(2.9, doubling(0.2, 4), together), outage=(2.9, 7.9)) is right


@pytest.mark.parametrize(("clause", "most"), [("CL001", 6), ("CL041", 4)])
def test_after_a_long_outage_the_window_is_the_least(clause, most):
    full = [at * 0.0012 for at in range(2416)]
    for window, right in ((2, True), (most + 2, False)):
        after = [4.42 + 0.001 * at for at in range(window)]
        assert permitted(clause, timed, [*full, 4.4, *[at + 0.04 for at in after]], outage=(2.9, 4.39)) is right


def test_an_arrival_that_tells_the_sender_nothing_is_not_the_end_of_an_outage():
    """A server's acknowledgement may be the first packet that arrives; the client does not acknowledge it."""
    full = [at * 0.0012 for at in range(2416)]
    for window, right in ((2, True), (22, False)):
        after = [5.44 + 0.001 * at for at in range(window)]
        assert permitted("CL001", timed, [*full, 4.4, 5.4, *after], outage=(2.9, 4.39)) is right


@pytest.mark.parametrize(("handshake", "packets", "right"), [(3, 13, True), (3, 16, False), (0, 13, False)])
def test_what_the_handshake_opened_is_no_initial_window(handshake, packets, right):
    """Linux's BBR sends 13 packets, because three of the handshake are acknowledged before."""
    sent = [
        *[0.0] * handshake,
        0.05,
        *[0.2 + 0.0001 * at for at in range(packets)],
        *[0.29 + 0.001 * at for at in range(60)],
    ]
    clause, found = seen("CL017", timed, sent)
    sizes = found.packets.bytes.copy()
    sizes[handshake] = 66  # an acknowledgement
    asked = {"client_ns": numpy.array([199_900_000]), "client_bytes": numpy.array([400])}
    found = dataclasses.replace(found, packets=dataclasses.replace(found.packets, bytes=sizes, **asked))
    value = clause.observable.value(clause.observable.samples(found))
    assert (value, value in clause.bound) == (packets - handshake, right)


# --- reordering, losses and marks


def test_a_sender_that_falls_silent_keeps_no_rate():
    for clause in ("CL016", "CL052"):
        assert not permitted(clause, paced, [(1.0, 2.0)], ended_s=7.0)


def grown(times):
    """Return windows of round trips of two seconds; the first loses a packet, which is known in the third."""
    after = [14 * times**at for at in range(5)]
    return [10, 20, 14, 14, 14, *after, *after[-1:] * 3]


# --- BBR's states: round trips of 80 ms

#: start-up puts two BDP in flight
FILLS = [(0.5, 0.08), (1.0, 0.08), (2.0, 0.08), (1.0, 0.16)]
DRAINED = [*FILLS, (0.5, 0.16), (1.0, 5.0)]
PROBED, END = [*DRAINED, (1.24, 0.3)], (1.0, 1.0)
#: what it sends between probes
CRUISES = [(1.0, 0.5), (0.95, 0.24)] * 8
#: a ProbeRTT: the flight falls to half within a round trip, stays there for 200 ms, and rises
DIP = [(0.5, 0.28)]
#: a lower RTT puts a ProbeRTT off: it is 9 s from the first to the second
PUT_OFF = [*DRAINED, (1.0, 1.0), *DIP, (1.0, 9.0), *DIP, (1.0, 9.0), *DIP, (1.0, 5.0), *DIP, (1.0, 1.0)]
#: windows that grow by a quarter in each round trip
SLOW_DOUBLING = [10, 13, 16, 20, 25, 31, 39, 49]


def dipping(every_s, times, dip=DIP):
    return [*DRAINED, *([(1.0, every_s), *dip] * times), (1.0, 1.0)]


@pytest.mark.parametrize(
    ("clause", "sender", "right", "wrong"),
    [
        pytest.param("BBR03", paced, DRAINED, [*FILLS, (0.36, 0.125), (1.0, 5.0)], id="drain-half"),
        pytest.param("BBR08", paced, [*PROBED, (0.89, 0.7), END], [*PROBED, (0.75, 0.3), END], id="down-nine-tenths"),
        pytest.param("BBR102", paced, [*DRAINED, (0.99, 5.0)], [*FILLS, (0.5, 0.16), (0.9, 12.0)], id="cruise"),
        pytest.param(
            "BBR102", paced, [*DRAINED, *[(1.1, 0.08), (0.945, 0.32)] * 40], [(0.9, 15.0)], id="cruise-in-steps"
        ),
        pytest.param("BBR201", windows, [10, 20, 40, 80, 120, 120, 120], SLOW_DOUBLING, id="start-up-doubles"),
        pytest.param("CL004", timed, probes(2.9, doubling(0.2, 4)), probes(2.9, [0.3] * 20), id="no-answer-backoff"),
        pytest.param("CL043", windows, [*[BDP] * 46, *[3] * 60], [BDP] * 120, id="lasting-heavy-loss-backoff"),
        pytest.param("CL016", paced, [(1.0, 6.0)], [(1.0, 1.0), (0.3, 6.0)], id="disorder-costs-no-rate"),
        pytest.param("CL052", paced, [(1.0, 6.0)], [(1.0, 1.0), (0.3, 6.0)], id="disorder-costs-no-rate-of-quic"),
        pytest.param(
            "BBR101", paced, DRAINED, [*FILLS[:3], (2.0, 0.08), (1.0, 0.16), (0.5, 0.4), (1.0, 5.0)],
            id="start-up-goes-on-for-three-rounds",
        ),
        pytest.param(
            "BBR01", paced, DRAINED, [*FILLS, (1.0, 2.0), (0.5, 0.16), (1.0, 3.0)], id="start-up-holds-two-bdp"
        ),
        pytest.param("BBR08", paced, [*PROBED, (0.89, 0.7), *CRUISES], [*PROBED, (0.75, 0.3), END], id="slower-later"),
        pytest.param(
            "BBR05", paced, [*PROBED, (0.89, 1.0), END], [*DRAINED, (1.15, 0.16), (0.89, 0.3), END], id="probe-is-long"
        ),
        pytest.param(
            "BBR105", paced, [*PROBED, (0.89, 1.0), END], [*DRAINED, (2.0, 0.16), (0.5, 0.32), (1.0, 2.0)],
            id="probe-is-gentle",
        ),
        pytest.param("BBR10", paced, dipping(5.0, 3), dipping(10.0, 3), id="probe-rtt-each-five-seconds"),
        pytest.param("BBR10", paced, PUT_OFF, [*DRAINED, (1.0, 12.0)], id="probe-rtt-that-never-comes"),
        pytest.param(
            "BBR10", paced, PUT_OFF, [*DRAINED, (1.0, 1.0), *DIP, (1.0, 20.0)], id="probe-rtt-that-comes-no-more"
        ),
        pytest.param("BBR110", paced, dipping(5.0, 3), dipping(5.0, 3, [(0.75, 0.25)]), id="probe-rtt-is-half-deep"),
        # The draft says in two places that ProbeRTT leaves four packets.
        pytest.param("BBR110", paced, dipping(5.0, 3, [(0.01, 0.25)]), [*DRAINED, (1.0, 12.0)], id="four-packets"),
        pytest.param("BBR210", paced, dipping(5.0, 3), dipping(5.0, 3, [(0.5, 0.8)]), id="probe-rtt-is-short"),
        pytest.param("BBR210", paced, dipping(5.0, 3), [*DRAINED, (1.0, 12.0)], id="probe-rtt-comes"),
        pytest.param("BBR302", paced, [*DRAINED, (0.89, 8.0)], [*DRAINED, (0.99, 8.0)], id="headroom"),
        pytest.param("BBR302", paced, [*DRAINED, (0.89, 8.0)], [*DRAINED, (0.16, 8.0)], id="no-more-than-headroom"),
        pytest.param("CL051", windows, [*[66] * 37, 46, *[66] * 10], [*[66] * 37, *[46] * 12], id="no-loss-is-undone"),
        pytest.param(
            "CL048", windows, [*[BDP] * 121, 17, 17, *range(8, 17), *[17] * 80], [*[BDP] * 121, *[17] * 100],
            id="a-lost-retransmission-reduces-once-more",
        ),
    ],
)  # fmt: skip
def test_a_clause_permits_one_sender_and_not_the_other(clause, sender, right, wrong):
    assert permitted(clause, sender, right)
    assert not permitted(clause, sender, wrong)


@pytest.mark.parametrize(
    ("clause", "sender", "right", "wrong", "how"),
    [
        pytest.param("CL025", windows, grown(1.5), grown(1.8), {"lost": {9}}, id="cubic-grows-by-a-half"),
        pytest.param(
            "CL077", windows, [*[BDP] * 50, *[2] * 100], [*[BDP] * 50, *[BDP / 2] * 100], {"ect": True},
            id="marks-that-go-on-leave-the-minimum",
        ),
        pytest.param(
            "BBR31", paced, [(1.0, 2.0), (0.5, 4.0)], [(1.0, 2.0), (1.0, 4.0)], {"ect": True}, id="bbr-answers-marks"
        ),
        pytest.param(
            "CL038", windows, [*[BDP] * 95, *[1] * 25, *[BDP] * 20], [*[BDP] * 95, *[1] * 25, *[0.5 * BDP] * 20],
            {"slower": (9, 1)}, id="what-a-timeout-alone-reduces",
        ),
        pytest.param(
            "BBR17", paced, [(0.95, 20.0)], [(0.5, 20.0)], {}, id="a-policers-rate-is-used"
        ),
        pytest.param("BBR217", paced, [(0.95, 20.0)], [(0.5, 20.0)], {}, id="a-policers-rate-is-used-later"),
    ],
)  # fmt: skip
def test_a_clause_permits_one_sender_and_not_the_other_where_something_happens(clause, sender, right, wrong, how):
    assert permitted(clause, sender, right, **how)
    assert not permitted(clause, sender, wrong, **how)


LONG_PROBES = [*DRAINED, (1.0, 3.0)]


@pytest.mark.parametrize(
    ("clauses", "sender", "parts", "how", "words"),
    [
        (("CL016", "CL052"), paced, [(1.0, 1.2)], {}, "too soon"),
        (("CL025",), windows, [10, 20, 14, 14, 14], {}, "nothing was lost"),
        (("CL077", "CL076", "CL176"), windows, [*[BDP] * 50, *[2] * 100], {}, "no packet with ECT"),
        (("BBR31",), paced, [(1.0, 2.0), (0.5, 4.0)], {}, "no packet with ECT"),
        (("CL076", "CL176"), windows, [10] * 120, {"ect": True}, "below 16 packets"),
        (("BBR01",), paced, [(0.5, 6.0)], {}, "never filled"),
        (("BBR08",), paced, [*DRAINED, *CRUISES], {}, "after a probe"),
        (("BBR05", "BBR105"), paced, LONG_PROBES, {}, "never sent faster"),
        (("BBR10", "BBR110", "BBR210"), paced, [*DRAINED, (1.0, 8.0)], {}, "none was overdue"),
        (("BBR110",), paced, [*FILLS, (0.0, 18.0), (1.0, 0.005)], {}, "ended within the length of a dip"),
        # BBRv1 waits for nothing, and its probe is over before the loss.
        (("BBR09",), paced, [(1.0, 1.0), (1.25, 0.1), (0.75, 0.02), (1.0, 4.0)],
         {"slower": (1.1, 0.89), "triggered": {"probe_down": 1.1}}, "waits for nothing"),
        (("BBR21",), paced, [(1.0, 1.0), (1.25, 0.08), (0.75, 0.08), (1.0, 3.0)], {"triggered": {"probe_up": 1.0}},
         "it no longer probed when it could know what had happened"),
        (("CL014", "CL049"), windows, [10, 10, 10, 10, 10], {"lost": {3}}, "was isolated"),
        # What reduces the window may be a loss: one of the round trip before the packet that came late.
        (("CL051",), windows, [*[66] * 37, *[46] * 12], {"lost": {66 * 36 - 9}}, LOST_BESIDE),
        (("CL048",), windows, [*[BDP] * 121, *[17] * 25], {}, "over too soon"),
        (("CL042",), windows, [*[BDP] * 72, *[1] * 38, 1, 2, 4, 8], {"outage": (2.9, 4.39)}, "until a loss"),
        (("CL038",), windows, [*[BDP] * 95, *[1] * 25, *[BDP] * 20], {"slower": (9, 1), "lost": {BDP * 95 + 26}},
         LOST_BESIDE),
        (("CL002",), windows, [5] * 200, {"outage": (2.9, 3.0)}, "too small"),
        # A queue that was full just before has its reduction, and the outage another.
        (("CL002",), windows, [*[BDP] * 71, *[8] * 20], {"outage": (2.9, 3.0), "lost": {BDP * 69}}, LOST_BESIDE),
        (("CL002",), windows, [BDP] * 73, {"outage": (2.9, 9.0)}, "nothing arrived"),
        (("CL003", "CL040"), timed, probes(2.9, [0.3]), {"outage": (2.9, 7.9)}, "needs three probes"),
        (("CL205",), timed, bodies(85), {"requests": [(0.0, 9), (13.04, 2_500_000)]}, "no time with little"),
        (("CL205",), timed, bodies(85), {"requests": [(0.0, 9), (8.0, 9), (13.04, 2_500_000)]}, "too small"),
    ],
)  # fmt: skip
def test_what_shows_nothing_of_a_clause_says_why(clauses, sender, parts, how, words):
    for clause in clauses:
        assert words in why_not(clause, sender, parts, **how)


# --- after a loss, a mark, a late packet, or a timeout

#: windows up to 33 packets, with one isolated loss long after that of start-up
LONG = [10, 20, 33, 33, *[16] * 3, *[33] * 12]


def after_a_loss(*windows_after):
    """Return LONG, whose last window loses its first packet (known a round trip later), and the windows after it."""
    lost = {10 + 20, sum(LONG[:-1])}
    return [*LONG, *windows_after], {"lost": lost}


def test_a_reduction_stops_what_is_sent_at_once():
    right, how = after_a_loss(17, 17, 18, 19, 20, 21, 22, 23, 24, 25)
    late, _ = after_a_loss(33, 17, 18, 19, 20, 21, 22, 23, 24, 25)
    for clause in ("CL014", "CL049"):
        assert permitted(clause, windows, right, **how)
        assert not permitted(clause, windows, late, **how)


@pytest.mark.parametrize(
    ("clause", "share", "right"),
    [("CL076", 0.5, True), ("CL076", 0.25, False), ("CL176", 0.7, True), ("CL176", 0.49, False)],
)
def test_marks_of_one_window_reduce_once(clause, share, right):
    sent = [*[BDP] * 72, *[round(share * BDP)] * 30]
    assert permitted(clause, windows, sent, ect=True) is right
    for lost in (BDP * 70, BDP * 72):
        assert LOST_BESIDE in why_not(clause, windows, sent, ect=True, lost={lost})


def test_a_lost_retransmission_that_only_a_timer_of_a_second_tells_reduces_once_more():
    assert permitted("CL048", windows, [*[BDP] * 121, *[17] * 25, 1, 2, 4, 8, *[9] * 80])


def test_slow_start_after_a_timeout_ends_at_seven_tenths():
    full = [BDP] * 72
    outage = {"outage": (2.9, 4.39)}
    grows = (1, 2, 4, 8, 16, 32), (1, 2, 3, 4, 6, 9, 13, 20, 30)  # by bytes, and by packets of which half are answered
    for (ends, right), by in itertools.product(((23, True), (33, False), (12, False)), grows):
        again = [at for at in by if at < ends]
        sent = [*full, *[1] * 38, *again, *[ends + at / 4 for at in range(20)]]
        assert permitted("CL042", windows, sent, **outage) is right


def test_what_was_in_flight_long_before_packets_were_held_is_no_window():
    """A start-up that overshot is over two round trips before; a loss meanwhile reduces the window, too."""
    earlier = [*[BDP] * 20, *[4 * BDP] * 8, *[BDP] * 45]
    assert permitted("CL038", windows, [*earlier, *[1] * 25, *[BDP] * 20], slower=(9, 1))


@pytest.mark.parametrize(("window", "right"), [(10, True), (60, False)])
def test_a_window_that_is_kept_over_a_silence_shows_where_a_sender_paces(window, right):
    gap_s = 0.04 / window
    sent = [*(at * 0.0012 for at in range(1200)), *(8.0 + at * gap_s for at in range(window)), 8.2, 8.3]
    assert permitted("CL046", timed, sent, requests=[(0.0, 1_500_000), (7.9, 3_000_000)]) is right


def test_bbr_sends_two_packets_at_once():
    assert permitted("CL086", paced, DRAINED)
    bursts = [at * 0.012 + 0.0000012 * number for at in range(1000) for number in range(10)]
    assert not permitted("CL086", timed, bursts)


def test_a_sender_that_answers_marks_as_losses_sends_no_ect_1():
    assert permitted("CL081", paced, [(1.0, 3.0)], ect=True) and permitted("CL081", paced, [(1.0, 3.0)])
    assert not permitted("CL081", paced, [(1.0, 3.0)], ect=packets.ECT_1)


@pytest.mark.parametrize("clause", ["BBR117", "BBR317"])
def test_behind_a_policer_little_is_lost(clause):
    steady = [(0.95, 20.0)]
    assert permitted(clause, paced, steady)
    assert not permitted(clause, paced, steady, lost=set(range(0, 16_000, 5)))

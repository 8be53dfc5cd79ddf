"""Silence: what is sent while nothing is outstanding, and what is not sent although it could be, of made-up senders."""

import dataclasses

import numpy
import pytest
from made_senders import seen, timed, why_not

from conformance.model.clauses.seen import Invisible

RTT_S = 0.04
#: the round trip of the path on which probes at rest are counted
SHORT_RTT_S = 0.01
#: when a body of five packets is sent that is asked for at `at_s`
BODIES = [(0.0, 7000), (1.0, 7000), (2.0, 7000)]
#: what a probe resends of the second body, whose last two packets are lost
PROBE, ENDS = [1.126, 1.1261], {8, 9}


def acknowledgements(sent, lost=(), rtt_s=RTT_S):
    """Return when the client's acknowledgements of all packets but the `lost` ones come."""
    return [at + rtt_s + 0.003 for number, at in enumerate(sorted(sent)) if number not in lost]


def body(at_s):
    return [at_s + SHORT_RTT_S / 2 + 0.0015 * number for number in range(5)]


def at_rest(extra=(), lost=(), answered=True, requests=BODIES):
    """Return the clause about probes and a view: of three bodies, the `extra` packets and the acknowledgements."""
    sent = [*body(0.0), *body(1.0), *body(2.0), *extra]
    answers = sent if answered else [at for at in sent if at not in extra or at in PROBE]
    acknowledged = acknowledgements(answers, lost, SHORT_RTT_S)
    return seen("CL207", timed, sent, requests=requests, lost=lost, answers=acknowledged)


#: a timer that runs on: eight probes of two packets
RUNNING = [1.126 + 0.1 * number + extra for number in range(8) for extra in (0, 0.0001)]


@pytest.mark.parametrize(
    ("extra", "rest", "count"),
    [
        pytest.param(PROBE, {}, 0, id="acknowledged"),
        pytest.param([*PROBE, 1.1392, 1.1393], {}, 0, id="what-was-lost-follows"),
        pytest.param(RUNNING, {}, 7, id="a-timer-runs-on"),
        pytest.param([*PROBE, 1.33, 1.73], {}, 2, id="a-timer-backs-off"),
        pytest.param([*PROBE, 1.5, 1.7], {"answered": False}, 0, id="the-server-acknowledges"),
        # The third request comes to the server at 2.005 s.
        pytest.param([*PROBE, 2.5], {"requests": [*BODIES[:2], (2.0, 7000)]}, 0, id="the-client-asked"),
        # Nothing tells the sender that packet 8 is lost until the third probe arrives, so that each is for it.
        pytest.param([1.126, 1.226, 1.426, 1.4261], {"lost": range(8, 12)}, 0, id="still-outstanding"),
    ],
)
def test_probes_at_rest_are_those_for_nothing_outstanding(extra, rest, count):
    clause, view = at_rest(extra, **{"lost": ENDS, **rest})
    probes = clause.observable.value(clause.observable.samples(view))
    assert probes == count and (probes in clause.bound) == (count == 0)


def test_a_sender_that_needed_no_probe_says_nothing_about_its_timer():
    for extra, lost in (((), ()), ([1.025, 1.0251], ENDS)):
        clause, view = at_rest(extra, lost=lost)
        with pytest.raises(Invisible, match="no body that needed a probe"):
            clause.observable.samples(view)


@pytest.mark.parametrize(
    ("requests", "why"),
    [
        (BODIES[:1], "asks for one body"),
        ([(0.0, 70000), (1.0, 700000), (2.0, 7000)], "no body that needed a probe was over"),
    ],
)
def test_a_sender_that_never_rests_says_nothing_about_probes(requests, why):
    assert why in why_not("CL207", timed, [*body(0.0), *body(1.0), *body(2.0)], requests=requests)


STEADY = [0.002 * number for number in range(1500)]


def silent(probes_s, **rest):
    clause, view = seen("CL039", timed, [*STEADY, *probes_s, 8.1, 8.2], outage=(2.9, 7.9), **rest)
    return clause.observable.value(clause.observable.samples(view)), clause.bound


def test_probes_that_double_leave_half_of_an_outage_silent_at_most():
    for first_s in (0.1, 0.2, 0.35, 1.0):
        times = [3.0 + first_s * (2**number - 1) for number in range(1, 8)]
        share, bound = silent([at for at in times if at < 7.9])
        assert share <= 0.5 + first_s / 10 + 0.03 and share in bound


def test_a_sender_that_stands_still_in_an_outage_is_silent_throughout():
    share, bound = silent([])
    assert share == pytest.approx(0.98, abs=0.01) and share not in bound
    share, bound = silent([7.0])
    assert share == pytest.approx(0.8, abs=0.01) and share not in bound


def test_an_answer_to_the_clients_probe_is_no_probe_of_the_sender():
    client_s = [3.18, 3.47, 4.06, 5.24, 7.6]
    clause, view = seen(
        "CL039", timed, [*STEADY, *(at + 0.001 for at in client_s), 8.1, 8.2], outage=(2.9, 7.9), answers=client_s
    )
    view.packets.bytes[len(STEADY) : -2] = 68
    assert clause.observable.value(clause.observable.samples(view)) == pytest.approx(0.98, abs=0.01)
    # What is larger, or leaves later, is a probe.
    for change in ("bytes", "late"):
        late_s = 0.001 if change == "bytes" else 0.05
        sent = [*STEADY, *(at + late_s for at in client_s), 8.1, 8.2]
        clause, view = seen("CL039", timed, sent, outage=(2.9, 7.9), answers=client_s)
        view.packets.bytes[len(STEADY) : -2] = 1200 if change == "bytes" else 68
        assert clause.observable.value(clause.observable.samples(view)) in clause.bound


def idle(parts, lost=(), **rest):
    clause, view = seen("CL139", timed, parts, lost=lost, answers=acknowledgements(parts, lost), **rest)
    samples = clause.observable.samples(view)
    return clause.observable.value(samples), float(samples.times_s[0]), clause.bound


def test_a_sender_that_always_has_something_in_flight_is_never_idle():
    value, _, bound = idle(STEADY)
    assert value == 0 and value in bound


@pytest.mark.parametrize("silence_s", [0.3, 1.0])
def test_silence_with_nothing_outstanding_is_counted_from_when_all_is_known(silence_s):
    value, at_s, bound = idle([*STEADY, *(3.0 + silence_s + at for at in STEADY[:100])])
    # The last packet is known to have arrived a round trip and max_ack_delay after it was sent.
    assert value == pytest.approx((silence_s - 0.07) / RTT_S, abs=0.2) and value not in bound
    assert at_s == STEADY[-1]


def test_waiting_for_a_probe_is_no_idleness():
    # All of a flight of two is lost: the sender waits for its timer, and again, and knows it by the probe that arrives.
    waits = [*STEADY, 3.1, 3.1001, 3.3, 3.7, 3.745, *(3.8 + at for at in STEADY[:100])]
    value, _, bound = idle(waits, lost={1500, 1501, 1502})
    assert value in bound


def test_an_acknowledgement_of_the_server_tells_nothing_of_what_was_lost_before():
    # The server acknowledges something at 3.15 s while it waits for its timer, which sends probes at 4 s.
    parts = [*STEADY, 3.1, 3.1001, 3.15, 4.0, 4.001, *(4.05 + at for at in STEADY[:100])]
    lost = {1500, 1501}
    clause, view = seen("CL139", timed, parts, lost=lost, answers=acknowledgements(parts, {*lost, 1502}))
    view.packets.bytes[1502] = 82
    assert clause.observable.value(clause.observable.samples(view)) in clause.bound
    # Nothing but an acknowledgement is sent for 0.9 s although all had arrived: that is idleness.
    clause, view = seen("CL139", timed, parts, answers=acknowledgements(parts, {1502}))
    view.packets.bytes[1502] = 82
    assert clause.observable.value(clause.observable.samples(view)) == pytest.approx((0.9 - 0.07) / RTT_S, abs=0.2)


def test_a_sender_that_falls_silent_for_good_is_idle_until_the_client_gives_up():
    value, at_s, bound = idle(STEADY, ended_s=33.0)
    assert value == pytest.approx(30 / RTT_S, abs=3) and value not in bound and at_s == STEADY[-1]


def test_neither_an_outage_that_outlasts_the_transfer_nor_pauses_between_bodies_say_anything():
    assert "over before the outage" in why_not("CL039", timed, STEADY, outage=(2.9, 7.9), ended_s=4.0)
    assert "several bodies" in why_not("CL139", timed, STEADY, requests=BODIES)


@pytest.mark.parametrize("name", ["CL207", "CL039", "CL139"])
def test_a_capture_that_was_cut_shows_no_silence(name):
    clause, view = seen(name, timed, STEADY)
    cut = dataclasses.replace(view, packets=dataclasses.replace(view.packets, cut=True))
    with pytest.raises(Invisible, match="no room for packets"):
        clause.observable.samples(cut)


def test_a_trial_in_which_nothing_arrived_is_not_idle_but_not_visible():
    clause, view = seen("CL139", timed, STEADY[:50], lost=range(50), ended_s=5.0)
    with pytest.raises(Invisible, match="no packet was delivered"):
        clause.observable.samples(view)
    assert numpy.isnan(view.out_s).all()

"""States of made-up senders: when each begins."""

import functools

import numpy
import pytest
import record_states

from conformance.model.captures import states
from conformance.model.diagnosis.flow import Flow, in_flight, known
from conformance.model.networks import schedule

FULL = 1500
RATE = 10e6 / 8
ONE_WAY_S = 0.02
BDP = RATE * 2 * ONE_WAY_S


def flow(sent_s, lost=(), one_way_s=ONE_WAY_S):
    """Return the Flow of full packets sent at these times through an unlimited FIFO; `lost`: numbers of packets."""
    sent_s = numpy.asarray(sent_s, dtype=float)
    out_s, free_s = numpy.empty(len(sent_s)), 0.0
    for at, now_s in enumerate(sent_s):
        if at in lost:
            out_s[at] = numpy.nan
            continue
        free_s = max(free_s, now_s + one_way_s) + FULL / RATE
        out_s[at] = free_s
    sizes = numpy.full(len(sent_s), FULL)
    known_s = known(out_s, one_way_s)
    travel_s = numpy.interp(sent_s, sent_s[~numpy.isnan(out_s)], (out_s - sent_s)[~numpy.isnan(out_s)])
    return Flow(
        sent_s=sent_s, bytes=sizes, out_s=out_s, known_s=known_s, flight=in_flight(sent_s, sizes, known_s),
        rtt_s=travel_s + one_way_s, full_bytes=FULL, request_s=0.0, forward_s=one_way_s,
        back_s=one_way_s, bytes_per_s=RATE, began_s=0.0, ack_ratio=0.5,
    )  # fmt: skip


def rates(*parts):
    """Return the times of packets; `parts` are (factor of the link's rate, seconds)."""
    found, at_s = [], 0.0
    for times, seconds in parts:
        count = round(seconds * RATE * times / FULL)
        found += [at_s + i * seconds / count for i in range(count)] if count else []
        at_s += seconds
    return found


#: a start-up that sends twice as much in each round trip of 40 ms, up to the link's rate, which it then keeps
START_UP = [(0.1, 0.04), (0.2, 0.04), (0.4, 0.04), (0.8, 0.04), (1.0, 2.0)]


def test_start_up_ends_three_round_trips_after_delivery_has_stopped_growing():
    found = states.start_up_ends(flow(rates(*START_UP)))
    assert found is not None and 0.2 < found < 0.45


def test_a_sender_that_grows_on_has_not_left_start_up():
    assert states.start_up_ends(flow(rates((0.1, 0.04), (0.2, 0.04), (0.4, 0.04), (0.8, 0.06)))) is None


def test_a_loss_after_which_the_flight_falls_ends_start_up_before():
    growing = rates((0.1, 0.04), (0.2, 0.04), (0.4, 0.04), (0.8, 0.04), (1.6, 0.04))
    after = [at + 0.2 for at in rates((0.3, 1.0))]
    made = flow(growing + after, lost={len(growing) - 20})
    found = states.start_up_ends(made)
    assert found == pytest.approx(states.first_loss(made)) and found < 0.4


def test_the_first_loss_is_when_it_can_be_known():
    sent = rates((0.5, 1.0))
    made = flow(sent, lost={100})
    assert states.first_loss(made) == pytest.approx(made.out_s[103] + ONE_WAY_S)
    assert states.first_loss(flow(sent)) is None


def test_a_drain_is_when_less_is_sent_than_the_path_carries():
    found = states.drain(flow(rates(*START_UP[:4], (2.0, 0.04), (0.5, 0.2), (1.0, 1.0))))
    assert found == pytest.approx(0.2, abs=0.03)
    assert states.drain(flow(rates(*START_UP))) is None


def test_probing_is_sending_more_than_the_link_carries_after_start_up():
    found = states.probe_up(flow(rates(*START_UP, (1.25, 0.12), (1.0, 1.0))))
    assert found == pytest.approx(2.16, abs=0.05)
    assert states.probe_up(flow(rates(*START_UP, (1.0, 1.0)))) is None
    assert states.probe_up(flow(rates(*START_UP[:4], (1.6, 0.2), (0.5, 0.2), (1.0, 1.0)))) is None


def test_draining_is_sending_less_than_the_link_carries_after_probing():
    parts = [*START_UP, (0.8, 0.2), (1.25, 0.12), (0.9, 0.4), (1.0, 1.0)]
    found = states.probe_down(flow(rates(*parts)))
    assert found == pytest.approx(2.48, abs=0.05)
    assert states.probe_down(flow(rates(*START_UP, (0.9, 0.4), (1.0, 1.0)))) is None


def test_cruising_is_sending_what_is_delivered():
    found = states.cruise(flow(rates(*START_UP)))
    assert found is not None and 0.2 < found < 0.6
    assert states.cruise(flow(rates(*START_UP[:4], *[(0.5, 0.04), (1.4, 0.04)] * 20))) is None


def test_a_sender_that_is_stuck_at_a_tenth_of_the_link_does_not_cruise():
    assert states.cruise(flow(rates((0.02, 0.04), (0.05, 0.04), (0.1, 3.0)))) is None


@pytest.mark.parametrize("one_way_s", [0.005, 0.01])
def test_cruising_is_found_soon_where_a_round_trip_has_few_packets(one_way_s):
    found = states.cruise(flow(rates(*START_UP[:4], (1.3, 0.3), (0.99, 3.0), (1.25, 0.2)), one_way_s=one_way_s))
    assert found == pytest.approx(0.5, abs=0.2)


def test_what_start_up_and_probes_put_in_flight_drains_without_probe_rtt():
    parts = [*START_UP[:4], (1.6, 0.3), (0.5, 0.3), (1.0, 1.5), (1.25, 0.8), (0.9, 2.0), (1.0, 2.0)]
    assert states.probe_rtt(flow(rates(*parts))) is None


def test_probe_rtt_is_a_flight_that_falls_without_a_loss():
    parts = [*START_UP, (0.0, 0.03), (0.1, 0.2), (1.0, 1.0)]
    found = states.probe_rtt(flow(rates(*parts)))
    assert found == pytest.approx(2.2, abs=0.08)
    assert states.probe_rtt(flow(rates(*START_UP, (1.0, 1.0)))) is None
    made = rates(*parts)
    near = {at for at, when in enumerate(made) if 2.1 < when < 2.12}
    assert states.probe_rtt(flow(made, lost=near)) is None


#: {state: the document's, and by how many round trips what is found may be off}. Start-up ends with the third round
#: trip without growth, while the sender's own are longer by the queue
SAYS = {
    "start_up_ends": ("Drain", 3),
    "drain": ("Drain", 1),
    "cruise": ("ProbeBwCruise", 1),
    "probe_up": ("ProbeBwUp", 1),
    "probe_down": ("ProbeBwDown", 1),
    "probe_rtt": ("ProbeRtt", 0.5),
}
#: not found: a transfer that is over before, and states of few packets in which one more is an eighth
NOT = {("10 ms", "drain"), ("10 ms", "probe_up"), ("10 ms", "probe_down"), ("20 ms", "probe_rtt")}


@functools.cache
def recorded():
    return record_states.recorded()


@pytest.mark.parametrize(
    ("path", "state"), [(path, state) for path in record_states.PATHS for state in SAYS if (path, state) not in NOT]
)
def test_a_state_is_found_when_the_documents_stack_says_that_it_comes_into_it(path, state):
    made, said = recorded()[path]
    name, most_rtts = SAYS[state]
    up_s = next(at_s for at_s, of in said if of == "ProbeBwUp")
    after_s = up_s if state == "probe_down" else 0
    says_s = next(at_s for at_s, of in said if of == name and at_s >= after_s)
    found_s = states.BEGINS_S[state](made)
    assert found_s is not None and abs(found_s - says_s) <= most_rtts * made.base_rtt_s


def test_every_state_that_a_schedule_may_name_can_be_found():
    assert states.BEGINS_S.keys() == schedule.STATES.keys()
    made = flow(rates(*START_UP))
    assert states.BEGINS_S["request"](made) == 0.0

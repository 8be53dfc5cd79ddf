"""Blame: the factors by which rates differ, for senders whose rules are known, and for plain numbers."""

import dataclasses
import math
import statistics

import pytest
import senders

from conformance.model.diagnosis import blame, features
from conformance.model.diagnosis.blame import Cause, Factor, FlowTraits, Response, Side
from conformance.model.diagnosis.pcap import Packet

HEADERS = 66
#: a path that no window in these tests fills
WIDE = {"one_way_s": 0.02, "bytes_per_s": 1.25e7, "queue_packets": 1000}


def later(packets, at_s, by_s):
    return [Packet(p.seconds + by_s * (p.seconds > at_s), p.bytes, p.identity) for p in packets]


def flow_of(sender, waits=(), **path):
    """Return the Flow of a sender that pauses: `waits` are (when, for how long) in seconds, the last first."""
    sent, came, asked = senders.transfer(sender, **{k: v for k, v in path.items()})
    for at_s, by_s in waits:
        sent, came = later(sent, at_s, by_s), later(came, at_s + path["one_way_s"], by_s)
    both = {"forward_s": path["one_way_s"], "back_s": path["one_way_s"]}
    known = {**both, "bytes_per_s": path["bytes_per_s"], "header_bytes": HEADERS}
    return senders.flows.flow(sent, came, asked, **known)


def side(sender, waits=(), path=WIDE):
    flows = [
        flow_of(dataclasses.replace(sender, lost=senders.every(n, first=150)), waits, **path) for n in (150, 155, 160)
    ]
    return Side(
        values=[float(features.throughput(flow).values[0]) for flow in flows],
        sightings=[blame.seen(flow) for flow in flows],
        responses=[found for flow in flows if (found := blame.response(flow))],
    )


def blamed(ours, theirs, margin=0.1, algorithm="reno"):
    middle = statistics.median(theirs.values)
    return blame.blame(algorithm, "utilization", ours, theirs, (middle * (1 - margin), middle * (1 + margin)))


RENO = senders.Sender(ssthresh=20)


def test_packets_no_longer_than_their_headers_tell_nothing():
    assert blame.seen(flow_of(dataclasses.replace(RENO, full_bytes=HEADERS - 6), **WIDE)) is None


def product(found):
    return found.recovery.value * found.packet_size.value * found.control.value


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "times"),
    # (1 + beta) / (1 - beta) is 5.67 with 0.7 and 3 with 0.5.
    [({"beta": 0.7}, 5.67 / 3), ({"increase": 3}, 3)],
)
def test_beta_and_growth_are_response_and_so_congestion_control(changed, times):
    found = blamed(side(dataclasses.replace(RENO, **changed)), side(RENO))
    assert found.cause is Cause.CONGESTION_CONTROL
    assert found.response.value == pytest.approx(math.sqrt(times), rel=0.1)
    assert found.rest.value == pytest.approx(1, rel=0.15)
    assert found.packet_size.value == pytest.approx(1, abs=0.001)
    assert product(found) == pytest.approx(found.total.value)


@pytest.mark.slow
def test_small_packets_are_named_and_not_the_congestion_control():
    found = blamed(side(dataclasses.replace(RENO, full_bytes=1170 + HEADERS)), side(RENO))
    assert found.cause is Cause.PACKET_SIZE
    assert found.packet_size.value == pytest.approx(1170 / 1448, rel=0.02)
    assert found.control.value == pytest.approx(1, rel=0.05)
    assert "by packet size: 0.8" in found.sentence
    assert "(1170 bytes a packet, the reference 1448)" in found.sentence


@pytest.mark.slow
def test_packet_size_counts_for_nothing_on_a_link_that_is_full():
    narrow = {"one_way_s": 0.02, "bytes_per_s": 1.25e5, "queue_packets": 20}
    ours, theirs = side(dataclasses.replace(RENO, full_bytes=1170 + HEADERS), path=narrow), side(RENO, path=narrow)
    assert blame.sizes_count("reno", ours, theirs) < 0.05
    assert blame.sizes_count("bbrv1", side(RENO), side(RENO)) == 0 < blame.sizes_count("reno", side(RENO), side(RENO))


@pytest.mark.slow
def test_timeouts_are_recovery():
    waits = [(at_s, 1.5) for at_s in (3.0, 2.0, 1.0)]
    found = blamed(side(RENO, waits), side(RENO))
    assert found.cause is Cause.RECOVERY
    assert found.waiting[0] > found.waiting[1]
    assert found.recovery.value == pytest.approx(found.total.value, rel=0.05)
    assert "waiting" in found.sentence


@pytest.mark.slow
def test_a_response_that_no_captures_show_is_not_made_up():
    ours = dataclasses.replace(side(dataclasses.replace(RENO, beta=0.7)), responses=())
    found = blamed(ours, side(RENO))
    assert found.response is None
    assert found.rest == found.control


SAME = FlowTraits(waiting=0.0, payload_bytes=1448, window_limited=1.0)


def of_values(ours, theirs, seen=SAME, bounds=(0.9, 1.1), metric="utilization"):
    return blame.blame(
        "reno", metric, Side(values=ours, sightings=[seen] * 3), Side(values=theirs, sightings=[SAME] * 3), bounds
    )


def test_what_trials_leave_open_is_said_to_be_open():
    wide = [0.5, 0.7, 0.88, 1.0, 1.3]
    found = of_values(wide, [1.0] * 20)
    assert found.cause is None and found.words == "cause unclear"
    assert found.control.low < 0.9 < found.control.high
    assert of_values([0.88] * 5, [1.0] * 20).cause is Cause.CONGESTION_CONTROL


@pytest.mark.parametrize(
    ("ours", "payload_bytes", "cause", "control"),
    [
        (1.0, 1448, None, 1.0),
        # By itself, the control would also be outside, but above; a rate below the zone has another reason.
        (0.8, 724, Cause.PACKET_SIZE, 1.6),
        # The rate is inside the interval for full packets, but outside the interval for packets of its own size.
        (1.0, 724, Cause.CONGESTION_CONTROL, 2.0),
    ],
)
def test_small_packets_and_congestion_control_are_told_apart(ours, payload_bytes, cause, control):
    small = dataclasses.replace(SAME, payload_bytes=payload_bytes)
    found = of_values([ours] * 5, [1.0] * 20, small)
    assert found.cause is cause and found.control.value == pytest.approx(control)
    assert (found.permitted[0] < found.total.value < found.permitted[1]) == (ours == 1.0)


def test_a_metric_that_counts_time_is_turned_round():
    found = of_values([20.0] * 5, [10.0] * 20, bounds=(8.7, 11.3), metric="transfer_rtts")
    assert found.total.value == pytest.approx(0.5)
    assert found.permitted == pytest.approx((10 / 11.3, 10 / 8.7))
    assert found.cause is Cause.CONGESTION_CONTROL


def test_intervals_hold_the_value_and_are_the_same_each_time():
    ours, theirs = [0.8, 0.84, 0.86, 0.9, 0.95], [0.9, 0.97, 1.0, 1.0, 1.1]
    first, again = of_values(ours, theirs), of_values(ours, theirs)
    assert first == again
    for factor in (first.total, first.control, first.rest):
        assert factor.low <= factor.value <= factor.high
    assert str(Factor(value=0.5, low=0.4, high=0.6)) == "0.50 (0.40..0.60)"


def test_response_function():
    assert Response(beta=0.5, alpha=1).log_rate == pytest.approx(math.log(3) / 2)
    # By RFC 9438, section 4.3, CUBIC's alpha makes it as fast as Reno.
    assert Response(beta=0.7, alpha=3 * 0.3 / 1.7).log_rate == pytest.approx(math.log(3) / 2)

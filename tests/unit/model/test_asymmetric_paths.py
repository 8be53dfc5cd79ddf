"""Paths whose way back is longer or shorter than the way forward: what is in flight, and what stands in the queue."""

import dataclasses
import pathlib

import helpers
import numpy
import pytest
import senders

from conformance.lab import two_passes
from conformance.model.clauses.seen import View
from conformance.model.diagnosis import features, flow
from conformance.model.networks.network import Network
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting

#: a window that never changes, larger than the BDP of all paths here
WINDOW = 160
STEADY = senders.Sender(initial_window=WINDOW, ssthresh=1, increase=0.0, packets=3000)
RATE = 1.25e6


def network(forward_ms, back_ms, schedule=(), **group):
    links = [helpers.link(delay_ms=forward_ms, acks={"delay_ms": back_ms})]
    flows = [{"name": "test", "bytes": 1_000_000, **group}]
    return Network.from_json({"links": links, "flows": flows, "schedule": schedule})


def setting(of):
    return Setting(profile="test", network=of, point=Point((("flows", 1),)), timeout_s=60)


def packets(forward_ms, back_ms):
    return senders.transfer(
        STEADY, one_way_s=forward_ms / 1e3, back_s=back_ms / 1e3, bytes_per_s=RATE, queue_packets=1000
    )


def settled(of):
    """Return the median flight in packets, the median round trip and the mean queue in ms, after start-up."""
    late = (of.sent_s > 1) & (of.sent_s < of.sent_s[-1] - 0.5)
    waits, _ = features._waits(of, 1, of.sent_s[-1] - 0.5)
    return (
        float(numpy.median(of.flight[late])) / senders.FULL_BYTES,
        1000 * float(numpy.median(of.rtt_s[late])),
        1000 * float(waits.mean()) * of.base_rtt_s,
    )


@pytest.mark.parametrize(("forward_ms", "back_ms", "extra_ms"), [(40, 0, 0), (15, 45, 0), (15, 15, 120), (30, 30, 0)])
def test_flight_and_queue_are_those_of_a_fixed_window(forward_ms, back_ms, extra_ms):
    path = network(forward_ms, back_ms, extra_delay_ms=extra_ms)
    forward_s, back_s = flow.delays_s(path, path.tested, 0.0)
    seen = packets(forward_ms, back_ms + extra_ms)
    of = flow.flow(*seen, forward_s=forward_s, back_s=back_s, bytes_per_s=RATE)
    rtt_ms = WINDOW * senders.FULL_BYTES / RATE * 1000
    frame_ms = senders.FULL_BYTES / RATE * 1000
    queue_ms = rtt_ms - forward_ms - back_ms - extra_ms
    assert settled(of) == pytest.approx((WINDOW, rtt_ms, queue_ms), abs=2 * frame_ms)


def test_a_way_without_delay_is_no_later_than_requested():
    path = network(40, 0)
    assert flow.delays_s(path, path.tested, 9e-6) == pytest.approx((0.04 - 1e-6, -1e-6), abs=1e-12)
    path = network(40, 10, extra_delay_ms=5)
    assert flow.delays_s(path, path.tested, 9e-6) == pytest.approx((0.040008, 0.015008), abs=1e-12)


def test_acknowledgements_of_flows_that_go_the_other_way_take_the_links_data():
    path = network(40, 10, ends=["right", "left"])
    assert (path.back_s(path.tested), path.rtt_s(path.tested)) == (0.04, 0.05)


@pytest.mark.parametrize(("forward_ms", "back_ms"), [(40, 0), (15, 45)])
def test_clauses_view_the_flight_of_a_fixed_window(forward_ms, back_ms):
    path = {"one_way_s": forward_ms / 1e3, "back_s": back_ms / 1e3, "bytes_per_s": RATE, "queue_packets": 1000}
    view = View(
        packets=senders.packets(STEADY, **path), setting=setting(network(forward_ms, back_ms)), algorithm="reno"
    )
    assert settled(view.flow)[0] == pytest.approx(WINDOW, abs=2)


def test_a_state_begins_when_a_sender_can_know_of_it(monkeypatch):
    """Once the third packet after a lost one has come out, its acknowledgement arrives without delay."""
    wait = {"at_s": {"state": "first_loss"}, "link": "link", "direction": "forward", "set": {"rate_mbps": 5}}
    sender = dataclasses.replace(STEADY, lost=frozenset({500}))
    sent, came, _ = senders.transfer(sender, one_way_s=0.04, back_s=0.0, queue_packets=1000)
    sides = iter([(sent, []), (came, [])])
    monkeypatch.setattr(two_passes, "_captured", lambda *_: next(sides))
    trial = helpers.trial_at(setting(network(40, 0, [wait])))
    times = two_passes.times(trial, pathlib.Path(), "udp", True)
    (third,) = [packet for packet in came if packet.identity == sent[503].identity]
    assert times == {"first_loss": (pytest.approx(third.seconds, abs=1e-6), 0.04)}

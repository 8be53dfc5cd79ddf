"""A client's port or address changes during a transfer: QUIC goes on, TCP cannot (RFC 9000, section 9; RFC 9293)."""

import threading

import pytest
from helpers import line
from test_scenario_guest import FIFO, measure, network

from conformance.model.metrics.table import METRICS
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

AT_S, LASTS_S = 2, 6
FLOW = {"name": "test", "seconds": LASTS_S}
WAYS = ("port", "address")


def moves(how, flow=FLOW):
    schedule = [{"at_s": AT_S, "link": "bottleneck", "set": {"impairments": {"rebind": how}}}]
    return network([flow], FIFO, schedule=schedule, timeout_s=30)


def gap_s(found):
    return METRICS["move_gap_s"].of(found, "test")


def rebound(found, way):
    return next(one["impaired"] for one in found.links if one["direction"] == way)


def test_a_quic_connection_outlives_another_port_and_another_address(quic_bench):
    """The server answers to the address of the latest packet, and validates that path (RFC 9000, section 9.3)."""
    asked = [(moves(how), 1) for how in WAYS]
    assert len({setting.guest_digest for setting, _ in asked}) == 1
    made, again = (measure(quic_bench, *order) for order in (asked, asked[::-1]))
    assert [line(m) for m in made] == [line(m) for m in again[::-1]]
    for found in made:
        assert found.outcome is Outcome.OK, found.message
        (flow,) = found.flows
        before, after = flow["phases"]
        assert before["goodput_mbps"] > 7 and after["goodput_mbps"] > 7
        # From then on, all that the client sends is rewritten, and all that the server sends except what was in flight.
        data, acks = rebound(found, "data"), rebound(found, "acks")
        assert acks["rebound"] > 100 and acks["stale"] == 0
        assert data["rebound"] > 1000 and 0 < data["stale"] < 100
        assert found.message is None
        # Delivery goes on at once, except for what was in flight.
        assert 0.02 < gap_s(found) < 0.5


@pytest.mark.parametrize("how", WAYS)
def test_a_tcp_connection_ends_there(bench_of, how):
    """As a control, TCP: the server knows no connection from the new address or port, and resets it."""
    bench = bench_of("linux-tcp")
    batches = [bench.trials("cubic", moves(how), [1])]
    (found,) = bench.place("cubic").room.run(bench.adapter, batches, threading.Event())
    assert found.outcome is Outcome.OK
    assert found.message.startswith("flow 0 of group test ended at 2."), found.message
    assert "after its client had moved, with status 1: " in found.message
    assert found.message.endswith("of 7500000 bytes: Connection reset by peer"), found.message
    (flow,) = found.flows
    assert flow["completion_s"] is None and 2 < flow["end_s"] < 3
    assert rebound(found, "acks")["rebound"] > 0
    # Nothing arrives until the planned end.
    assert 3.5 < gap_s(found) <= LASTS_S - AT_S

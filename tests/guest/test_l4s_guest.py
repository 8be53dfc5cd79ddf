"""DualPI2 in a guest: DCTCP's packets use the L4S queue, CUBIC's the classic one. And changes that are not made."""

import dataclasses
import threading

import pytest
from test_scenario_guest import FIFO, kernels, measure, network

from conformance.model.emulation import rtnl
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

#: least difference of both queues' delays: the classic queue is kept at 15 ms, the L4S queue below 1 ms
APART_MS = 3
RECEIVERS = ("net.ipv4.tcp_congestion_control", "dctcp")
DCTCP = {**kernels(1, seconds=6, start={}), "name": "test", "algorithm": "dctcp", "ecn": True}
CUBIC = {**kernels(1, start={}), "name": "other", "ecn": False, "judged": False}


def dual(flows, **queue):
    data = {"rate_mbps": 40, "delay_ms": 10, "queue": {"kind": "dualpi2", **queue}}
    made = network(flows, data)
    # A receiver reports for each packet whether it was marked only if it, too, uses DCTCP.
    sysctls = tuple(sorted((*made.sysctls, RECEIVERS)))
    return dataclasses.replace(made, network=dataclasses.replace(made.network, sysctls=sysctls))


def queue_of(measurement):
    return next(queue for queue in measurement.evidence["qdiscs"] if queue["kind"] == "dualpi2")


def test_a_scalable_flow_stands_in_the_short_queue_beside_a_classic_one(bench):
    alone, classic = measure(bench, (dual([DCTCP], any_ect=True), 1), (dual([DCTCP]), 1))
    (beside,) = measure(bench, (dual([DCTCP, CUBIC], any_ect=True), 1))
    # When DCTCP is alone, all its packets except those of the handshake are L4S; some are marked and none dropped.
    counted = queue_of(alone)
    assert counted["packets_in_l"] > 0.99 * (counted["packets_in_l"] + counted["packets_in_c"])
    assert counted["step_marks"] > 0 and counted["drops"] == 0
    assert alone.links[0]["marked_packets"] == counted["ecn_mark"] >= counted["step_marks"]
    # The sender learns of all marks that arrived before its last acknowledgement.
    assert 0.9 * counted["ecn_mark"] <= alone.flows[0]["marked_segments"] <= counted["ecn_mark"]
    # Its packets are ECT(0), which is classic by default, and the classic queue is longer.
    assert queue_of(classic)["packets_in_l"] == 0
    assert classic.value("queue_delay_p50_ms") > alone.value("queue_delay_p50_ms") + APART_MS
    both = queue_of(beside)
    assert min(both["packets_in_l"], both["packets_in_c"]) > 1000
    assert min(flow["goodput_mbps"] for flow in beside.flows) > 5


def test_what_is_in_force_is_what_was_asked_for(bench):
    (found,) = measure(bench, (dual([{**DCTCP, "seconds": 1}], size=500, ce_threshold_us=2000), 1))
    options = queue_of(found)["options"]
    assert (options["limit"], options["step_thresh_us"], options["ecn_mask"], options["coupling"]) == (500, 2000, 1, 2)


@pytest.mark.parametrize(
    ("asked", "made", "why"),
    [
        ({"loss_pct": 100}, {"loss_pct": 0, "delay_ms": 10.005}, "packets were lost from 1 to 2 s instead of 100 %"),
        ({"delay_ms": 40}, {"delay_ms": 21}, " ms instead of 40 from 1 s on"),
        ({"rate_mbps": 5}, {"rate_mbps": 6}, "a rate of 6 Mbit/s instead of 5 from 1 s on"),
    ],
)
def test_a_change_that_is_not_made_is_an_error(bench, monkeypatch, asked, made, why):
    plain = rtnl.messages

    def wrong(link_network, after, before, *rest):
        due = all(getattr(after, name) == value for name, value in asked.items())
        return plain(link_network, dataclasses.replace(after, **made) if due else after, before, *rest)

    monkeypatch.setattr(rtnl, "messages", wrong)
    entry = {"at_s": 1, "link": "bottleneck", "direction": "forward", "set": asked, "for_s": 1}
    setting = network([kernels(1, seconds=3, start={})], FIFO, schedule=[entry])
    room = bench.place("cubic").room
    (found,) = room.run(bench.adapter, [bench.trials("cubic", setting, [1])], threading.Event())
    assert found.outcome is Outcome.ERROR and why in found.message

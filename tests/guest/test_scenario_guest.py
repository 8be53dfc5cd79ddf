"""Flows that share a network: counters, queues and single transfers are checked against each other."""

import dataclasses
import itertools
import threading

import pytest
from helpers import line

from conformance.catalogue import documents, scenarios
from conformance.lab import job
from conformance.model.metrics import table as metrics
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest

SYSCTLS = dict(documents.profile("packets", Cell(10, 20, 0)).sysctls)
#: bytes before a segment's data: Ethernet, IP, TCP with timestamps
HEADERS_BYTES = 14 + 20 + 32


def network(flows, data, **more):
    """Return the Setting of one link that delays acknowledgements as long as data, and does nothing else to them."""
    acks = {"delay_ms": data.get("delay_ms", 0)}
    document = {
        "name": "test", "title": "a test", "timeout_s": 120, "sysctls": SYSCTLS, "flows": flows,
        "links": [{"name": "bottleneck", "ends": ["left", "right"], "data": data, "acks": acks}],
        **more,
    }  # fmt: skip
    made = Scenario.from_json(document)
    setting = made.setting(made.point({}))
    assert setting.network
    return setting


def measure(bench, *asked, algorithm="cubic"):
    """Return the measurements of (setting, seed) pairs, which share one guest, in order."""
    room = bench.place(algorithm).room
    batches = [bench.trials(algorithm, setting, [seed]) for setting, seed in asked]
    found = list(room.run(bench.adapter, batches, threading.Event()))
    assert [m.outcome for m in found] == [Outcome.OK] * len(asked), [m.message for m in found]
    return found


def kernels(count, **about):
    return {
        "name": "test",
        "sender": "kernel",
        "algorithm": "cubic",
        "count": count,
        "start": {"spread_s": 0.2},
        **about,
    }


FIFO = {"rate_mbps": 10, "delay_ms": 10, "queue": {"kind": "bfifo", "size": 1}}
FAIR = {"rate_mbps": 20, "delay_ms": 10, "queue": {"kind": "fq_codel"}}


def test_the_same_trial_gives_the_same_bytes_after_another_and_alone(bench):
    first, other = network([kernels(4, seconds=3)], FIFO), network([kernels(9, seconds=2)], FAIR)
    assert first.guest_digest == other.guest_digest
    one, _, again = measure(bench, (first, 1), (other, 5), (first, 1))
    (alone,) = measure(bench, (first, 1))
    assert line(one) == line(again) == line(alone)
    (another,) = measure(bench, (first, 2))
    assert another.flows != one.flows


def test_bytes_of_all_flows_are_what_the_links_counters_say(bench):
    (found,) = measure(bench, (network([kernels(4, bytes=1_000_000)], FIFO), 1))
    link = next(one for one in found.links if one["direction"] == "data")
    assert link["dropped_packets"] > 0
    # Each segment is a packet, which left or was dropped. TCP does not count the last ones, which end connections.
    sent = sum(flow["out_segments"] for flow in found.flows)
    assert 0 <= link["out_packets"] + link["dropped_packets"] - sent <= 2 * len(found.flows)
    wire = sum(flow["sent_bytes"] + HEADERS_BYTES * flow["out_segments"] for flow in found.flows)
    dropped_bytes = link["dropped_packets"] * 1514
    assert abs(link["out_bytes"] + dropped_bytes - wire) < 0.001 * wire
    assert all(flow["complete"] if "complete" in flow else flow["completion_s"] for flow in found.flows)
    assert [flow["bytes"] for flow in found.flows] == [1_000_000] * 4


def test_equal_flows_share_a_fair_queue_equally(bench):
    (found,) = measure(bench, (network([kernels(4, seconds=15)], FAIR), 1))
    assert metrics.METRICS["jain_index"].value(found) > 0.99
    assert metrics.METRICS["queue_delay_p50_ms"].value(found) < 20
    assert 0.93 < found.utilization < 0.96


def test_a_flow_alone_is_a_flow_alone(bench):
    """A network of one flow, on one link like a cell's, gives the figures of the single transfer in that cell."""
    profile, cell = "identify", Cell(10, 20, 0)
    alone = documents.profile(profile, cell, transfer_s=8)
    made = scenarios.find(profile)
    network = made.network(made.point({"bandwidth_mbps": 10, "one_way_delay_ms": 20, "loss_pct": 0}))
    test = dataclasses.replace(network.flows[0], seconds_at_rate=8)
    shared = Setting(
        profile="alone", network=dataclasses.replace(network, flows=(test,)), point=Point(()), timeout_s=alone.timeout_s
    )
    (before,), (now,) = measure(bench, (alone, 1)), measure(bench, (shared, 1))
    assert now.metrics["bytes"] == before.metrics["bytes"]
    for name, within in (
        ("completion_s", 0.01),
        ("utilization", 0.01),
        ("min_rtt_ms", 0.001),
        ("queue_mean_bytes", 0.1),
    ):
        assert now.metrics[name] == pytest.approx(before.metrics[name], rel=within), name


def test_the_queue_delay_is_that_of_a_full_queue(bench):
    """Each packet's delay is measured: a tail-drop queue of 30,000 bytes holds 24 ms at 10 Mbit/s, and no more."""
    data = {**FIFO, "queue": {"kind": "bfifo", "size": 30_000, "unit": "bytes"}}
    (found,) = measure(bench, (network([kernels(2, seconds=5)], data), 1))
    link = next(one for one in found.links if one["direction"] == "data")
    assert link["watched_one_in"] == 1
    assert link["queue_delay_packets"] == link["out_packets"]
    assert 22 < link["queue_delay_ms"]["max"] < 24 + 2 * 1.22
    assert 0 < link["queue_delay_ms"]["p50"] < link["queue_delay_ms"]["p95"]


@pytest.mark.parametrize(
    "data",
    [
        {**FIFO, "limiter": "tbf", "burst_bytes": 5000},
        {"rate_mbps": 10, "delay_ms": 10, "limiter": "netem", "queue": {"kind": "pfifo", "size": 50}},
    ],
)
def test_other_limiters_limit_as_well(bench, data):
    (found,) = measure(bench, (network([kernels(2, seconds=5)], data), 1))
    link = next(one for one in found.links if one["direction"] == "data")
    assert max(link["out_series_mbps"]) == pytest.approx(10, rel=0.02)
    assert 0.9 < found.utilization < 0.96


QUEUES = (
    {"kind": "pfifo", "size": 30}, {"kind": "red"}, {"kind": "cake"}, {"kind": "policer"}, {"kind": "dualpi2"},
    {"kind": "fq_codel", "size": 500, "ecn": False}, {"kind": "fq_codel", "ecn": True, "ce_threshold_us": 242},
    {"kind": "codel", "size": 100, "ecn": True, "ce_threshold_us": 1000}, {"kind": "pie"},
    {"kind": "pie", "size": 60, "ecn": True},
)  # fmt: skip


def test_every_queue_is_as_requested_and_its_drops_are_no_random_losses(bench):
    """In each trial, options are read back and losses are tested, both ways: a wrong one would be an error."""
    sent = []
    for queue in QUEUES:
        data = {"rate_mbps": 10, "delay_ms": 10, "loss_pct": 1, "queue": queue}
        link = {"name": "bottleneck", "ends": ["left", "right"], "data": data}
        sent.append((network([kernels(2, seconds=3)], data, links=[link]), 1))
    for queue, found in zip(QUEUES, measure(bench, *sent), strict=True):
        shown = {each["handle"]: each for each in found.evidence["qdiscs"] if each["dev"] == "data0"}
        (link,) = (each for each in found.links if each["direction"] == "data")
        assert link["dropped_packets"] == shown["5:"]["drops"] < shown["1:"]["drops"], queue


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"queue": {"kind": "bfifo", "size": 0.5}}, "a bfifo with limit 12500 instead of 25000"),
        ({"rate_mbps": 5}, "acks0 has a rate of 5 Mbit/s instead of 10"),
    ],
)
def test_a_link_that_is_made_otherwise_is_an_error(bench, monkeypatch, made, why):
    plain, other = job._lines, network([kernels(1, seconds=1)], {**FIFO, **made})

    def wrong(setting, link, way, off_ns):
        is_other = way == "acks" if "rate_mbps" in made else way == "data"
        return plain(other, other.network.links[0], "data", off_ns) if is_other else plain(setting, link, way, off_ns)

    monkeypatch.setattr(job, "_lines", wrong)
    link = {"name": "bottleneck", "ends": ["left", "right"], "data": FIFO}
    setting = network([kernels(1, seconds=1)], FIFO, links=[link])
    room = bench.place("cubic").room
    (found,) = room.run(bench.adapter, [bench.trials("cubic", setting, [1])], threading.Event())
    assert found.outcome is Outcome.ERROR and why in found.message


def test_several_clients_of_a_stack_share_with_the_kernels_flows(bench):
    flows = [
        {"name": "test", "count": 2, "bytes": 1_500_000},
        {"name": "far", "count": 1, "seconds": 3, "extra_delay_ms": 40, "judged": False},
        {"name": "paced", "sender": "kernel", "algorithm": "reno", "pace_mbps": 1, "judged": False},
    ]
    (found,) = measure(bench, (network(flows, FAIR), 1))
    one, two, far, paced = found.flows
    assert one["bytes"] == two["bytes"] == 1_500_000
    assert one["arrived_bytes"] > one["bytes"]
    assert far["completion_s"] is None
    assert 2.9 < far["end_s"] < 3.1
    assert far["min_rtt_ms"] > one["min_rtt_ms"] + 39
    # A flow's first window is not paced.
    assert 0.8 < paced["goodput_mbps"] < 1.05
    assert metrics.METRICS["share"].of(found, "test") + metrics.METRICS["share"].of(found, "far") < 1


def times(flow, name):
    return [request[name] for request in flow["requests"]]


ASKED = [{"bytes": 5000, "every_s": 0.05, "times": 10}, {"bytes": 200_000, "pause_s": 1}, {"bytes": 500_000}]


def test_bodies_come_at_a_pace_and_after_silence(bench):
    """So do the kernel's flows, and results are the same bytes whatever the guest did before."""
    flows = [
        {"name": "test", "requests": ASKED},
        {"name": "beside", "sender": "kernel", "algorithm": "reno", "judged": False, "count": 2,
         "requests": [{"bytes": 50_000, "pause_s": 0.25, "times": 3}]},
    ]  # fmt: skip
    asked, other = network(flows, FIFO), network([{**flows[0], "requests": ASKED[:1]}, flows[1]], FAIR)
    first, _, again = measure(bench, (asked, 1), (other, 2), (asked, 1))
    assert line(first) == line(again)
    ours, *beside = first.flows
    made, ends = times(ours, "start_s"), times(ours, "end_s")
    assert [after - before for before, after in itertools.pairwise(made[:11])] == pytest.approx([0.05] * 10, abs=1e-4)
    assert made[11] - ends[10] == pytest.approx(1, abs=1e-4)
    assert ours["bytes"] == sum(times(ours, "bytes")) == 750_000
    for flow in beside:
        pauses = [b - a for a, b in zip(times(flow, "end_s"), times(flow, "start_s")[1:], strict=False)]
        assert pauses == pytest.approx([0.25, 0.25], abs=1e-4)
    # From a request to its first byte, one round trip passes.
    assert min(b - a for a, b in zip(made, times(ours, "first_byte_s"), strict=True)) == pytest.approx(0.0215, abs=2e-3)
    assert first.metrics["completion_s"] == pytest.approx(ends[-1] - ours["start_s"], abs=0.03)


def test_a_stack_over_quic_is_asked_on_one_connection(quic_bench):
    asked = network([{"name": "test", "requests": ASKED}], FIFO)
    first, again = measure(quic_bench, (asked, 1), (asked, 1))
    assert line(first) == line(again)
    (flow,) = first.flows
    made, ends = times(flow, "start_s"), times(flow, "end_s")
    assert [after - before for before, after in itertools.pairwise(made[:11])] == pytest.approx([0.05] * 10, abs=2e-3)
    assert made[11] - ends[10] == pytest.approx(1, abs=2e-3)
    assert flow["bytes"] == 750_000 < flow["arrived_bytes"] < 800_000
    assert flow["handshake_s"] == pytest.approx(made[0] - flow["start_s"], abs=1e-3)


def test_a_kernel_without_the_algorithm_says_so(bench):
    setting = network([kernels(2, seconds=1) | {"algorithm": "nosuch"}], FIFO)
    room = bench.place("cubic").room
    (found,) = room.run(bench.adapter, [bench.trials("cubic", setting, [1])], threading.Event())
    assert found.outcome is Outcome.ERROR
    assert "no congestion control nosuch for group test" in found.message


@pytest.mark.parametrize("slot_ms", [None, 8])
def test_round_trips_are_those_of_the_path_and_of_what_holds_acknowledgements_back(bench, slot_ms):
    """A paced flow fills no queue, so its round trips are the path's 20 ms, or up to a slot more."""
    made = network([kernels(2, seconds=4, pace_mbps=2)], {**FIFO, "rate_mbps": 100}, round_trips=True)
    if slot_ms is not None:
        (link,) = made.network.links
        slotted = dataclasses.replace(link, acks=dataclasses.replace(link.acks, slot_ms=slot_ms))
        made = dataclasses.replace(made, network=dataclasses.replace(made.network, links=(slotted,)))
    (found,) = measure(bench, (made, 1))
    mean, least, most = (metrics.METRICS[f"round_trip_{which}_ms"].value(found) for which in ("mean", "least", "most"))
    # A trial's delays are up to 10 us off in each direction.
    assert 19.975 <= least <= mean <= most
    link = next(one for one in found.links if one["direction"] == "data")
    packets = [one["packets"] for one in link["round_trips"]]
    sent_once = [flow["out_segments"] - flow["retransmitted_segments"] for flow in found.flows]
    # The sender is asked for its count a moment before it ends, and packets in flight then are not acknowledged.
    assert packets == pytest.approx(sent_once, rel=0.02)
    if slot_ms is None:
        assert mean < 22
    else:
        assert 22 < mean < 20 + slot_ms

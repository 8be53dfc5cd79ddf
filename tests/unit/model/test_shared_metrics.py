"""Metrics of flows that share a network."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from conformance.model.metrics import group_metrics, request_metrics, table as metrics
from conformance.model.networks.network import Network

NETWORK = Network.from_json(
    {
        "links": [
            {"name": "a", "ends": ["left", "middle"], "data": {"delay_ms": 20}, "acks": {}},
            {
                "name": "b", "ends": ["middle", "right"], "acks": {},
                "data": {"rate_mbps": 10, "queue": {"kind": "bfifo", "size": 1}},
            },
        ],
        "flows": [{"name": "one", "bytes": 10}, {"name": "two", "sender": "kernel", "bytes": 10, "judged": False}],
    }
)  # fmt: skip
GOODPUTS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=20)


def flow(group="one", goodput=1.0, **changes):
    return {
        "group": group, "judged": group == "one", "goodput_mbps": goodput, "completion_s": 1.0, "start_s": 0.0,
        "sent_bytes": 2000, "retransmitted_bytes": 100, "out_segments": 2, "bytes": 1900,
        "rtt_ms": {"mean": 30, "p95": 40}, "goodput_series_mbps": [goodput] * 10, **changes,
    }  # fmt: skip


def measured(*flows, sysctls=(), **link):
    record = {
        "link": "b", "direction": "data", "queue_delay_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0},
        "marked_packets": 5, "out_packets": 100, **link,
    }  # fmt: skip
    setting = SimpleNamespace(network=NETWORK, sysctls=sysctls)
    return SimpleNamespace(setting=setting, flows=flows, links=[record])


@given(GOODPUTS)
def test_jain_is_between_one_nth_and_one_and_does_not_mind_units(values):
    index = group_metrics.jain(values)
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9
    assert math.isclose(index, group_metrics.jain([8 * value for value in values]))


def test_jain_of_equal_flows_is_one_and_of_a_lone_taker_one_nth():
    assert group_metrics.jain([3.0] * 7) == 1
    assert group_metrics.jain([5.0, 0.0, 0.0, 0.0]) == 0.25
    assert group_metrics.jain([0.0, 0.0]) is None


@given(GOODPUTS, GOODPUTS)
def test_shares_of_groups_add_up_to_one(ones, twos):
    found = measured(*(flow("one", x) for x in ones), *(flow("two", x) for x in twos))
    assert math.isclose(group_metrics.share(found, "one") + group_metrics.share(found, "two"), 1)
    assert group_metrics.share(found, None) == group_metrics.share(found, "one")


def test_what_was_not_seen_is_none_and_not_zero():
    quic = measured(flow(sent_bytes=None, retransmitted_bytes=None, out_segments=None, rtt_ms=None, completion_s=None))
    quic.links[0]["queue_delay_ms"] = None
    for name in ("retransmitted_pct", "overhead_pct", "rtt_mean_ms", "fct_p50_s", "queue_delay_p95_ms"):
        assert metrics.METRICS[name].value(quic) is None
    assert metrics.METRICS["jain_index"].of(quic, "two") is None
    nothing = SimpleNamespace(setting=SimpleNamespace(network=quic.setting.network, sysctls=()), flows=(), links=())
    assert all(metric.value(nothing) is None for metric in metrics.METRICS.values())


def test_percentiles_of_completion_times_count_flows_that_did_not_complete():
    times = [1.0, 2.0, 3.0, None]
    found = measured(*(flow(completion_s=time) for time in times))
    assert group_metrics.completion_s(50)(found, "one") == 2
    assert group_metrics.completion_s(75)(found, "one") == 3
    assert group_metrics.completion_s(95)(found, "one") is None


def test_figures_of_the_kernels_senders():
    found = measured(flow(), flow("two"))
    assert group_metrics.retransmitted_pct(found, "one") == 5
    assert math.isclose(group_metrics.overhead_pct(found, "one"), 100 * ((2000 + 2 * 52) / 1900 - 1))
    plain = measured(flow(), sysctls=(("net.ipv4.tcp_timestamps", "0"),))
    assert math.isclose(group_metrics.overhead_pct(plain, "one"), 100 * ((2000 + 2 * 40) / 1900 - 1))
    assert group_metrics.rtt_ms("mean")(found, None) == 30


def test_queue_delay_and_marks_are_of_the_groups_bottleneck():
    found = measured(flow())
    assert group_metrics.bottleneck(found, None)["link"] == "b"
    assert metrics.METRICS["queue_delay_p99_ms"].value(found) == 3
    assert group_metrics.marked_pct(found, "one") == 5
    assert group_metrics.marked_pct(measured(flow(), marked_packets=None), "one") is None


def test_convergence_is_from_when_all_stay_near_their_share():
    one = flow(goodput_series_mbps=[9, 9, 9, 5, 5, 5, 5, 5, 5, 5])
    two = flow(goodput_series_mbps=[0, 1, 1, 5, 5, 5.5, 5, 5, 5, 5], start_s=0.5)
    assert group_metrics.convergence_s(measured(one, two), "one") == 2.5
    assert group_metrics.convergence_s(measured(one), "one") is None
    never = flow(goodput_series_mbps=[1] * 10)
    assert group_metrics.convergence_s(measured(one, never), "one") is None


@pytest.mark.parametrize(("alone", "beside", "harm"), [(10, 5, 0.5), (10, 12, 0), (10, 0, 1), (0, 5, None)])
def test_harm_is_what_is_lost_of_what_was_had_alone(alone, beside, harm):
    assert group_metrics.harm(alone, beside) == harm


def test_others_are_compared_with_their_own_kind_or_with_equal_shares():
    """Only seconds in which all flows run count: from the last start until the first end."""
    one = flow(goodput_series_mbps=[0, 6, 6, 6], start_s=0.5)
    two = flow("two", goodput_series_mbps=[9, 2, 3, 4, 9])
    found = measured(one, two, rate_mbps=10)
    assert group_metrics.others_mbps(found) == 3
    assert group_metrics.below_equal_pct(found, None) == pytest.approx(40)
    assert group_metrics.harm_pct(found, 4.0) == 25
    assert group_metrics.harm_pct(found, 2.0) == 0  # a gain of others is no harm
    assert group_metrics.harm_pct(measured(one), 4.0) is None
    assert group_metrics.below_equal_pct(measured(one, rate_mbps=10), None) is None
    assert group_metrics.below_equal_pct(measured(one, two, rate_mbps=None), None) is None


def test_equal_shares_are_among_the_flows_that_cross_the_bottleneck():
    document = NETWORK.to_json()
    document["flows"].append({**document["flows"][1], "name": "away", "ends": ["left", "middle"]})
    found = measured(flow(goodput=6), flow("two", goodput=3), flow("away", goodput=50), rate_mbps=10)
    found.setting.network = Network.from_json(document)
    assert group_metrics.below_equal_pct(found, None) == pytest.approx(40)


def test_harm_has_no_value_but_against_what_others_have_beside_their_own_kind():
    found = measured(flow(), flow("two"), rate_mbps=10)
    harm = metrics.METRICS["harm_pct"]
    assert harm.of(found, None) is None and harm.value(found) is None
    assert harm.value(found, 2.0) == 50
    share = metrics.METRICS["share"]
    assert share.value(found, 2.0) == share.value(found) == 0.5


def test_every_metric_is_of_the_group_that_is_named():
    """These were once of a transfer that is alone in a cell, whatever group was named."""
    seen = {
        "utilization": 0.25,
        "left_bytes": 1000,
        "arrived_bytes": 900,
        "handshake_s": 0.2,
        "back_to_back_packets": 4,
    }
    found = measured(
        flow(**seen, completion_s=0.6), flow(**seen, completion_s=1.0), flow("two", utilization=None),
        queue_mean_bytes=5000, queue_drops=[[0.0, 0], [0.1, 1], [0.2, 1], [1.0, 2]],
    )  # fmt: skip
    values = {
        "utilization": 0.5, "lost_pct": pytest.approx(10), "transfer_rtts": pytest.approx(30),
        "back_to_back_packets": 4, "queue_mean_bdp": pytest.approx(0.2), "loss_events_per_min": 60,
    }  # fmt: skip
    assert {name: metrics.METRICS[name].of(found, "one") for name in values} == values
    of_others = {name for name in values if metrics.METRICS[name].of(found, "two") is not None}
    assert of_others == {"queue_mean_bdp", "loss_events_per_min"}, "both groups have the same bottleneck"


def test_use_of_a_link_latency_and_the_mean_of_goodputs():
    two = [flow(goodput=value, bytes=1_000_000, end_s=4.0) for value in (2.0, 4.0)]
    found = measured(*two, rate_mbps=10, queue_delay_ms={"mean": 7.0})
    assert group_metrics.flow_goodput_mbps(found, "one") == 3.0
    assert group_metrics.link_utilization(found, "one") == pytest.approx(16 / 4 / 10)
    assert group_metrics.latency_mean_ms(found, "one") == pytest.approx(27.0)
    lacking = measured(flow(bytes=1, end_s=None), rate_mbps=10, queue_delay_ms=None)
    assert group_metrics.link_utilization(lacking, "one") is None
    assert group_metrics.latency_mean_ms(lacking, "one") is None


def scheduled(*schedule):
    """Return the link's utilization by one flow of 2 MB in 4 s over 10 Mbit/s, which a schedule changes."""
    found = measured(flow(bytes=2_000_000, start_s=1.0, end_s=5.0))
    found.setting.network = Network.from_json({**NETWORK.to_json(), "schedule": list(schedule)})
    return group_metrics.link_utilization(found, "one")


def test_use_of_a_link_that_changes_its_rate_is_of_what_it_carries_meanwhile():
    half = {"at_s": 3, "link": "b", "direction": "forward", "set": {"rate_mbps": 5}}
    assert scheduled() == pytest.approx(16 / 40)
    assert scheduled(half) == pytest.approx(16 / 30)
    assert scheduled({**half, "for_s": 1}) == pytest.approx(16 / 35)
    assert scheduled({**half, "at_s": 0, "for_s": 1}) == scheduled({**half, "at_s": 9}) == pytest.approx(16 / 40)
    steps = {"file": "steps", "digest": "0" * 16, "step_s": 1.0, "rates_mbps": [8, 0]}
    traced = {"at_s": 0, "link": "b", "direction": "forward", "trace": steps}
    assert scheduled(traced) == pytest.approx(16 / 16)
    assert scheduled({"at_s": 2, "link": "a", "set": {"delay_ms": 50}}) == pytest.approx(16 / 40)
    assert scheduled({**half, "at_s": {"state": "first_loss"}}) is None


def test_use_of_a_path_is_of_the_link_that_carries_least_meanwhile():
    def narrow(rate_mbps):
        links = [{**NETWORK.to_json()["links"][0], "data": {"rate_mbps": 12, "queue": {"kind": "bfifo", "size": 1}}}]
        return {"links": [*links, NETWORK.to_json()["links"][1]], "flows": NETWORK.to_json()["flows"], "schedule": [
            {"at_s": 3, "link": "a", "direction": "forward", "set": {"rate_mbps": rate_mbps}},
        ]}  # fmt: skip

    def use(network):
        found = measured(flow(bytes=2_000_000, start_s=1.0, end_s=5.0))
        found.setting.network = Network.from_json(network)
        return group_metrics.link_utilization(found, "one")

    assert use(narrow(4)) == pytest.approx(16 / 28)
    assert use(narrow(10)) == pytest.approx(16 / 40)
    in_turns = {"at_s": 1, "for_s": 2, "link": "b", "direction": "forward", "set": {"rate_mbps": 4}}
    both = narrow(4)
    assert use({**both, "schedule": [*both["schedule"], in_turns]}) == pytest.approx(16 / 16)


def test_round_trips_are_the_means_of_flows_and_need_each_of_them():
    trips = [
        {"group": "one", "index": at, "mean_ms": mean, "least_ms": 1.0, "most_ms": 9.0}
        for at, mean in ((0, 4.0), (1, 6.0))
    ]
    two = [flow(index=0), flow(index=1)]
    found = measured(*two, rate_mbps=10, queue_delay_ms=None, round_trips=trips)
    assert request_metrics.round_trip_ms("mean")(found, "one") == 5.0
    assert request_metrics.round_trip_ms("most")(found, "one") == 9.0
    lacking = measured(*two, rate_mbps=10, queue_delay_ms=None, round_trips=trips[:1])
    assert request_metrics.round_trip_ms("mean")(lacking, "one") is None
    assert request_metrics.round_trip_ms("mean")(measured(*two, rate_mbps=10, queue_delay_ms=None), "one") is None


def test_goodput_from_the_first_byte_leaves_the_handshake_out():
    flows = [
        flow(bytes=1_000_000, completion_s=2.5, handshake_s=0.5),
        flow(bytes=1_000_000, completion_s=4.5, handshake_s=0.5),
    ]
    assert request_metrics.sent_goodput_mbps(measured(*flows), "one") == 3.0
    for about in ({"handshake_s": None}, {"completion_s": None}, {"completion_s": 0.5}):
        lacking = flow(**{"bytes": 1, "completion_s": 2.5, "handshake_s": 0.5, **about})
        assert request_metrics.sent_goodput_mbps(measured(flows[0], lacking), "one") is None

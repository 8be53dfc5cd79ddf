"""Phases of a network that changes, and the metrics of the last one."""

import copy
import itertools

import pytest
from helpers import link
from hypothesis import given, strategies as st

from conformance.catalogue import documents, scenarios
from conformance.model.emulation import phases
from conformance.model.metrics import table as metrics
from conformance.model.networks.network import Network
from conformance.model.networks.scenario import Scenario

LINK = link(delay_ms=10, acks={})
OUTAGE = {"at_s": 4, "link": "link", "set": {"loss_pct": 100}, "for_s": 1}


def network(*schedule, others=False):
    beside = {"name": "cross", "sender": "kernel", "start": {"at_s": 4}, "seconds": 2, "judged": False}
    flows = [{"name": "test", "seconds": 10}, *([beside] if others else [])]
    return Network.from_json({"links": [LINK], "flows": flows, "schedule": list(schedule)})


def seen(rates_mbps, start_s=0.0, end_s=10.0):
    """Return what looks every 100 ms see of a flow that has each of these rates for a second."""
    times = [round(0.1 * at, 1) for at in range(10 * len(rates_mbps) + 1)]
    acked = [0.0]
    for rate in rates_mbps:
        acked += [acked[-1] + (step + 1) * rate * 1e5 / 8 for step in range(10)]
    return {"start_s": start_s, "end_s": end_s, "looks": {"t_s": times, "acked_bytes": acked}}


def of_flow(net, *flows):
    facts = {"elapsed_s": 10.0, "groups": [{"flows": [one]} for one in flows]}
    return phases.of_flow(net, net.flows[0], flows[0], facts).get("phases", [])


def test_an_outage_makes_three_phases():
    found = of_flow(network(OUTAGE), seen([9.6] * 4 + [0] + [5, 9.6, 9.6, 9.6, 9.6]))
    assert [(one["from_s"], one["to_s"]) for one in found] == [(0, 4), (4, 5), (5, 10)]
    assert [one["share_mbps"] for one in found] == [9.5] * 3
    assert [one["goodput_mbps"] for one in found] == pytest.approx([9.6, 0, 8.68])
    # 90 % of 9.5 is 8.55; the half second from 5.9 on has 0.1 s at 5 and 0.4 s at 9.6.
    assert [one["reached_s"] for one in found] == [0, None, 0.9]


def test_the_share_follows_the_rate_and_the_flows():
    slower = {"at_s": 4, "link": "link", "direction": "forward", "set": {"rate_mbps": 2}}
    assert [one["share_mbps"] for one in of_flow(network(slower), seen([5] * 10))] == pytest.approx([9.5, 1.9])
    mark = {"at_s": 4, "link": "link", "direction": "forward", "set": {"rate_mbps": 10}, "for_s": 2}
    found = of_flow(network(mark, others=True), seen([5] * 10), seen([5] * 10, start_s=4.0, end_s=6.001))
    assert [one["share_mbps"] for one in found] == [9.5, 4.75, 9.5]
    assert [one["reached_s"] for one in found] == [None, 0, None]


def two_links(*schedule, ends=(("a", "b"), ("b", "c"))):
    links = [
        {"name": name, "ends": between, "data": {**LINK["data"], "rate_mbps": rate}}
        for name, between, rate in (("near", ["a", "b"], 20), ("far", ["b", "c"], 30))
    ]
    flows = [{"name": f"f{at}", "seconds": 10, "ends": list(each)} for at, each in enumerate(ends)]
    return Network.from_json({"links": links, "flows": flows, "schedule": list(schedule)})


LATER = {"at_s": 4, "link": "far", "direction": "forward", "set": {"rate_mbps": 5}}


def test_a_share_is_of_the_link_that_leaves_the_least_to_those_that_cross_it():
    apart = two_links(LATER)
    assert [one["share_mbps"] for one in of_flow(apart, seen([5] * 10), seen([5] * 10))] == [19, 19]
    through = two_links(LATER, ends=(("a", "c"), ("b", "c")))
    assert [one["share_mbps"] for one in of_flow(through, seen([5] * 10), seen([5] * 10))] == [14.25, 2.375]


@pytest.mark.parametrize(
    "entry",
    [
        {"at_s": {"state": "first_loss"}, "link": "link", "set": {"rate_mbps": 2}, "direction": "forward"},
        {"at_s": 0, "link": "link", "direction": "forward",
         "trace": {"file": "x", "step_s": 1, "digest": "0", "rates_mbps": [1, 2]}},
    ],
)  # fmt: skip
def test_traces_and_states_make_no_phases(entry):
    net = network(entry)
    assert phases.spans(net, 10.0) == []
    assert of_flow(net, seen([5] * 10)) == []


def test_without_a_schedule_there_are_no_phases():
    assert of_flow(network(), seen([5] * 10)) == []
    looks = {"t_s": [0.0, 1.0], "out_bytes": [0, 9]}
    assert phases.of_link(network(), network().links[0], "data", {"looks": looks}, {"elapsed_s": 10.0}) == {}


@given(st.lists(st.floats(0, 20), min_size=10, max_size=10))
def test_whoever_has_a_share_had_it_for_half_a_second(rates):
    flow = seen(rates)
    times, acked = flow["looks"]["t_s"], flow["looks"]["acked_bytes"]
    for one in of_flow(network(OUTAGE), flow):
        if one["reached_s"] is None:
            continue
        at = times.index(round(one["from_s"] + one["reached_s"], 1))
        assert 8 * (acked[at + 5] - acked[at]) / 0.5 / 1e6 >= 0.9 * one["share_mbps"] - 1e-6


class Measured:
    """A measurement as far as metrics read it."""

    def __init__(self, *flow_phases, link_phases=None):
        self.setting = type("S", (), {"network": network(OUTAGE)})()
        self.flows = [{"group": "test", "judged": True, **({"phases": p} if p else {})} for p in flow_phases]
        link = {"link": "link", "direction": "data", "out_bytes": 15_000_000, "out_packets": 10_000}
        self.links = [{**link, **({"phases": link_phases} if link_phases else {})}]


def phase(from_s=0, to_s=5, reached_s=None, **about):
    return {"from_s": from_s, "to_s": to_s, "reached_s": reached_s, **about}


def value(name, measured):
    return metrics.METRICS[name].value(measured)


def test_metrics_are_of_the_last_phase():
    assert value("recovery_s", Measured([phase(reached_s=3), phase(5, 12, 1.5)])) == 1.5
    assert value("recovery_s", Measured([phase(), phase(5, 12, 1.5)], [phase(), phase(5, 12, 0.5)])) == 1.0
    assert value("recovery_s", Measured([phase(), phase(5, 12)])) == 7  # never reached: the length of the phase
    assert value("recovery_s", Measured([phase(reached_s=1)])) is None  # nothing changed
    assert value("recovery_s", Measured([phase(4, 12, 1.5)])) == 1.5  # it started after the trial began
    assert value("recovery_s", Measured(None)) is None


def test_a_flow_that_ended_before_the_last_change_has_not_recovered_from_it():
    early, last = [phase(), phase(5, 8, 0.0)], [phase(), phase(5, 8), phase(8, 20, 1.0)]
    assert value("recovery_s", Measured(early, last)) is None
    assert value("recovery_s", Measured(early, link_phases=last)) is None


def test_loss_and_queue_are_of_the_last_phase():
    last = phase(5, 10, rate_mbps=2, out_bytes=1_350_000, dropped_packets=100, queue_peak_bytes=50_000)
    found = Measured(None, link_phases=[phase(rate_mbps=10, out_bytes=1, dropped_packets=9, queue_peak_bytes=9), last])
    assert value("recovery_lost_pct", found) == pytest.approx(10)
    assert value("recovery_queue_ms", found) == 200
    assert value("recovery_lost_pct", Measured(None)) is None
    assert value("recovery_queue_ms", Measured(None)) is None


def test_what_was_used_after_the_change_is_of_the_last_phase():
    last = phase(4, 20, rate_mbps=10, out_bytes=15_000_000, dropped_packets=0, queue_peak_bytes=0)
    first = phase(0, 4, rate_mbps=10, out_bytes=1, dropped_packets=0, queue_peak_bytes=0)
    assert value("later_utilization", Measured(None, link_phases=[first, last])) == pytest.approx(0.75)
    assert value("later_utilization", Measured(None, link_phases=[first])) is None  # nothing changed


def test_the_bottleneck_after_a_change_may_be_another_link():
    found = Measured(None)
    found.setting.network = two_links(LATER, ends=(("a", "c"),))
    about = {"out_bytes": 9_000_000, "dropped_packets": 0, "queue_peak_bytes": 12_500}
    found.links = [
        {"link": name, "direction": "data", "phases": [phase(0, 4), phase(4, 20, rate_mbps=rate, **about)]}
        for name, rate in (("near", 20), ("far", 5))
    ]
    assert value("recovery_queue_ms", found) == 20
    assert value("later_utilization", found) == pytest.approx(0.9)


def test_each_event_of_the_scenario_ends_in_a_phase_of_its_own():
    made = scenarios.find("recovery")
    for point in made.grid("zone"):
        found = made.network(point)
        assert phases.spans(found, 20.0)[-1][0] in (8, 9, 12), point.id
    up = made.network(made.parse("event=rate-up"))
    assert (up.rate_mbps(up.flows[0]), up.highest_mbps(up.flows[0])) == (2, 20)
    assert len(made.network(made.parse("event=cross")).flows) == 2


def test_a_value_may_mean_something_else_at_each_place():
    document = {
        "name": "s", "title": "t", "timeout_s": 60, "links": [copy.deepcopy(LINK)],
        "flows": [{"name": "test", "bytes": 1000}],
        "axes": [
            {
                "name": "size", "sets": ["/flows/0/bytes", "/links/0/data/queue"], "values": ["small", "queue"],
                "means": {
                    "small": {"/flows/0/bytes": 5, "/links/0/data/queue": {"kind": "pfifo", "size": 7}},
                    "queue": {"/flows/0/bytes": 6, "/links/0/data/queue": {"kind": "pfifo", "size": 8}},
                },
            }
        ],
    }  # fmt: skip
    made = Scenario.from_json(document)
    found = [made.network(point) for point in made.grid("all")]
    assert [(one.flows[0].bytes, one.links[0].data.queue.size) for one in found] == [(5, 7), (6, 8)]


@pytest.mark.parametrize(("measured", "zone"), list(itertools.permutations(["cubic", "reno", "bbrv1"], 2)))
def test_recovery_tells_algorithms_apart(measured, zone):
    """Each reference is outside the others' zones at some point, by time or by loss."""
    outside = []
    for kind in ("recovery-time", "recovery-loss"):
        own, other = documents.zone_of(measured, kind), documents.zone_of(zone, kind)
        outside += [
            (kind, place.id)
            for place, interval in own.intervals.items()
            if not other.intervals[place].low <= interval.basis.median <= other.intervals[place].high
        ]
    assert outside

"""From a guest's facts about flows that share a network to a Measurement: what is believed, and what is kept."""

import copy
import dataclasses
import json

import helpers
import pytest
from helpers import process

from conformance.model.emulation import facts as trial_facts
from conformance.model.networks.network import Network
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import schema

NETWORK = Network.from_json(
    {
        "links": [helpers.link(delay_ms=10, acks={"delay_ms": 10})],
        "flows": [
            {"name": "test", "bytes": 1_000_000},
            {"name": "other", "sender": "kernel", "algorithm": "bbrv3", "judged": False},
        ],
    }
)  # fmt: skip
SEEN_NETWORK = {"sysctls": {}, "offload": {}, "kernel": "7.2", "kernel_algorithm": "cubic"}
BBRV3 = {
    "name": "bbr",
    "names": ["bbr"],
    "bbr": {"info_bytes": 60, "version": 3, "pacing_gains": [1], "cwnd_gains": [2]},
}
BBRV1 = {**BBRV3, "bbr": {**BBRV3["bbr"], "info_bytes": 20, "version": None}}


def report(**changes):
    return json.dumps({"bytes": 1_000_000, "completion_s": 2.0, "handshake_s": 0.04, **changes}) + "\n"


def flow(**changes):
    looks = {"t_s": [0.0, 1.0, 2.0], "acked_bytes": [0, 500_000, 1_000_000], "rtt_ms": [None, 21.0, 23.0]}
    return {
        "start_s": 0.0, "connected_s": None, "end_s": 2.0, "complete": True, "acked_bytes": 1_000_000,
        "sent_bytes": 1_010_000, "retransmitted_bytes": 10_000, "out_segments": 700, "retransmitted_segments": 7,
        "marked_segments": 0, "min_rtt_ms": 20.001, "arrived_bytes": 1_060_000, "looks": looks,
        "client": process(0, report()), "congestion_control": {"name": "cubic", "names": ["cubic"], "bbr": None},
        "requests": None, **changes,
    }  # fmt: skip


def facts():
    chain = [
        {"kind": "netem", "root": True, "options": {"delay": {"delay": 0.01}}, "bytes": 9, "packets": 3, "drops": 2},
        {"kind": "htb", "handle": "5:", "drops": 2}, {"kind": "bfifo"},
    ]  # fmt: skip
    looks = {"t_s": [0.0, 1.0, 2.0], "out_bytes": [0, 1_250_000, 2_500_000], "queue_bytes": [0, 3000, 6000]}
    kernels = flow(client=None, complete=False, connected_s=0.02, congestion_control=BBRV3, arrived_bytes=None)
    delays = {"p50": 11.0, "p95": 12.0, "p99": 13.0, "min": 9.99, "max": 14.0, "mean": 11.0}
    return {
        "changes": [], "captured": {}, "bond": None, "splitters": (),
        "sent": [{"packets": 710, "bytes": 1_060_000, "segments": 707, "opened": 0}],
        "seed": 1, "virtual_s": 3.0, "detail": None, "elapsed_s": 2.0, "timed_out": False, "system_calls": 5,
        "groups": [
            {"algorithm": None, "server": process(None), "ready": True, "flows": [flow()]},
            {"algorithm": "bbr", "server": None, "ready": True, "flows": [kernels]},
        ],
        "links": [
            [
                {"qdiscs": chain, "looks": looks, "delays": 5, "delays_ms": delays, "watched_one_in": 1,
                 "unmatched": 0, "hop": None, "trips": None},
                {"qdiscs": chain[:1], "looks": {}, "delays": None, "delays_ms": None, "watched_one_in": None,
                 "unmatched": None, "hop": None, "trips": None},
            ]
        ],
    }  # fmt: skip


def measured(*changes, network=SEEN_NETWORK, flows=NETWORK):
    """Return the Measurement of facts() with other values at places: (steps, value)."""
    found = facts()
    for place, value in changes:
        found = helpers.replaced(found, place, value)
    setting = Setting(profile="test", network=flows, point=Point((("flows", 1),)), timeout_s=60)
    trial = dataclasses.replace(helpers.trial(), setting=setting)
    return trial_facts.measurement(trial, found, network, {})


def test_a_line_keeps_its_schema_and_is_read_back():
    found = measured()
    assert (found.outcome, found.message) == (Outcome.OK, None)
    line = json.loads(json.dumps(found.to_json()))
    schema.check("measurement", line, "test")
    assert Measurement.from_json(line).to_json() == line
    assert Measurement.from_json(line).trial.key == found.trial.key


def test_older_lines_are_read_into_the_records_that_todays_have(tmp_path):
    """Those of cells had metrics and evidence alone, and flows lacked what each used of its bottleneck."""
    evidence = {"interfaces": helpers.counted(1000, 900), "trace": helpers.trace()}
    of_cell = helpers.as_read(helpers.measurement(0.5), evidence=evidence)
    line = of_cell.to_json()
    older = [{name: part for name, part in line.items() if name not in ("flows", "links")}, measured().to_json()]
    for flow in older[1]["flows"]:
        del flow["utilization"]
    path = tmp_path / "older.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in older))
    assert [json.loads(json.dumps(each.to_json())) for each in store.read(path)] == [
        json.loads(json.dumps(each.to_json())) for each in (of_cell, measured())
    ]
    (flow,), (data, acks) = of_cell.flows, of_cell.links
    assert (flow["group"], flow["utilization"], flow["left_bytes"], flow["arrived_bytes"]) == ("test", 0.5, 1000, 900)
    assert (data["direction"], data["rate_mbps"], acks["direction"]) == ("data", 10, "acks")
    assert data["queue_drops"] and "queue_drops" not in acks


def test_flows_and_links_are_told_apart():
    found = measured()
    ours, other = found.flows
    assert (ours["group"], ours["goodput_mbps"], ours["handshake_s"], ours["completion_s"]) == ("test", 4, 0.04, 2)
    assert (other["group"], other["judged"], other["completion_s"], other["handshake_s"]) == (
        "other",
        False,
        None,
        0.02,
    )
    assert ours["goodput_series_mbps"] == [4, 4]
    assert ours["rtt_ms"]["mean"] == 22
    data, acks = found.links
    assert data["queue_delay_ms"]["p50"] == 1
    assert data["queue_delay_ms"]["min"] == 0
    assert (data["dropped_packets"], data["queue_peak_bytes"], acks["queue_delay_ms"]) == (2, 6000, None)
    assert found.utilization == 0.4


@pytest.mark.parametrize(
    ("limiter", "data", "change", "dropped"),
    [
        ("htb", {"loss_pct": 1}, {}, 2),
        ("netem", {}, {}, 9),
        ("netem", {"loss_pct": 1}, {}, None),
        ("netem", {}, {"loss_pct": 100}, None),
    ],
)
def test_random_losses_are_no_drops_of_the_queue(limiter, data, change, dropped):
    link = helpers.link(delay_ms=10, acks={"delay_ms": 10})
    link["data"] |= {**data, "limiter": limiter, "queue": {"kind": "bfifo" if limiter == "htb" else "pfifo", "size": 9}}
    schedule = [{"at_s": 1, "link": "link", "set": change}] if change else []
    network = Network.from_json({**NETWORK.to_json(), "links": [link], "schedule": schedule})
    direction = facts()["links"][0][0]
    root = {**direction["qdiscs"][0], "drops": 9}
    chain = [root, *direction["qdiscs"][1:]] if limiter == "htb" else [root]
    found = trial_facts._link(network, network.links[0], "data", {**direction, "qdiscs": chain}, 2.0)
    assert found["dropped_packets"] == dropped


def test_without_a_queue_nothing_is_counted_and_nothing_is_zero():
    (_, acks) = measured((("links", 0, 1, "qdiscs"), facts()["links"][0][1]["qdiscs"])).links
    assert acks["marked_packets"] is None
    nothing = [{"kind": "noqueue", "root": True, "bytes": 0, "packets": 0, "drops": 0}]
    free = Network.from_json({**NETWORK.to_json(), "links": [{**NETWORK.links[0].to_json(), "acks": {}}]})
    found = trial_facts._link(free, free.links[0], "acks", {**facts()["links"][0][1], "qdiscs": nothing}, 2.0)
    assert found["out_bytes"] is None


@pytest.mark.parametrize(
    ("place", "value", "outcome", "words"),
    [
        (("groups", 0, "flows", 0, "client"), process(1), "failed", "the client of linux-tcp ended with status 1"),
        (("groups", 0, "flows", 0, "client"), process(0, report(bytes=7)), "error", "reports 7 bytes"),
        (("groups", 0, "flows", 0, "client"), process(0, report(completion_s=0.1)), "error", "the harness saw it run"),
        (("groups", 0, "flows", 0, "arrived_bytes"), 5000, "error", "only 5000 crossed its link"),
        (("groups", 0, "flows", 0, "congestion_control", "names"), ["reno"], "error", "sent with reno"),
        (("groups", 0, "flows", 0, "min_rtt_ms"), 12.0, "error", "had a round trip of 12 ms instead of 20"),
        (("groups", 0, "server"), process(1), "failed", "the server of linux-tcp died with status 1"),
        (("sent", 0, "segments"), 20, "error", "the server of linux-tcp sent beside its connection: 710"),
        (("sent", 0, "opened"), 1, "error", "the server of linux-tcp opened connections itself (1)"),
        (("groups", 0, "server"), process(127), "failed", "ended with status 127 during the transfer"),
        (("groups", 0, "ready"), False, "error", "the server of linux-tcp did not bind CC_PORT within 30 s"),
        (("groups", 1, "flows", 0, "congestion_control"), BBRV1, "unsupported", "group other: bbrv3 was asked for"),
        (("links", 0, 0, "qdiscs"), [], "error", "calibration: a delay of 0 ms instead of 10 (link, data)"),
        (("links", 0, 0, "looks", "out_bytes"), [0, 1, 3_500_000], "error", "left the queue in 2 s, at 10 Mbit/s"),
    ],
)  # fmt: skip
def test_what_cannot_be_believed_is_no_result(place, value, outcome, words):
    found = measured((place, value))
    assert found.outcome == outcome
    assert words in found.message
    assert not found.flows


def test_a_server_that_never_served_is_named_before_links_that_carried_nothing():
    found = measured((("groups", 0, "ready"), False), (("links", 0, 0, "qdiscs"), []))
    assert found.message.startswith("the server of linux-tcp did not bind CC_PORT within 30 s")


ASKING = Network.from_json(
    {
        "links": [NETWORK.links[0].to_json()],
        "flows": [
            {"name": "test", "requests": [{"bytes": 400_000, "pause_s": 0.5}, {"bytes": 600_000}]},
            {"name": "other", "sender": "kernel", "algorithm": "bbrv3", "judged": False, "requests": [{"bytes": 7}]},
        ],
    }
)
TOLD = [[400_000, 0.04, 0.06, 0.7], [600_000, 1.2, 1.25, 1.99]]


def asked(*changes, **told):
    """Return the Measurement of two bodies that a client asked for, and one that the suite's own program asked for."""
    ours = flow(start_s=0.1, end_s=2.1, client=process(0, report(**{"requests": TOLD, **told})))
    own = ((7, 0.3, 0.4, None),)
    return measured(
        (("groups", 0, "flows", 0), ours), (("groups", 1, "flows", 0, "requests"), own), *changes, flows=ASKING
    )


def test_requests_are_kept_by_the_trials_clock():
    found = asked()
    assert found.outcome is Outcome.OK, found.message
    line = json.loads(json.dumps(found.to_json()))
    schema.check("measurement", line, "test")
    ours, other = found.flows
    assert ours["requests"] == [
        {"bytes": 400_000, "start_s": 0.14, "first_byte_s": 0.16, "end_s": 0.8},
        {"bytes": 600_000, "start_s": 1.3, "first_byte_s": 1.35, "end_s": 2.09},
    ]
    assert other["requests"] == [{"bytes": 7, "start_s": 0.3, "first_byte_s": 0.4, "end_s": None}]
    assert "requests" not in measured().flows[0]


def test_a_client_that_asked_otherwise_is_not_believed():
    early = asked(requests=[TOLD[0], [600_000, 0.8, 1.25, 1.99]])
    assert early.outcome is Outcome.ERROR
    assert "the client of linux-tcp made request 2 at 0.800 s, early" in early.message
    assert "does not read CC_REQUESTS" in asked(requests=None).message


def test_of_a_client_that_did_not_end_requests_are_not_known():
    unfinished = flow(complete=False, end_s=None, client=process(None))
    found = asked((("timed_out",), True), (("groups", 0, "flows", 0), unfinished))
    assert found.flows[0]["requests"] is None


def test_a_round_trip_by_timestamps_may_be_a_millisecond_short():
    assert measured((("groups", 0, "flows", 0, "min_rtt_ms"), 19.0)).outcome is Outcome.OK


def test_a_scenario_that_timed_out_says_so_and_has_no_completion_time():
    unfinished = flow(complete=False, client=process(None), end_s=None, acked_bytes=900_000)
    found = measured((("timed_out",), True), (("groups", 0, "flows", 0), unfinished))
    assert found.outcome is Outcome.TIMEOUT
    assert found.message == "no packet of the flows came for 120 s of virtual time"
    assert (found.metrics["completion_s"], found.metrics["utilization"]) == (None, 0.36)


UNFINISHED = {"complete": False, "client": process(None), "arrived_bytes": 0, "acked_bytes": None, "looks": {}}


@pytest.mark.parametrize("lasted_s", [30.0, None])
def test_a_flow_to_which_nothing_ever_comes_fails(lasted_s):
    lone = flow(**UNFINISHED, end_s=lasted_s)
    found = measured((("elapsed_s",), 30.0), (("groups", 0, "flows", 0), lone))
    assert found.outcome is Outcome.FAILED
    assert found.message == "linux-tcp transferred nothing in 30 s of virtual time"


@pytest.mark.parametrize(("end_s", "arrived_bytes"), [(1.25, 1_250_000), (4.0, 3_500_000), (None, 4_000_000)])
def test_what_arrives_after_the_clock_has_ended_a_flow_is_not_its_own(end_s, arrived_bytes):
    looks = {"t_s": [0.0, 1.0, 2.0, 3.0], "acked_bytes": [0, 1_000_000, 2_000_000, 3_000_000]}
    killed = flow(**{**UNFINISHED, "arrived_bytes": 4_000_000, "looks": looks}, end_s=end_s)
    found = measured((("elapsed_s",), 5.0), (("groups", 0, "flows", 0), killed)).flows[0]
    assert (found["bytes"], found["bytes_are"]) == (arrived_bytes, "arrived")


def test_a_flow_that_had_no_time_or_whose_way_was_shut_may_get_nothing():
    brief = flow(**UNFINISHED, start_s=27.0, end_s=30.0)
    assert measured((("elapsed_s",), 30.0), (("groups", 0, "flows", 0), brief)).outcome is Outcome.OK
    shut = {"at_s": 0.5, "link": "link", "set": {"loss_pct": 100}}
    late = flow(**UNFINISHED, end_s=30.0)
    network = Network.from_json({**NETWORK.to_json(), "schedule": [shut]})
    found = measured((("elapsed_s",), 30.0), (("groups", 0, "flows", 0), late), flows=network)
    assert "transferred nothing" not in (found.message or "")


def test_the_size_of_a_queue_is_compared_in_each_trial():
    chain = facts()["links"][0][0]["qdiscs"]
    for limit, words in ((25_000, None), (1514, "calibration: a bfifo with limit 1514 instead of 25000 (link, data)")):
        queue = {"kind": "bfifo", "handle": "10:", "options": {"limit": limit}}
        assert measured((("links", 0, 0, "qdiscs"), [*chain[:2], queue])).message == words


def test_a_queue_is_resized_by_a_change_and_not_by_a_rate():
    rate = {"at_s": 0.5, "link": "link", "direction": "forward", "set": {"rate_mbps": 20}}
    size = {**rate, "at_s": 1, "set": {"queue": {"kind": "bfifo", "size": 3}}}
    chain, dropped = facts()["links"][0][0]["qdiscs"], (("links", 0, 0, "looks", "dropped_packets"), [0, 0, 2])
    for schedule, limit in (([rate], 25_000), ([rate, size], 150_000), ([size, {**rate, "at_s": 1.5}], 75_000)):
        network = Network.from_json({**NETWORK.to_json(), "schedule": schedule})
        for shown, wrong in ((limit, False), (limit + 1, True)):
            queue = {"kind": "bfifo", "handle": "10:", "options": {"limit": shown}}
            found = measured((("links", 0, 0, "qdiscs"), [*chain[:2], queue]), dropped, flows=network)
            assert (f"limit {shown} instead of {limit} (" in (found.message or "")) == wrong


@pytest.mark.parametrize(("unmatched", "is_error"), [(9, False), (11, True)])
def test_packets_that_a_watch_did_not_see_enter_the_queue_are_few(unmatched, is_error):
    found = measured((("links", 0, 0, "delays"), 1000), (("links", 0, 0, "unmatched"), unmatched))
    assert ("packets that left the queue were not seen to enter it" in (found.message or "")) == is_error


def test_what_a_bucket_lets_through_at_once_is_no_lie():
    link = NETWORK.links[0].to_json()
    bucket = {**link["data"], "limiter": "tbf", "burst_bytes": 1_000_000}
    changes = [
        (("groups", 0, "flows", 0, "client"), process(0, report(completion_s=0.5))),
        (("groups", 0, "flows", 0, "end_s"), 0.5),
    ]
    plain, burst = (
        measured(*changes, flows=Network.from_json({**NETWORK.to_json(), "links": [{**link, "data": data}]}))
        for data in (link["data"], bucket)
    )
    assert "reports 16 Mbit/s over a link of 10" in plain.message
    assert "reports 16" not in (burst.message or "")


def test_an_outage_that_was_never_made_is_found():
    outage = {"at_s": 1, "for_s": 0.5, "link": "link", "set": {"loss_pct": 100}}
    network = Network.from_json({**NETWORK.to_json(), "schedule": [outage]})
    missing = [f"the change at {at_s} s was not made (link, {way})" for way in ("data", "acks") for at_s in (1, 1.5)]
    assert measured(flows=network).message == f"calibration: {'; '.join(missing)}"


def test_of_many_problems_the_first_are_named():
    refused = [{"at_ns": at, "done_ns": at, "error": 22, "counts": []} for at in range(10**9, 10**9 + 500)]
    assert measured((("changes",), refused)).message.endswith("the change at 1 s with error 22; and 490 more")


def test_a_change_that_was_due_just_after_the_last_flow_ended_was_asked_for():
    later = {"at_s": 2.0002, "link": "link", "direction": "forward", "set": {"delay_ms": 15}}
    network = Network.from_json({**NETWORK.to_json(), "schedule": [later]})
    chain = copy.deepcopy(facts()["links"][0][0]["qdiscs"])
    chain[0]["options"]["delay"]["delay"] = 0.015
    counts = {
        "link": 0, "way": 0, "out_packets": 3, "dropped_packets": 2, "standing_packets": 0, "loss": 0,
        "queue_dropped_packets": 2, "delay_ns": 15_000_000, "rate_bytes_per_s": None,
    }  # fmt: skip
    made = {"at_ns": 2_000_200_000, "done_ns": 2_000_200_000, "error": 0, "counts": [counts]}
    changed = [(("links", 0, 0, "qdiscs"), chain), (("links", 0, 0, "looks", "dropped_packets"), [0, 0, 2])]
    found = measured((("changes",), [made]), *changed, flows=network)
    assert found.outcome is Outcome.OK, found.message
    late = measured(*changed, flows=network)
    assert "a delay of 15 ms instead of 10" in late.message


def test_round_trips_are_those_of_each_flow_in_ms():
    found = measured((("links", 0, 0, "trips"), ((0, 0, 4, 80_000_000, 19_000_000, 21_000_000),)))
    schema.check("measurement", found.to_json(), "test")
    assert found.links[0]["round_trips"] == [
        {"group": "test", "index": 0, "packets": 4, "mean_ms": 20.0, "least_ms": 19.0, "most_ms": 21.0}
    ]
    assert "round_trips" not in measured().links[0]

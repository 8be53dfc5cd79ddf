"""Schedules: the state of a link at any time, what schedules may not say, and that without one nothing changes."""

import copy

import helpers
import pytest
from hypothesis import given, settings, strategies as st

from conformance.catalogue import scenarios
from conformance.model.errors import UserError
from conformance.model.networks import schedule
from conformance.model.networks.impairments import Impairments
from conformance.model.networks.links import Direction, Link, Queue
from conformance.model.networks.network import Network
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.support import schema

DATA = {"rate_mbps": 10, "delay_ms": 20, "queue": {"kind": "bfifo", "size": 1}}
DOCUMENT = {
    "name": "s", "title": "a test", "timeout_s": 20,
    "links": [{"name": "bottleneck", "ends": ["left", "right"], "data": DATA, "acks": {"delay_ms": 20}}],
    "flows": [{"name": "test", "seconds": 10}],
}  # fmt: skip
LINK = Link(
    name="l",
    ends=("a", "b"),
    data=Direction(rate_mbps=10, queue=Queue(kind="bfifo", size=1)),
    acks=Direction(),
)


def document(*entries, **more):
    found = {**copy.deepcopy(DOCUMENT), **more}
    found["schedule"] = [{"link": "bottleneck", "direction": "forward", **entry} for entry in entries]
    return found


def setting(*entries, load=None, **more):
    found = document(*entries, **more)
    schema.check("scenario", found, "test")
    made = Scenario.from_json(found, load=load) if load else Scenario.from_json(found)
    return made.setting(made.point({}))


def changes(*entries, load=None):
    found = setting(*entries, load=load).network
    return found.changes(found.links[0], "data", 20)


def test_a_change_holds_for_its_time_and_is_undone():
    one, other = changes({"at_s": 2, "set": {"rate_mbps": 5}, "for_s": 1})
    assert (one.at_ns, one.direction.rate_mbps, one.before.rate_mbps) == (2 * 10**9, 5, 10)
    assert (other.at_ns, other.direction, other.before) == (3 * 10**9, one.before, one.direction)


@pytest.mark.parametrize(
    "entry", [{"at_s": 8, "set": {"rate_mbps": 5}}, {"at_s": 8, "set": {"loss_pct": 1}, "for_s": 1}]
)
def test_nothing_changes_in_a_trial_that_is_over(entry):
    found = setting(entry).network
    assert found.changes(found.links[0], "data", 8) == found.changes(found.links[0], "data", 2.4) == []
    assert found.changes(found.links[0], "data", 8.1)


def test_what_began_last_wins_and_what_it_hides_comes_back():
    found = changes(
        {"at_s": 1, "set": {"rate_mbps": 5, "loss_pct": 1}, "for_s": 8},
        {"at_s": 3, "set": {"rate_mbps": 2}, "for_s": 2},
    )
    assert [(one.at_ns // 10**9, one.direction.rate_mbps, one.direction.loss_pct) for one in found] == [
        (1, 5, 1), (3, 2, 1), (5, 5, 1), (9, 10, 0),
    ]  # fmt: skip


def test_an_outage_holds_over_a_trace_that_began_before_it():
    found = changes(
        {"at_s": 0, "trace": {"file": "t", "format": "steps"}},
        {"at_s": 1.5, "set": {"rate_mbps": 0}, "for_s": 2},
        load=lambda name: b"20\n19\n18\n17\n16\n15\n",
    )
    assert [(one.at_ns / 1e9, one.direction.rate_mbps) for one in found][:5] == [
        (0, 20), (1, 19), (1.5, 0), (3.5, 17), (4, 16),
    ]  # fmt: skip


ENTRIES = st.lists(
    st.builds(
        schedule.Entry,
        at_s=st.integers(0, 12).map(float),
        link=st.sampled_from(["l", "other"]),
        direction=st.sampled_from(["forward", "backward", "both"]),
        set=st.sampled_from([(("rate_mbps", 5),), (("loss_pct", 3), ("rate_mbps", 7)), (("delay_ms", 9),)]),
        for_s=st.none() | st.integers(1, 9).map(float),
    ),
    max_size=6,
)


@given(ENTRIES, st.integers(0, 23))
def test_at_each_time_a_direction_is_what_the_entries_that_hold_then_say(entries, half_seconds):
    at_s = half_seconds / 2
    # This is the plainest implementation: apply the entries in force, the earliest first.
    fields = {}
    for entry in sorted(entries, key=lambda one: one.at_s):
        ends_s = 12 if entry.for_s is None else entry.at_s + entry.for_s
        if entry.on("l", "data") and entry.at_s <= at_s < ends_s:
            fields |= dict(entry.set)
    found = schedule.changes(entries, LINK, "data", 12)
    assert [one.at_ns for one in found] == sorted({one.at_ns for one in found})
    now = LINK.data
    for one in found:
        assert one.before == now != one.direction
        if one.at_ns <= at_s * 1e9:
            now = one.direction
        else:
            break
    assert {name: getattr(now, name) for name in ("rate_mbps", "loss_pct", "delay_ms")} == {
        "rate_mbps": 10, "loss_pct": 0, "delay_ms": 0, **fields,
    }  # fmt: skip


def test_a_scenario_without_a_schedule_keeps_its_digest():
    assert "schedule" not in Scenario.from_json(DOCUMENT).setting(Scenario.from_json(DOCUMENT).point({})).to_json()
    fairness = scenarios.find("fairness")
    assert "schedule" not in fairness.setting(fairness.point({})).to_json()["network"]


def test_a_setting_with_a_schedule_is_read_back_from_a_result_line():
    one = setting(
        {"at_s": {"state": "start_up_ends", "plus_s": 1}, "set": {"loss_pct": 100}, "for_s": 1},
        {"at_s": 1, "set": {"impairments": {"reorder": {"every": 9, "by_packets": 3}, "ecn": "bleached"}}},
        {"at_s": 0, "direction": "forward", "trace": {"file": "t", "format": "steps"}, "for_s": 5},
        load=lambda name: b"1\n2\n",
    )
    again = Setting.from_json(one.to_json())
    assert again == one and again.profile_digest == one.profile_digest


def test_states_become_times():
    one = setting({"at_s": {"state": "first_loss", "plus_s": 0.5, "plus_rtts": 2}, "set": {"loss_pct": 5}}).network
    assert one.states == ("first_loss",) and one.changes(one.links[0], "data", 20) == []
    then = one.at({"first_loss": (3.0, 0.04)})
    assert then.states == () and [c.at_ns for c in then.changes(then.links[0], "data", 20)] == [3_580_000_000]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ({"of": 2}, "/of: it says how many of each `every` packets are meant"),
        ({"every": 4, "of": 4}, "/of: it must be less than every, which is 4"),
        ({"every": 4, "count": 3}, "/count: a pattern goes on for as long as it is in force"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_refused(pattern, words):
    asked = Impairments.from_json({"lose": {"first": 1, **pattern}})
    assert any((where + ": " + why).startswith(f"/lose{words}") for where, why in asked.problems())


@pytest.mark.parametrize(
    ("reorder", "beside", "place"),
    [
        ({"every": 9, "by_ms": 3}, {"jitter_ms": 5}, "/reorder/by_ms"),
        ({"every": 9, "by_ms": 3}, {"slots": {"every_ms": 5}}, "/reorder/by_ms"),
        ({"every": 9, "by_packets": 3}, {"slots": {"every_ms": 5, "keep": "newest"}}, "/slots/keep"),
        ({"every": 9, "by_packets": 3}, {"slots": {"every_ms": 5}}, None),
    ],
)
def test_reordering_that_could_not_be_checked_is_refused(reorder, beside, place):
    found = [where for where, _ in Impairments.from_json({"reorder": reorder, **beside}).problems()]
    assert found == [place] * (place is not None)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"at_s": 10, "set": {"loss_pct": 1}}, "/schedule/0/at_s: it takes effect at 10 s, but the trial ends by 10"),
        ({"at_s": 1, "link": "other", "set": {"loss_pct": 1}}, "/schedule/0/link: there is no link 'other'"),
        ({"at_s": 1}, "/schedule/0/set: it must say what changes"),
        ({"at_s": 1, "direction": "both", "set": {"rate_mbps": 1}}, "/schedule/0/set/rate_mbps: the link has no rate"),
        ({"at_s": 1, "set": {"queue": {"kind": "pfifo", "size": 9}}}, "/schedule/0/set/queue: only the size"),
        ({"at_s": 1, "set": {"impairments": {"hold": {"first": 1}}}}, "/schedule/0/set/impairments/hold/by_ms"),
        ({"at_s": 1, "set": {"impairments": {"reorder": {"every": 2}}}}, "/schedule/0/set/impairments/reorder/by_pack"),
        ({"at_s": {"state": "asleep"}, "set": {"loss_pct": 1}}, "/schedule/0/at_s/state: state 'asleep' is not known"),
        ({"at_s": 1, "trace": {"file": "lte", "format": "steps"}}, "/schedule/0/trace: there is no file 'lte'"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(entry, words):
    assert helpers.refusal(setting, entry).startswith(words)


@pytest.mark.parametrize(
    "entry",
    [
        {"at_s": -1, "set": {"loss_pct": 1}},
        {"at_s": 1, "set": {"loss_pct": 101}},
        {"at_s": 1, "set": {"rate_mbps": 0.05}},
        {"at_s": 1, "set": {}},
        {"at_s": 1, "set": {"limiter": "tbf"}},
        {"at_s": 1, "direction": "up", "set": {"loss_pct": 1}},
        {"at_s": 1, "set": {"loss_pct": 1}, "for_s": 0},
    ],
)
def test_the_schema_refuses_what_makes_no_sense(entry):
    assert "/schedule/0" in helpers.refusal(schema.check, "scenario", document(entry), "test")


def test_a_change_after_the_time_limit_is_refused_where_no_clock_ends_the_flows():
    with pytest.raises(UserError, match="/schedule/0/at_s: it takes effect at 30 s, but the trial ends by 20"):
        setting({"at_s": 30, "set": {"loss_pct": 1}}, flows=[{"name": "test", "bytes": 10**9}])


@pytest.mark.parametrize(
    ("data", "queue", "word"),
    [
        ({"limiter": "tbf", "burst_bytes": 3000}, {"kind": "bfifo", "size": 1}, "of a tbf cannot change"),
        ({}, {"kind": "policer"}, "of a policer cannot change"),
    ],
)
def test_limiters_whose_rate_cannot_change_are_refused(data, queue, word):
    links = [{**DOCUMENT["links"][0], "data": {**DATA, **data, "queue": queue}}]
    with pytest.raises(UserError, match=word):
        setting({"at_s": 1, "set": {"rate_mbps": 5}}, links=links)


def test_impairments_strike_packets_and_not_super_packets():
    with pytest.raises(UserError, match="/links/0/data/impairments: impairments strike single packets"):
        setting({"at_s": 1, "set": {"impairments": {"duplicate_pct": 1}}}, offload=True)


def test_a_client_is_rebound_in_both_directions():
    entry = {"at_s": 1, "set": {"impairments": {"rebind": "port"}}}
    assert setting({**entry, "direction": "both"})
    assert "/links/0: a client is rebound in both directions" in helpers.refusal(setting, entry)


# --- traces


def trace(text, form="mahimahi", **more):
    entry = {"at_s": 0, "trace": {"file": "t", "format": form, **more}}
    return setting(entry, load=lambda name: text.encode()).network.schedule[0].trace


def test_opportunities_of_mahimahi_become_rates():
    # There are two packets of 1500 bytes in the first 100 ms, none in the second, one at the end of the third.
    found = trace("1\n100\n300\n")
    assert found.rates_mbps == (0.24, 0, 0.12) and found.step_s == 0.1


def test_a_line_of_steps_is_a_rate_for_a_second_and_the_trace_repeats():
    found = changes(
        {"at_s": 1, "trace": {"file": "t", "format": "steps"}, "for_s": 5}, load=lambda name: b"10\n10\n4\n\n"
    )
    assert [(one.at_ns / 1e9, one.direction.rate_mbps) for one in found] == [(3, 4), (4, 10)]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=300), st.sampled_from([0.05, 0.1, 0.5]))
@settings(deadline=None)
def test_a_trace_carries_what_its_opportunities_do(times, step_s):
    times.sort()
    found = trace("\n".join(map(str, times)), step_s=step_s)
    bits = sum(rate * 1e6 * step_s for rate in found.rates_mbps)
    # Rates below 0.1 Mbit/s, except 0, are rounded up.
    extra = sum(0.1 * 1e6 * step_s for rate in found.rates_mbps if rate == 0.1)
    assert len(times) * 12000 - 1 <= bits <= len(times) * 12000 + extra + 1


def test_what_a_trace_says_is_part_of_the_digest_and_so_are_its_bytes():
    def digest(text):
        entry = {"at_s": 0, "trace": {"file": "t", "format": "steps"}}
        return setting(entry, load=lambda name: text).profile_digest

    assert digest(b"1\n2\n") == digest(b"1\n2\n") != digest(b"1\n3\n")
    assert digest(b"1\n2\n") != digest(b"1\n2")


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ("1\n-5\n", "mahimahi", "t, line 2: -5 is negative"),
        ("5\n1\n", "mahimahi", "t, number 2: it goes back in time"),
        ("", "steps", "t contains no numbers"),
        ("fast\n", "steps", "t, line 1: 'fast' is not a number"),
        ("nan\n", "steps", "t, line 1: nan is negative or not finite"),
        ("0\n0\n", "steps", "t never lets anything pass"),
        ("0.01\n", "steps", "t, number 1: 0.01 is out of range"),
        ("0\n", "mahimahi", "t ends at 0 ms"),
        ("1\n100000000000\n", "mahimahi", "t has 1000000000 steps"),
    ],
)
def test_a_bad_trace_is_one_line(text, form, words):
    refused = helpers.refusal(trace, text, form)
    assert "/schedule/0/trace: " in refused and words in refused


def test_a_trace_that_holds_packets_needs_a_queue_that_can():
    data = {**DATA, "queue": {"kind": "fq_codel"}}
    links = [{**DOCUMENT["links"][0], "data": data}]
    with pytest.raises(UserError, match="/schedule/0/trace: a rate of 0 needs a bfifo before htb"):
        setting({"at_s": 0, "trace": {"file": "t", "format": "steps"}}, load=lambda name: b"1\n0\n", links=links)


def test_a_network_of_json_needs_no_file():
    made = setting({"at_s": 0, "trace": {"file": "t", "format": "steps"}}, load=lambda name: b"1\n0\n").network
    assert Network.from_json(made.to_json()) == made


def test_the_most_that_a_way_carries_counts_all_that_its_rate_ever_is():
    made = setting({"at_s": 1, "set": {"rate_mbps": 100}, "for_s": 1}, {"at_s": 3, "set": {"rate_mbps": 1}}).network
    assert made.highest_mbps(made.tested) == 100
    traced = {"at_s": 0, "trace": {"file": "t", "format": "steps"}}
    made = setting(traced, load=lambda name: b"12\n3\n").network
    assert made.highest_mbps(made.tested) == 12

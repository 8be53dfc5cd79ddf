"""Clients that moved: whether the move affected packets, which flows it ended, and for how long nothing arrived."""

import copy
import types

import pytest
from helpers import link, process
from test_network_facts import facts, measured

from conformance.model.metrics.table import METRICS
from conformance.model.networks.network import Network
from conformance.model.trials.trial import Outcome

AT_S, END_S = 5.0, 12.0
NETWORK = Network.from_json(
    {
        "links": [link(delay_ms=10, acks={"delay_ms": 10})],
        "flows": [{"name": "test", "seconds": END_S}, {"name": "other", "sender": "kernel", "judged": False}],
        "schedule": [{"at_s": AT_S, "link": "link", "set": {"impairments": {"rebind": "address"}}}],
    }
)  # fmt: skip
HOP = dict.fromkeys(
    ("came", "left", "other", "too_long", "chosen", "again", "burst", "in_bad", "between", "marked", "not_markable",
     "bleached", "duplicated", "reordered", "held", "thinned", "waiting", "late_ns"),
    0,
)  # fmt: skip
WENT_ON = {"rebound": 2, "stale": 0, "quiet_ns": 60_000_000, "passed_ns": 11_990_000_000}
VANISHED = {"rebound": 0, "stale": 2, "left": 1, "quiet_ns": 0, "passed_ns": 4_990_000_000}
NOTHING = {"rebound": 0, "stale": 0, "quiet_ns": 0, "passed_ns": 3_000_000_000}


def seen(data, acks, end_s=END_S, complete=False, client=None):
    """Return the Measurement of a trial whose hops counted `data` and `acks`."""
    base = facts()["links"][0]
    both = [{**copy.deepcopy(one), "looks": {}, "hop": {**HOP, "came": 3, "left": 3, **hop}}
            for one, hop in zip(base, (data, acks), strict=True)]  # fmt: skip
    first = ("groups", 0, "flows", 0)
    return measured(
        (("links", 0), both), ((*first, "end_s"), end_s), ((*first, "complete"), complete),
        ((*first, "client"), client or process(None)), (("elapsed_s",), END_S), flows=NETWORK,
    )  # fmt: skip


def gap_s(found):
    return METRICS["move_gap_s"].of(found, "test")


def test_a_flow_that_goes_on_or_was_over_says_nothing_of_its_move_but_how_long_it_took():
    found = seen(WENT_ON, WENT_ON)
    assert (found.outcome, found.message) == (Outcome.OK, None)
    assert gap_s(found) == pytest.approx(0.06)
    assert seen(NOTHING, NOTHING, end_s=5.2).outcome is Outcome.OK


def test_a_move_that_met_no_packet_is_an_error_though_its_flow_outlasted_it():
    found = seen(NOTHING, NOTHING)
    assert found.outcome is Outcome.ERROR
    assert found.message == (
        "calibration: the move of clients at 5 s (link) affected no packet, but flow 0 of group test outlasted it; "
        "the last packet before it came at 3 s"
    )


def test_what_a_stack_ends_by_itself_before_a_move_is_its_own_doing():
    found = seen(NOTHING, NOTHING, end_s=3.0, complete=True, client=process(2))
    assert found.outcome is Outcome.ERROR
    assert "the client of" in found.message and "ended with status 2" in found.message


@pytest.mark.parametrize(("acks", "ways"), [(NOTHING, "data, acks"), (WENT_ON, "data")])
def test_silence_after_a_move_is_shown_and_lasts_to_the_end(acks, ways):
    found = seen(VANISHED, acks)
    assert found.outcome is Outcome.OK
    assert found.message == (
        f"after clients had moved at 5 s, no packet from or to their new port or address passed link link ({ways})"
    )
    assert gap_s(found) == pytest.approx(7.01)


def test_a_flow_that_a_move_ends_is_shown_with_its_clients_words():
    client = {**process(1), "stderr": "Connection reset by peer"}
    found = seen({**WENT_ON, "passed_ns": 5_060_000_000}, WENT_ON, end_s=5.1, complete=True, client=client)
    assert found.outcome is Outcome.OK
    assert found.message == (
        "flow 0 of group test ended at 5.1 s, after its client had moved, with status 1: Connection reset by peer"
    )
    assert (found.flows[0]["completion_s"], found.flows[0]["end_s"]) == (None, 5.1)
    assert gap_s(found) == pytest.approx(6.94)


def test_without_a_move_or_an_end_there_is_no_gap_to_tell():
    assert gap_s(measured()) is None
    endless = types.SimpleNamespace(
        setting=types.SimpleNamespace(network=measured().setting.network),
        links=[{"link": "link", "direction": "data", "impaired": WENT_ON}],
        flows=[{"group": "test", "judged": True, "start_s": 0, "end_s": 6.0, "completion_s": None}],
    )
    assert gap_s(endless) is None

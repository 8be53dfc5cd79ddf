"""Splitters in a scenario: which flows cross which, what a section is, and what is refused."""

import pytest
from helpers import NETWORK, facts, process, refusal, trial_at

from conformance.catalogue import scenarios
from conformance.model.emulation import splitting
from conformance.model.emulation.facts import measurement
from conformance.model.networks.place import Point
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Outcome
from conformance.support import schema

WAY = {"rate_mbps": 10, "delay_ms": 5, "queue": {"kind": "bfifo", "size": 1}}


def document(**more):
    return {
        "name": "sections",
        "title": "three",
        "timeout_s": 60,
        "links": [
            {"name": "first", "ends": ["a", "b"], "data": WAY},
            {"name": "second", "ends": ["b", "c"], "data": {**WAY, "delay_ms": 20}},
            {"name": "third", "ends": ["c", "d"], "data": {**WAY, "delay_ms": 1}},
        ],
        "boxes": [
            {"does": "split", "node": "c", "options": {"to_client": "bbrv1"}},
            {"does": "split", "node": "b", "options": {"back_pressure_bytes": 6000}},
        ],
        "flows": [
            {"name": "test", "seconds": 5},
            {"name": "rival", "ends": ["b", "c"], "sender": "kernel", "algorithm": "reno", "seconds": 5},
        ],
        **more,
    }


def setting(**more):
    made = document(**more)
    return scenarios.of_document(made).setting(Point(()))


def test_flows_cross_the_splitters_between_their_links_and_rivals_of_a_section_none():
    network = setting().network
    test, rival = network.flows
    assert [splitter.node for splitter in network.splitters_of(test)] == ["b", "c"]
    assert network.splitters_of(rival) == ()
    names = [[link.name for link in section] for section in network.sections(test)]
    assert names == [["first"], ["second"], ["third"]]
    assert [[link.name for link in section] for section in network.sections(rival)] == [["second"]]
    # A flow's sender sees the round trip of the section at its end; the path has all sections.
    assert network.least_rtt_ms(test, 5) == 2
    assert network.rtt_s(test) == pytest.approx(0.052)


def test_a_setting_with_splitters_reads_as_it_was_written_and_is_another_one():
    made = setting()
    assert Setting.from_json(made.to_json()) == made
    assert made.to_json()["network"]["splitters"] == [
        {"node": "c", "to_client": "bbrv1"},
        {"node": "b", "back_pressure_bytes": 6000},
    ]
    routed = setting(boxes=[{"does": "route", "node": "b"}])
    assert routed.network.splitters == ()
    assert "splitters" not in routed.to_json()["network"]
    assert routed.guest_digest != made.guest_digest


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"boxes": [{"does": "split", "node": "x"}]}, "/boxes: no flow crosses x; put the splitter between two links"),
        ({"boxes": [{"does": "route", "node": "x"}]}, "/boxes/0/node: no link ends at x; choose one of a, b, c, d"),
        ({"boxes": [{"does": "split", "node": "a"}]}, "/boxes: no flow crosses a; put the splitter"),
        ({"boxes": [{"does": "split", "node": "b"}] * 2}, "/boxes: there are two splitters at b; leave one"),
        (
            {"boxes": [{"does": "split", "node": "b", "options": {"window": 3}}]},
            "/boxes/0/options/window: a splitter has no such option; choose one of to_client, to_server, ",
        ),
        (
            {"boxes": [{"does": "split", "node": "b", "options": {"to_client": "BBR!"}}]},
            "/boxes/0/options: to_client is 'BBR!'; it must be a kernel name of a congestion control, such as cubic",
        ),
        (
            {"boxes": [{"does": "split", "node": "b", "options": {"back_pressure_bytes": 0}}]},
            "/boxes/0/options: back_pressure_bytes is 0; it must be a whole number from 2 to 2^30",
        ),
        (
            {"boxes": [{"does": "split", "node": "b", "links": ["first", "second"]}]},
            "/boxes/0/links: a splitter is at one node; name that in node instead",
        ),
        (
            {"flows": [{"name": "test", "ends": ["d", "a"], "seconds": 5}]},
            "/flows/0/ends: a split flow must go in its links' direction; name its client's end first",
        ),
        (
            {"flows": [{"name": "test", "seconds": 5}, {"name": "other", "sender": "kernel", "seconds": 5}]},
            "/flows/1: flows of the kernel cannot cross a splitter; give them the ends of one section",
        ),
        (
            {"boxes": [{"does": "split", "node": "b"},
                       {"does": "bond", "ends": ["e", "f"], "links": ["first", "third"]}]},
            "/boxes: a bond and splitters do not go together; leave one of them out",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_one_line_with_its_place(more, said):
    made = document(**more)
    schema.check("scenario", made, "test")
    assert said in refusal(scenarios.of_document, made)


def test_the_sweep_of_back_pressure_that_ships_reaches_every_splitter():
    made = scenarios.find("three-sections")
    bounds = [
        [splitter.proxy.back_pressure_bytes for splitter in made.setting(point).network.splitters]
        for point in made.grid("back-pressure")
    ]
    assert bounds == [[131072] * 2, [16384] * 2, [65536] * 2, [524288] * 2]


def seen(node, connections, refused=0):
    return {
        "node": node,
        "port": 443,
        "connections": connections,
        "refused": refused,
        "resets": 0,
        "bytes_to_client": 1,
    }


def test_connections_that_pass_a_splitter_by_are_found():
    network = setting().network
    assert not list(splitting.problems(network, [seen("b", 1), seen("c", 1)], [1, 1]))
    (problem,) = splitting.problems(network, [seen("b", 1), seen("c", 0)], [1, 1])
    assert problem == "1 flows cross the splitter at c, but it split only 0 connections"
    (problem,) = splitting.problems(network, [seen("b", 1, refused=1), seen("c", 1)], [1, 1])
    assert problem == "the splitter at b refused 1 connections"


@pytest.mark.parametrize(
    ("client", "arrived_bytes", "outcome", "words"),
    [
        (process(1, "", "no such file"), 0, Outcome.FAILED, "ended with status 1: no such file"),
        (process(1, "", "cut short"), 500_000, Outcome.ERROR, "calibration: 1 flows cross the splitter at c, but it"),
        (process(0), 1_100_000, Outcome.ERROR, "calibration: 1 flows cross the splitter at c, but it"),
    ],
)
def test_a_client_that_dies_before_it_connects_failed(client, arrived_bytes, outcome, words):
    asked = setting(flows=[{"name": "test", "bytes": 1_000_000}])
    none = [seen("b", 0), seen("c", 0)]
    given = facts(network=asked.network, client=client, elapsed_s=1.5, splitters=none) | {"detail": None}
    given["groups"][0]["flows"][0]["arrived_bytes"] = arrived_bytes
    judged = measurement(trial_at(asked), given, NETWORK, {})
    assert judged.outcome is outcome
    assert words in judged.message

"""Scenarios tell the common client what to do with its connections, and its servers answer (client_plan.py)."""

import json
import pathlib
import shutil
import threading

import pytest
from helpers import line
from test_scenario_guest import FIFO, measure, network

from conformance.catalogue import scenarios
from conformance.engine import benches
from conformance.lab import adapter, manifest
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest


@pytest.fixture
def own_bench(tmp_path):
    """Return a function that gives the bench of tests/quic_server.py, which does what a word of its says."""
    if not adapter.is_built(manifest.read("aioquic")):
        pytest.skip("aioquic is not built")

    def find(word):
        folder = tmp_path / f"own-{word}"
        folder.mkdir()
        about = {
            "contract": 2, "name": folder.name, "title": "The tests' server", "program": "run", "transport": "udp",
            "client": "h3-client", "algorithms": {"reno": {"called": "reno", "evidence": "aioquic's"}},
            "build": {"program": "build", "takes": ["aioquic"]},
        }  # fmt: skip
        (folder / "adapter.json").write_text(json.dumps(about))
        shutil.copy(pathlib.Path(__file__).parents[1] / "quic_server.py", folder)
        programs = {
            "build": 'cp -R "$CC_BUILD_AIOQUIC/." "$CC_BUILD"',
            "run": f"""case "$1" in
server) exec /usr/bin/python3 -ISB "${{0%/*}}/quic_server.py" "$CC_BUILD" {word} ;;
describe) echo '{{"version": "1"}}' ;;
*) exit 127 ;;
esac""",
        }
        for name, text in programs.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        return benches.find(benches.Choice(stack=str(folder / "adapter.json")))

    return find


def flows(server, name, *points):
    """Return the record of the first flow at each of these points of a scenario's one axis."""
    scenario = scenarios.shipped(name)
    (axis,) = scenario.axes
    asked = [(scenario.setting(scenario.point({axis.name: value})), 1) for value in points]
    return [measured.flows[0] for pair in asked for measured in measure(server, pair, algorithm="reno")]


def test_what_a_client_may_do_to_a_server_is_recorded_of_each_connection(server):
    cases = ("usual", "comes-again", "early-data", "moves", "stops", "reads-slowly", "small-windows", "idle-timeout")
    usual, again, early, moves, stops, slow, small, idle = flows(server, "client-cases", *cases)
    assert "connections" not in usual and usual["bytes"] == 2_500_000
    for flow in (again, early):
        first, second = flow["connections"]
        assert flow["bytes"] == 5_000_000
        assert second["start_s"] == pytest.approx(first["end_s"] + 1, abs=0.002)
        assert (first["early_data"], second["migration"], second["resets"]) == (None, None, [])
    assert again["connections"][1]["early_data"] is None
    # quinn's server gives no ticket for early data.
    assert early["connections"][1]["early_data"] == (None if server.adapter.name == "quinn" else "accepted")
    assert [each["migration"] for each in moves["connections"]] == ["validated"]
    assert 1_000_000 <= stops["bytes"] < 1_100_000
    # quinn's server, whose body is in the stream already, resets nothing and sends all of it.
    (stopped,) = stops["connections"]
    assert stops["completion_s"] < (usual["completion_s"] / 2 if stopped["resets"] else usual["completion_s"] + 0.001)
    assert slow["completion_s"] > 2_500_000 / 500_000 * 0.9
    # A window of 20 kB a round trip of 40 ms
    assert small["completion_s"] > 2_500_000 / 20_000 * 0.04 * 0.9
    assert idle["completion_s"] == usual["completion_s"]


@pytest.mark.parametrize(("word", "early_data"), [("", "accepted"), ("refuse", "refused")])
def test_early_data_are_accepted_or_refused(own_bench, word, early_data):
    (flow,) = flows(own_bench(word), "client-cases", "early-data")
    assert flow["bytes"] == 5_000_000
    assert [each["early_data"] for each in flow["connections"]] == [None, early_data]


@pytest.mark.parametrize(
    ("word", "why"), [("forbid", "forbids migration"), ("keep", "gives no connection ID to migrate with")]
)
def test_a_server_that_makes_migration_impossible_is_unsupported(own_bench, word, why):
    bench, scenario = own_bench(word), scenarios.shipped("client-cases")
    batch = bench.trials("reno", scenario.setting(scenario.point({"case": "moves"})), [1])
    (told,) = bench.place("reno").room.run(bench.adapter, [batch], threading.Event())
    assert told.outcome is Outcome.UNSUPPORTED
    assert why in told.message


def test_a_port_from_which_no_answer_comes_is_one_that_failed(own_bench):
    setting = network([{"name": "test", "bytes": 10_000_000, "client": {"migrate_s": 1}}], FIFO)
    (found,) = measure(own_bench("mute"), (setting, 1), algorithm="reno")
    assert [each["migration"] for each in found.flows[0]["connections"]] == ["failed"]


def test_several_connections_of_one_client_share_the_link(server):
    four, alone = flows(server, "connections", 4, 1)
    assert four["bytes"] == 10_000_000 and alone["bytes"] == 2_500_000
    assert len(four["connections"]) == 4 and len(alone["connections"]) == 1
    first, *others = (each["end_s"] - each["start_s"] for each in four["connections"])
    assert all(first / 3 < other < first * 3 for other in others)


def test_requests_are_made_on_the_connection_that_they_name_and_repeat_themselves(server):
    client = {"connections": [{}, {"at_s": 0.5}], "acks": {"packets": 10}}
    requests = [{"bytes": 50_000, "every_s": 0.2, "times": 4}, {"bytes": 200_000, "connection": 2, "times": 2}]
    setting = network([{"name": "test", "requests": requests, "client": client}], FIFO)
    first, second = (measure(server, (setting, 1), algorithm="reno")[0] for _ in range(2))
    assert line(first) == line(second)
    (flow,) = first.flows
    assert [each["bytes"] for each in flow["requests"]] == [50_000] * 4 + [200_000] * 2
    assert flow["requests"][4]["start_s"] >= flow["connections"][1]["start_s"] >= 0.5


def test_a_stack_whose_client_cannot_be_told_is_unsupported(server):
    scenario = scenarios.shipped("ack-policy")
    setting = scenario.setting(scenario.point({"acks": "10"}))
    for bench in (benches.find(), benches.find(benches.Choice(stack=server.adapter.name, client="own"))):
        room = bench.place("reno").room
        (told,) = room.run(bench.adapter, [bench.trials("reno", setting, [1])], threading.Event())
        assert told.outcome is Outcome.UNSUPPORTED
        assert "contract" in told.message


def test_fewer_acknowledgements_are_sent_where_a_scenario_asks_for_them(server):
    scenario = scenarios.shipped("ack-policy")
    counts = {}
    for acks in ("usual", "10", "25"):
        point = Point.of({"acks": acks})
        (measured,) = measure(server, (scenario.setting(point), 1), algorithm="reno")
        counts[acks] = next(each for each in measured.links if each["direction"] == "acks")["out_packets"]
    assert counts["25"] < counts["10"] / 1.8 < counts["usual"] / 1.8 / 3

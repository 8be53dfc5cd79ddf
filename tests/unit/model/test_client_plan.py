"""What a client is told beyond asking for bodies: as variables of the contract, in documents, and in its report."""

import json
import types

import fake_room
import pytest
from helpers import NETWORK, facts, link, process, trial_at

from conformance.catalogue import scenarios
from conformance.lab import job
from conformance.model.emulation import connection_facts, request_facts
from conformance.model.emulation.facts import measurement
from conformance.model.errors import UserError
from conformance.model.networks.client_plan import Acknowledgements, ClientPlan, Connection, Windows
from conformance.model.networks.flow_group import Flows, Request
from conformance.model.networks.scenario import Scenario
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Outcome
from conformance.support import schema


def setting(**flows):
    document = {
        "name": "s", "title": "a test", "timeout_s": 60, "links": [link()],
        "flows": [{"name": "test", **flows}],
    }  # fmt: skip
    schema.check("scenario", document, "test")
    scenario = Scenario.from_json(document, lambda document: schema.check("scenario", document, "test"))
    return scenario.setting(scenario.point({}))


def test_a_plan_becomes_the_variables_of_the_contract():
    plan = ClientPlan(
        acks=Acknowledgements(packets=10),
        connections=(Connection(times=2), Connection(after_s=1.5, resumes=True)),
        migrate_s=2.5, stop_bytes=1_000_000_000_001, read_bytes_per_s=5000, idle_s=10,
        windows=Windows(connection_bytes=20_000, stream_bytes=10_000),
    )  # fmt: skip
    assert plan.variables == {
        "CC_ACKS": "packets 10 0.025", "CC_MIGRATE_S": "2.5", "CC_STOP_BYTES": "1000000000001",
        "CC_WINDOWS": "20000 10000", "CC_READ_BYTES_PER_S": "5000", "CC_IDLE_S": "10",
    }  # fmt: skip
    assert plan.connection_lines == ("at 0.000000000 new", "at 0.000000000 new", "after 1.500000000 resume")
    assert ClientPlan(acks=Acknowledgements(round_trips=0.25, longest_ms=40)).variables == {"CC_ACKS": "rtt 0.25 0.04"}
    assert ClientPlan().variables == {} and ClientPlan().connection_lines == ()
    request = Request(bytes=7, pause_s=1, connection=3)
    assert request.line == "7 pause 1.000000000 3" and Request.parse(request.line) == request


def test_a_plan_is_a_setting_that_is_read_back():
    client = {"acks": {"packets": 10}, "connections": [{"times": 3}, {"after_s": 1, "resumes": True}], "idle_s": 4}
    planned = setting(bytes=1000, client=client)
    (group,) = planned.network.flows
    assert group.client.to_json() == client
    assert planned.network.transfer_bytes(group) == 4000  # on each connection one body
    assert Setting.from_json(json.loads(json.dumps(planned.to_json(), sort_keys=True))) == planned


def test_a_plan_of_nothing_changes_no_digest():
    plain, empty = setting(bytes=1000), setting(bytes=1000, client={})
    assert plain.to_json() == empty.to_json() and plain.guest_digest == empty.guest_digest


def test_a_cell_with_a_plan_is_not_a_cell_of_a_profile():
    """Its results are not those of the same cell without one."""
    assert setting(seconds_at_rate=10, client={"acks": {"packets": 10}}).cell_form is None


@pytest.mark.parametrize(
    "flows, pointer",
    [
        ({"bytes": 1, "client": {"acks": {}}}, "/flows/0/client/acks:"),
        ({"bytes": 1, "client": {"acks": {"packets": 2, "round_trips": 1}}}, "/flows/0/client/acks:"),
        ({"bytes": 1, "client": {"connections": [{"resumes": True}]}}, "/flows/0/client/connections/0:"),
        ({"bytes": 1, "client": {"connections": [{"after_s": 1}]}}, "/flows/0/client/connections/0:"),
        (
            {"bytes": 1, "client": {"connections": [{}, {"at_s": 1, "after_s": 1}]}},
            "/flows/0/client/connections/1/after_s:",
        ),
        ({"bytes": 1, "client": {"connections": [{"times": 60}, {"times": 60}]}}, "/flows/0/client/connections:"),
        ({"seconds_at_rate": 1, "client": {"connections": [{"times": 2}]}}, "/flows/0/seconds_at_rate:"),
        ({"requests": [{"bytes": 1, "connection": 2}]}, "/flows/0/requests/0/connection:"),
        ({"requests": [{"bytes": 1}], "client": {"connections": [{"times": 2}]}}, "/flows/0/client/connections:"),
    ],
)
def test_a_plan_that_makes_no_sense_is_named(flows, pointer):
    with pytest.raises(UserError, match=f"^{pointer}"):
        setting(**flows)


def test_flows_of_the_kernel_have_no_plan():
    group = Flows(name="other", ends=("left", "right"), sender="kernel", client=ClientPlan(idle_s=1))
    assert [where for where, _ in group.problems()] == ["/client"]


def connection(start_s, end_s, **rest):
    return {
        "start_s": start_s, "handshake_s": start_s + 0.04, "end_s": end_s, "early_data": None, "migration": None,
        "resets": [], **rest,
    }  # fmt: skip


def report(*connections, **rest):
    return {"bytes": 2, "completion_s": 4.0, "handshake_s": 0.04, "connections": list(connections), **rest}


TWICE = Flows(
    name="test", ends=("left", "right"), bytes=1, client=ClientPlan(connections=(Connection(), Connection(after_s=1)))
)


def test_a_report_of_the_planned_connections_is_believed_and_recorded():
    good = report(connection(0, 1.5), connection(2.5, 4.0, early_data="refused", resets=["H3_NO_ERROR"]))
    assert connection_facts.lie(TWICE, good) is None
    first, second = connection_facts.records(good, 10)
    assert (first["end_s"], second["start_s"]) == (11.5, 12.5)
    assert (second["early_data"], second["migration"], second["resets"]) == ("refused", None, ["H3_NO_ERROR"])
    assert connection_facts.records(None, 10) is None


@pytest.mark.parametrize(
    "told, words",
    [
        ({"connections": None}, "version 3"),
        (report(connection(0, 1.5)), "1 connections, but 2"),
        (report(connection(0, 1.5), connection(2, 4)), "connection 2 at 2.000 s, early"),
        (report(connection(0, 1.5), connection(3, 4)), "connection 2 at 3.000 s, late"),
        (report(connection(0, 1.5), connection(2.5, 5)), "after all had ended"),
    ],
)
def test_a_report_of_other_connections_is_a_lie(told, words):
    assert words in connection_facts.lie(TWICE, told)


def test_of_a_body_that_is_stopped_what_came_counts():
    group = Flows(name="test", ends=("left", "right"), bytes=1000, client=ClientPlan(stop_bytes=400))
    for count, expected in ((399, 1000), (400, 400), (700, 700), (1000, 1000), (1001, 1000)):
        assert connection_facts.wanted(group, 1000, report(connection(0, 1), bytes=count)) == expected
    assert connection_facts.wanted(group, 1000, None) == 1000
    assert connection_facts.wanted(TWICE, 2, report(bytes=1)) == 2
    timed = Flows(name="test", ends=("left", "right"), seconds_at_rate=1)
    assert connection_facts.wanted(timed, 1000, report(bytes=0)) == 1000


def test_the_requests_of_each_connection_have_a_clock_of_their_own():
    group = Flows(
        name="test", ends=("left", "right"),
        requests=(Request(bytes=9, pause_s=1, times=2), Request(bytes=9, pause_s=2, times=2, connection=2)),
        client=ClientPlan(connections=(Connection(times=2),)),
    )  # fmt: skip
    times = [[9, 0.04, 0.1, 0.2], [9, 1.2, 1.3, 1.4], [9, 0.04, 0.1, 0.3], [9, 2.3, 2.4, 2.5]]
    assert request_facts.lie(group, report(requests=times)) is None
    early = [*times[:3], [9, 1.2, 2.4, 2.5]]
    assert "request 4 at 1.200 s, early" in request_facts.lie(group, report(requests=early))


@pytest.mark.parametrize("contract", [1, 2, 3])
def test_a_client_below_version_3_is_unsupported_where_it_would_be_told_something(contract):
    client, stack = (types.SimpleNamespace(contract=version, transport="udp") for version in (contract, 1))
    own, plain = fake_room.Adapter("own", client), setting(bytes=1000)
    planned = setting(bytes=1000, client={"idle_s": 3})
    for adapter in (own, fake_room.Adapter("stack", stack, client=own)):
        assert job.why_not(plain, adapter) is None
        why = job.why_not(planned, adapter)
        assert why is None if contract == 3 else f"contract {contract}" in why


def test_the_scenarios_that_ship_tell_clients_all_that_the_contract_has():
    plans = [
        group.client
        for name in ("ack-policy", "client-cases", "connections")
        for scenario in [scenarios.shipped(name)]
        for point in scenario.grid("all")
        for group in scenario.network(point).flows
    ]
    named = {name for plan in plans for name in plan.variables}
    assert named == {"CC_ACKS", "CC_MIGRATE_S", "CC_STOP_BYTES", "CC_WINDOWS", "CC_READ_BYTES_PER_S", "CC_IDLE_S"}
    assert any(plan.connection_lines for plan in plans)


@pytest.mark.parametrize(
    ("client", "outcome"),
    [
        ({}, Outcome.OK),
        ({"client": {"connections": [{}]}}, Outcome.OK),
        ({"client": {"migrate_s": 1}}, Outcome.UNSUPPORTED),
    ],
)
@pytest.mark.parametrize("migration", ["forbidden", "no connection ID"])
def test_only_a_client_that_is_to_migrate_can_say_that_it_may_not(client, outcome, migration):
    planned = setting(bytes=1_000_000, **client)
    listed = [connection(0, 1.5, migration=migration)]
    line = json.dumps({"bytes": 1_000_000, "completion_s": 1.5, "handshake_s": 0.08, "connections": listed})
    given = facts(network=planned.network, elapsed_s=1.5, client=process(0, line + "\n")) | {"detail": None}
    given["groups"][0]["flows"][0]["arrived_bytes"] = 1_050_000
    judged = measurement(trial_at(planned), given, NETWORK, {})
    assert judged.outcome is outcome, judged.message

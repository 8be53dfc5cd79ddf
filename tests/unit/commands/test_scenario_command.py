"""`conformance scenario`: what it refuses, shows and counts, without a guest."""

import dataclasses
import json
import types

import helpers
import pytest
from helpers import CELL, measurements, zone

from conformance.catalogue import expectations, scenarios
from conformance.commands import scenario
from conformance.commands.result import printed
from conformance.commands.scenario import GroupFigure, PointRan, ScenarioResults
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import scenario as shown
from conformance.support import limits, schema


def invoke(*arguments):
    return helpers.invoke("scenario", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere"], "there is no scenario 'nowhere'"),
        (["show", "two-links", "--point", "speed=3"], "has no axis 'speed'; its axes are access_queue"),
        (["show", "two-links", "--point", "speed"], "'speed' is not of the form AXIS=VALUE"),
        (["show", "two-links", "--point", "access_queue=sfq"], "/links/0/data/queue/kind"),
        (["run", "two-links", "--grid", "smoke"], "scenario two-links has no grid 'smoke'; choose all"),
        (
            ["run", "ten-flows", "--grid", "smoke", "--point", "buffer_bdp=7"],
            "grid smoke of ten-flows has no point with",
        ),
    ],
)
def test_a_mistake_is_one_line(arguments, words):
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


def test_a_hundred_flows_need_memory(monkeypatch):
    monkeypatch.setattr(limits, "free_memory_mb", lambda: 300)
    done = invoke("run", "hundred-flows")
    assert done.exit_code == 2
    assert "/flows: 100 flows and their queues need a guest of 512 MB, but only 300 MB are free" in done.stderr


@pytest.mark.parametrize(
    ("name", "transport", "contract", "words"),
    [
        ("three-sections", "udp", 2, "/boxes: a splitter splits TCP, but mine serves over udp; choose a stack over"),
        ("ten-flows", "udp", 2, "/flows: all flows are of the guest's kernel, and none is of mine; leave --stack out"),
        ("short-bodies", "tcp", 1, "/flows: mine serves only one body on a connection (contract 1 in its manifest)"),
    ],
)
def test_a_stack_that_cannot_take_part_is_refused_with_what_helps(monkeypatch, name, transport, contract, words):
    manifest = types.SimpleNamespace(transport=transport, contract=contract)
    bench = types.SimpleNamespace(adapter=types.SimpleNamespace(name="mine", manifest=manifest, client=None))
    monkeypatch.setattr(scenario.benches, "find", lambda choice: bench)
    monkeypatch.setattr(scenario.common, "require_offered", lambda *about: None)
    done = invoke("run", name)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert words in done.stderr


def test_documents_keep_their_schemas():
    for arguments in (["show"], ["show", "two-links"], ["show", "atc25"]):
        document = json.loads(invoke(*arguments, "--format", "json").stdout)
        schema.check(document["schema"].partition("/")[0], document, "test")


@pytest.mark.parametrize(
    ("scenario_point", "lines"),
    [
        (("recovery", "event=outage"), ["schedule: at_s 8, link bottleneck, set loss_pct 100, for_s 1"]),
        (("rate-trace", "buffer_bytes=75000"), ["trace traces/lte-like.mahimahi, 120 rates"]),
        (
            ("three-sections", "boxes=split"),
            ["link wan, data (far-gateway to near-gateway): rate_mbps 10", "splitter at far-gateway: to_client bbr"],
        ),
    ],
)
def test_what_changes_and_what_stands_between_links_is_shown(scenario_point, lines):
    name, at = scenario_point
    printed_text = invoke("show", name, "--point", at).stdout
    for line in lines:
        assert line in printed_text


def point(name, goodput):
    figures = (
        GroupFigure(group="test", metric="group_goodput_mbps", values=(goodput, goodput + 1, goodput + 2)),
        GroupFigure(group="test", metric="fct_p50_s", values=(1.0, None, 2.0)),
    )
    return PointRan(point=name, outcomes=(Outcome.OK,) * 3, figures=figures, messages=())


RAN = ScenarioResults(
    scenario="test", scheme="cubic/linux-tcp/7", trials=3, points=(point("other=bbr", 4),),
    alone=point("other=cubic", 9), results="r.jsonl",
)  # fmt: skip


def test_harm_is_what_is_lost_as_against_the_point_alone():
    assert dict(RAN.harms(RAN.points[0])) == {"test": 0.5}
    document = printed(RAN)
    schema.check("scenario-run", document, "test")
    assert document["points"][0]["harm"] == {"test": 0.5}
    assert RAN.exit_status == 0


@pytest.mark.parametrize(
    ("status", "exit_status"),
    [("conforms", 0), ("violates", 1), ("error", 3), ("inconclusive", 0)],  # few trials often leave a point unclear
)
def test_what_a_zone_says_of_a_point_is_in_the_exit_status(status, exit_status):
    judged = Verdict(status=Status(status), zone_id="z", place=CELL, permitted=zone().intervals[CELL], reason="")
    ran = dataclasses.replace(RAN, points=(dataclasses.replace(RAN.points[0], verdicts=(judged,)),))
    assert ran.exit_status == exit_status


def test_a_zone_of_kinds_judges_kinds_of_points():
    chosen = scenarios.find("spaced-losses")
    settings = [chosen.setting(point) for point in chosen.grid("zone")]
    questions = scenario._questions("bbrv3", settings)
    assert {question.rule.place for question in questions} == expectations.places("bbrv3/spaced-losses")
    at = questions[0].rule.place
    one = Verdict(status=Status.CONFORMS, zone_id="z", place=at, permitted=zone().intervals[CELL], reason="ok")
    assert shown._verdict(one) == "zone z, spaced-losses-at-80-and-100-ms: conforms, ok"


def test_a_median_is_unknown_where_a_trial_did_not_see_it():
    assert RAN.points[0].median("test", "fct_p50_s") is None
    assert RAN.points[0].median("test", "group_goodput_mbps") == 5


def test_times_of_states_are_of_the_trials_that_say_them():
    """Published lines hold no evidence, and may be mixed with lines that do."""
    said = [dataclasses.replace(one, evidence={"triggered": {"startup": 0.5}}) for one in measurements([0.5] * 2)]
    silent = measurements([0.5] * 3)
    for order in ([*said, *silent], [*silent, *said]):
        assert scenario._ran(Point(()), order, ()).triggered == {"startup": (0.5, 0.5)}


def test_the_table_has_a_row_for_each_metric_and_harm():
    text = helpers.shown(shown.show_ran, RAN, width=100)
    assert "5.00 Mbit/s" in text
    assert "0.50" in text


def test_a_grid_is_narrowed_by_points():
    ten = scenario.scenarios.find("ten-flows")
    chosen = scenario._chosen(ten, ["loss_pct=1"], "all")
    assert [one["loss_pct"] for one in chosen] == [1, 1, 1]


def test_when_states_began_is_shown():
    ran = dataclasses.replace(RAN.points[0], triggered={"start_up_ends": (0.25, 0.5, 0.3), "request": (0.1, 0.1, 0.1)})
    made = dataclasses.replace(RAN, points=(ran,))
    schema.check("scenario-run", printed(made), "test")
    text = helpers.shown(shown.show_ran, made, width=100)
    assert "start_up_ends began at 0.250 to 0.500 s" in text and "request began at 0.100 s" in text

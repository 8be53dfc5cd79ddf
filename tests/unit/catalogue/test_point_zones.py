"""Zones over points of a scenario, as documents: derived, checked, found by markers, and used by known deviations."""

import dataclasses
import json

import helpers
import pytest

from conformance.catalogue import baseline, derive, documents, expectations, lint, scenarios
from conformance.catalogue.questions import cell_questions
from conformance.model.errors import UserError
from conformance.model.judging import expectation, grid, zone as zones
from conformance.model.judging.session import plan
from conformance.model.networks.place import Cell, Point

POINTS = tuple(Point((("flows", count),)) for count in (2, 4, 8))


def measurements(points=POINTS, trials=20, algorithm="cubic"):
    """Return trials whose Jain's index is spread by 2 % around 0.9."""
    scheme = helpers.scheme(algorithm)
    return [
        helpers.shared_measurement(
            helpers.trial_at(scenarios.setting("fairness", point), seed, scheme),
            {"jain_index": 0.89 + 0.001 * seed},
        )
        for point in points
        for seed in range(1, trials + 1)
    ]  # fmt: skip


def derived(trials):
    return derive.derive(trials, "cubic", "CUBIC", "jain_index", "fairness", "fairness-jain")


@pytest.fixture
def file(tmp_path):
    """Write a zone's file as `zones derive --scenario fairness` does; return its path."""
    made = derived(measurements())
    (tmp_path / "cubic").mkdir()
    path = tmp_path / "cubic" / "fairness-jain.json"
    path.write_text(derive.dumps(made))
    return path


def changed(file, change):
    """Change the document in the file; return its path."""
    document = json.loads(file.read_text())
    change(document)
    file.write_text(derive.dumps(document))
    return file


def test_a_derived_zone_names_scenario_points_and_their_digests(file):
    document = json.loads(file.read_text())
    assert (document["scenario"], document["smoke"]) == ("fairness", ["flows=2"])
    assert "profile" not in document
    assert [entry["point"] for entry in document["points"]] == [{"flows": 2}, {"flows": 4}, {"flows": 8}]
    zone = lint.check(file)
    assert zone.places == POINTS
    for point in POINTS:
        assert zone.digest_at(point) == scenarios.setting("fairness", point).profile_digest
    # The lower bound is 0.9 less 10 % and 0.01; being fairer is no fault.
    assert zone.intervals[POINTS[0]].low == pytest.approx(0.9005 * 0.9 - 0.01, abs=2e-4)
    assert zone.intervals[POINTS[0]].high == 1


def test_a_derived_zone_is_in_canonical_form(file):
    assert lint.format_file(file, write=False)
    changed(file, lambda document: document["points"].reverse())
    assert not lint.format_file(file, write=True)
    assert [entry["point"]["flows"] for entry in json.loads(file.read_text())["points"]] == [2, 4, 8]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["points"][1].update(digest="0" * 16), "/points/1/digest: scenario fairness now has digest"),
        (lambda d: d.update(scenario="nowhere"), "/scenario: scenario 'nowhere' is not known"),
        (lambda d: d["points"].append(d["points"][0]), "point flows=2 is listed twice"),
        (
            lambda d: (d["points"][0]["point"].update(speed=3), d.update(smoke=[])),
            "scenario fairness has no axis 'speed'",
        ),
        (lambda d: d.update(smoke=["flows=3"]), "point flows=3 has no interval"),
        (lambda d: d.update(profile="atc25", profile_digest="0" * 16), "fairness-jain.json: /"),
        (lambda d: d["points"][0].update(low=0.1), "does not follow from the margin rule"),
    ],
)
def test_a_wrong_zone_is_refused_with_its_place(file, change, words):
    assert words in helpers.refusal(lint.check, changed(file, change))


def test_a_point_that_lacks_an_axis_is_refused(tmp_path):
    file = tmp_path / "coexistence-share.json"
    file.write_text(documents.shipped_path("cubic/coexistence-share").read_text())
    changed(file, lambda document: document["points"][0]["point"].pop("others"))
    assert "/points/0/point: it lacks axes of scenario coexistence" in helpers.refusal(lint.check, file)


def test_unlike_points_of_one_run_are_one_reference_and_unlike_runs_are_not():
    others = [m for m in measurements() if m.trial.seed > 10]
    with pytest.raises(UserError, match="runs of cubic that differ in build or kernel"):
        derived([*others, *(helpers.of_scheme(m, kernel_digest="9" * 16) for m in others)])


@pytest.mark.parametrize(
    ("kind", "marker"),
    [
        ("fairness-jain", "fairness"), ("rtt-fairness-share", "rtt-fairness"), ("short-flows-loss", "short-flows"),
        ("sawtooth-queue", "sawtooth"), ("heatmap", "heatmap"), ("loss-packets", "loss"),
    ],
)  # fmt: skip
def test_a_kind_over_points_is_called_after_its_scenario(kind, marker):
    assert documents.marker(kind) == marker


def test_markers_of_scenarios_are_those_that_have_zones():
    found = documents.scenario_markers()
    assert "fairness" in found
    assert "ten-flows" not in found


@pytest.mark.parametrize("profile", documents.PROFILES.values())
def test_stacks_over_tcp_and_over_udp_are_judged_at_points(profile):
    assert "cubic/fairness-jain" in {zone.id for _, zone in documents.judging(profile)}
    assert documents.judges("cubic/fairness-jain", profile)


def test_a_grid_names_points_by_id_and_a_bandwidth_has_none():
    own = documents.zone_of("cubic", "fairness-jain")
    assert grid.within("full", own.places) == own.places
    assert grid.within("10mbps", own.places) == ()
    assert grid.within("flows=8; flows=2", own.places) == (POINTS[0], POINTS[2])
    grid.check("flows=2", [own])
    assert "no zone of cubic has flows=3" in helpers.refusal(grid.check, "flows=3", [own])


def test_zones_of_one_scenario_ask_about_the_same_trials():
    ids = ("fairness-jain", "fairness-convergence", "fairness-loss")
    questions = [q for kind in ids for q in cell_questions(documents.zone_of("cubic", kind), POINTS)]
    asked = plan(questions, trials=5)
    assert len(asked.work) == len(POINTS)
    counted = sum(q.rule.judgeable for q in questions)
    assert asked.family == counted


def test_a_known_deviation_names_a_point():
    (entry,) = expectation.from_json(
        {"expected": [{"zone": "cubic/fairness-jain", "cells": ["flows=4"], "verdict": "violates", "reason": "r"}]}, "t"
    )
    assert entry.covers("cubic/fairness-jain", POINTS[1])
    assert not entry.covers("cubic/fairness-jain", POINTS[0])
    assert entry.ids == ["flows=4"]
    assert POINTS[1] in expectations.places("cubic/fairness-jain")


def test_what_a_stack_did_before_is_a_baseline_at_points():
    made = dict(baseline.zones_of(measurements(), "atc25"))
    assert made["fairness-jain"].places == POINTS
    assert made["fairness-jain"].smoke == (POINTS[0],)


def test_cells_of_a_zone_over_points_are_refused():
    with pytest.raises(UserError, match="is about points of a scenario, not cells; `conformance scenario run fairness"):
        documents.cells("cubic/fairness-jain")


def test_a_setting_knows_the_zones_that_judge_it():
    ids = {zone.id for zone in documents.zones_for("cubic", scenarios.setting("fairness", POINTS[0]))}
    assert {"cubic/fairness-jain", "cubic/fairness-convergence", "cubic/fairness-loss"} <= ids
    assert not documents.zones_for("cubic", scenarios.setting("fairness", Point((("flows", 3),))))
    by_cell = {zone.id for zone in documents.zones_for("cubic", documents.profile("atc25", Cell(10, 20, 1)))}
    assert by_cell == {"cubic/heatmap", "cubic/loss"}


def test_an_axis_of_names_puts_what_they_mean():
    queues = scenarios.find("queues")
    deep = queues.setting(queues.parse("queue=deep")).network.links[0].data.queue
    assert (deep.kind, deep.size) == ("bfifo", 8)
    with pytest.raises(UserError, match="axis queue has no value 'red'; choose fq_codel, cake, pie, codel, deep"):
        queues.setting(queues.parse("queue=red"))


def test_a_marker_of_an_algorithm_alone_asks_where_a_margin_was_measured():
    """Honest stacks may have been measured at only some points of a zone."""
    zone = documents.zone_of("cubic", "fairness-jain")
    kinds = {"flows=2": {"relative": 0.1}, "flows=4": {"relative": 0.1}}
    intervals = {
        point: dataclasses.replace(permitted, counted=point.id != "flows=4")
        for point, permitted in zone.intervals.items()
    }
    zone = dataclasses.replace(zone, margin_rule={**zone.margin_rule, "kinds": kinds}, intervals=intervals)
    without = dataclasses.replace(zone, margin_rule={"relative": 0.1, "absolute": 0.01})

    part = documents.by_algorithm(zone)
    assert (part.places, part.smoke, zone.smoke) == ((POINTS[0],), (), (POINTS[0],))
    assert documents.by_algorithm(without).places == ()


def test_two_versions_of_a_scenario_make_no_zone():
    of_one = measurements(points=POINTS[:1])
    setting = of_one[0].setting
    other = dataclasses.replace(setting, network=dataclasses.replace(setting.network, offload=False), timeout_s=99)
    of_other = [helpers.of_trial(m, setting=other) for m in of_one]
    assert "two versions of fairness at flows=2" in helpers.refusal(derived, [*of_one, *of_other])


def test_a_further_implementation_makes_no_point_count_that_can_tell_nothing():
    margin = zones.Margin.of(derive.margin_rule("harm_pct"))
    one, other = (zones.Basis.of(name, [0, 0, *range(5, 95, 5)]) for name in ("linux", "other"))
    for bases in ((one,), (one, other)):
        low, high = derive.interval(bases, "harm_pct", margin)
        permitted = zones.Interval(low=low, high=high, bases=bases, margin=margin)
        assert not derive.tells_enough(permitted, "harm_pct", documented=False)
        assert derive.tells_enough(permitted, "harm_pct", documented=True)

"""Which tests there are."""

import argparse
import dataclasses

from _pytest.mark.expression import Expression

from conformance.catalogue import documents
from conformance.suite import cases


def options(markers: str) -> argparse.Namespace:
    """Return what `pytest -m MARKERS` asks for, of Linux TCP."""
    return argparse.Namespace(markexpr=markers, grid=None, baseline=None, stack="linux-tcp", interop_rootfs=None,
                              confirm=True)  # fmt: skip


def has(expression: Expression, case: cases.QuestionCase) -> bool:
    return expression.evaluate(lambda name, /, **_: name in case.markers)


def names(markers: str, baseline: str | None = None) -> set[str]:
    """Return the tests of cells and points that `pytest -m MARKERS` runs."""
    asked = options(markers)
    asked.baseline = baseline
    expression = Expression.compile(markers)
    return {case.name for case in cases.cases(asked) if has(expression, case)}


def test_smoke_tests_and_all_others_are_all():
    smoke, others = names("cubic and smoke"), names("cubic and not smoke")
    assert smoke and not smoke & others
    assert smoke | others == names("cubic")


def test_clauses_are_the_first_verdict_on_bbrv3():
    asked = [case for case in cases.cases(options("bbrv3")) if "bbrv3" in case.markers]
    kinds = [case.kind for case in asked]
    number = kinds.count(cases.CLAUSE)
    assert number > 30 and set(kinds[:number]) == {cases.CLAUSE}
    smoke = [case for case in asked if case.kind == cases.CLAUSE and "smoke" in case.markers]
    assert 1 <= len(smoke) <= 10 and len({case.question.setting for case in smoke}) <= 4
    of_zones = [case for case in asked if case.kind != cases.CLAUSE and "smoke" in case.markers]
    assert len({setting for case in of_zones for setting in case.question.settings}) == 1
    assert not [name for name in names("bbrv3 and heatmap") | names("cubic") if name.startswith("clause[")]
    assert names("bbr_draft and bbrv3") == {case.name for case in asked[:number]}
    with_grid = options("bbrv3")
    with_grid.grid = "10mbps-20ms-1pct"
    assert cases.CLAUSE not in {case.kind for case in cases.cases(with_grid)}


def test_where_no_clause_is_asked_no_clause_stands_for_smoke_cells():
    """Neither --grid nor --baseline asks for clauses, so one cell beside them would be all."""
    asked = options("bbrv3 and smoke")
    asked.grid = "10mbps"
    smoke = {case.question.place for case in cases.cases(asked) if {"bbrv3", "smoke"} <= {*case.markers}}
    zone = documents.zone_of("bbrv3")
    assert len(zone.smoke) > 1 and smoke >= {*zone.smoke}


def test_an_algorithm_alone_asks_for_no_split_check_that_rests_on_cells_which_are_only_shown():
    def checks(markers: str, algorithm: str = "bbrv3", grid: str | None = None) -> list[str]:
        asked = options(markers)
        asked.stack, asked.grid = "ngtcp2-1.11", grid
        questions = [case.question for case in cases.cases(asked) if case.kind == cases.SPLIT]
        return [question.place.id for question in questions if question.algorithm == algorithm]

    every = checks("bbrv3 and split")
    assert len(every) == 10 and every == checks("") == checks("bbrv3", grid="10mbps")
    assert checks("bbrv3") == [name for name in every if not name.startswith(("other", "10mbps"))]
    assert checks("cubic", "cubic") == checks("cubic and split", "cubic") != []


def holding(zone):
    """Return a baseline that holds this zone alone."""
    return cases.baseline.Baseline(
        zones=[("fairness-jain", zone)], lost=frozenset(), schemes=frozenset(), labs=frozenset()
    )


def test_a_baseline_is_of_the_points_that_its_algorithm_asks_for(monkeypatch):
    ships = documents.zone_of("cubic", "fairness-jain")
    before = dataclasses.replace(ships, id="cubic/fairness-jain-baseline", margin_rule={})
    monkeypatch.setattr(cases.baseline, "read", lambda *_: holding(before))
    fairness = {name for name in names("cubic") if name.startswith("fairness-jain[")}
    assert fairness and names("cubic", "before.jsonl") == fairness
    new = dataclasses.replace(before, algorithm="new")
    monkeypatch.setattr(cases.baseline, "read", lambda *_: holding(new))
    assert len(names("new", "before.jsonl")) == len(ships.places)


def test_points_of_one_name_in_two_scenarios_are_asked_about_apart():
    own = [zone for _, zone in documents.judging("atc25") if zone.algorithm == "cubic" and not zone.of_cells]
    ids = {zone.id for zone in own}
    asked = [case for case in cases.cases(options("")) if case.question.id in ids]
    assert len({case.name for case in asked}) == len(asked) == sum(len(zone.places) for zone in own)
    for case in asked:
        assert case.question.setting.profile == case.question.rule.zone.profile
        assert case.question.rule.zone.profile in case.markers


def test_an_algorithm_alone_leaves_out_points_without_a_measured_margin():
    def bonded(markers, grid=None):
        asked = options(markers)
        asked.grid = grid
        return [case.name for case in cases.cases(asked) if {"cubic", "bonded"} <= set(case.markers)]

    assert not bonded("cubic")
    assert bonded("cubic and bonded") == bonded("")
    assert set(bonded("cubic", "batch=10,rates=1:1,reordering=off")) < set(bonded(""))


def test_a_grid_may_be_points_of_scenarios():
    asked = options("cubic and recovery")
    asked.grid = "event=outage;event=rate-up"
    found = {case.question.place.id for case in cases.cases(asked) if {"cubic", "recovery"} <= set(case.markers)}
    assert found == {"event=outage", "event=rate-up"}

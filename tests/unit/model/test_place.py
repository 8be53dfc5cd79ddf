"""Places of zones: cells and points. Zones over points are judged like zones over cells."""

import dataclasses

import helpers
import pytest
from helpers import judge_zones
from hypothesis import given, strategies as st

from conformance.catalogue import documents, own_kind, scenarios
from conformance.model.errors import UserError
from conformance.model.judging import zone as zones
from conformance.model.judging.verdict import Status, judge
from conformance.model.metrics.table import METRICS
from conformance.model.networks import place as places
from conformance.model.networks.place import Cell, Point

VALUES = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9, allow_nan=False) | st.booleans() | st.just("fq_codel")
AT = Point((("flows", 2),))


def zone(name="fairness-jain"):
    return documents.zone_of("cubic", name)


def measured(value, seed=1, at=AT, scenario="fairness", **setting):
    made = dataclasses.replace(scenarios.setting(scenario, at), **setting)
    trial = helpers.trial_at(made, seed)
    return helpers.shared_measurement(trial, value)


def trials(value, n=8, **changes):
    return [measured(value, seed, **changes) for seed in range(1, n + 1)]


@pytest.mark.slow
@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True), VALUES, min_size=1, max_size=4))
def test_the_id_of_a_place_is_exact(values):
    point = Point(tuple((name, places.plain(value)) for name, value in sorted(values.items())))
    assert Point.parse(point.id) == point
    assert Point.parse(Cell(10, 20.5, 1).id) == Cell(10, 20.5, 1)


@pytest.mark.parametrize("text", ["flows=", "=2", "flows=2,others", "10mbps-20ms"])
def test_what_is_no_place_is_refused(text):
    assert "is not of the form" in helpers.refusal(Point.parse, text)


def test_a_setting_is_at_its_cell_or_at_its_point():
    assert helpers.setting().point == helpers.CELL
    assert scenarios.setting("fairness", AT).point == AT
    assert scenarios.setting("atc25", helpers.CELL) == helpers.setting()


@pytest.mark.parametrize("metric", helpers.SHARED)
@pytest.mark.parametrize("value", [0.25, 0.75])
def test_made_up_flows_have_the_values_that_were_asked_for(metric, value):
    """Otherwise tests with such flows would test nothing."""
    scenario, at = ("coexistence", "buffer_bdp=2") if metric in ("share", "harm_pct") else ("fairness", "flows=4")
    point = scenarios.find(scenario).parse(at)
    made = measured({metric: value}, at=point.by_name, scenario=scenario)
    assert own_kind.value(made, metric) == pytest.approx(value)


def test_a_point_is_judged_as_a_cell_is_and_to_be_fairer_is_no_fault():
    inside, outside, fairer = (judge(zone(), AT, trials({"jain_index": value})) for value in (0.9, 0.5, 1.0))
    assert (inside.status, inside.place, fairer.status) == (Status.CONFORMS, AT, Status.CONFORMS)
    assert (outside.status, outside.reason) == (Status.VIOLATES, "below the zone")
    assert outside.p < 1e-3
    assert 0.0 in zone("fairness-convergence").intervals[AT]


def test_points_of_one_scenario_are_one_family():
    other = Point((("flows", 4),))
    held = {AT: trials({"jain_index": 0.9}), other: trials({"jain_index": 0.5}, at=other)}
    (found,) = judge_zones([(zone(), held)])
    assert (found.family, found.status) == (2, Status.VIOLATES)
    assert found.verdicts[AT].status is Status.CONFORMS


def test_results_of_another_scenario_of_that_name_are_not_judged():
    with pytest.raises(UserError, match="was measured under another fairness scenario"):
        judge(zone(), AT, trials({}, timeout_s=99))


def test_a_zone_over_points_knows_the_digest_of_each():
    setting = scenarios.setting("fairness", AT)
    assert zone().digest_at(AT) == setting.profile_digest
    assert zones.judges(zone(), setting, AT)
    assert zone().digest_at(Point((("flows", 3),))) != setting.profile_digest
    assert not zones.judges(zone(), helpers.setting(), helpers.CELL)
    assert (zone().cells, zone().places[0], zone().noun) == ((), AT, "point")


def test_values_that_are_no_fault_are_permitted():
    for metric in METRICS.values():
        low, high = metric.clamped(0.4, 0.6)
        assert low == (metric.least if metric.only_above else max(0.4, metric.least))
        assert high >= 0.6 or metric.most == high

"""Which cells tell zones apart, and metrics that are derived from measurements."""

import dataclasses

import pytest
from helpers import measurement, measurements, measurements_of, of_trial, refusal, trial, zone

from conformance.catalogue import derive, documents, scenarios, separation
from conformance.model.errors import UserError
from conformance.model.judging.zone import Basis, Interval, Margin
from conformance.model.networks.place import Cell
from conformance.support import paths

CELLS = [Cell(10, 1, 0), Cell(10, 20, 0), Cell(20, 1, 0)]


def interval(low, high):
    basis = Basis(reference="r", n=20, median=(low + high) / 2, min=low, max=high)
    return Interval(low=low, high=high, bases=(basis,), margin=Margin(relative=0.0, absolute=0.0))


def zone_of(algorithm, *bounds, metric="utilization"):
    made = zone(id=f"{algorithm}/{metric}", algorithm=algorithm, metric=metric)
    intervals = {cell: interval(*pair) for cell, pair in zip(CELLS, bounds, strict=True)}
    return dataclasses.replace(made, intervals=intervals, smoke=())


def test_the_gap_is_in_widths_and_negative_where_intervals_overlap():
    mine = interval(0.4, 0.6)
    assert separation.gap(mine, interval(0.8, 0.9)) == pytest.approx(1)
    assert separation.gap(mine, interval(0.5, 0.9)) < 0


def test_telling_features_take_turns_among_the_others_cheapest_first(monkeypatch):
    own = [zone_of("a", (0.4, 0.6), (0.4, 0.6), (0.4, 0.6))]
    near = zone_of("b", (0.7, 0.8), (0.5, 0.8), (0.9, 1.0))  # apart in the first and the last cell
    far = zone_of("c", (0.5, 0.6), (0.9, 1.0), (0.5, 0.6))  # apart in the second only
    chosen = separation.telling_features(own, [near, far])
    assert chosen == [("a/utilization", CELLS[0]), ("a/utilization", CELLS[1]), ("a/utilization", CELLS[2])]
    monkeypatch.setattr(separation, "_SMOKE_CELLS", 1)
    assert separation.telling_features(own, [near, far]) == chosen[:1]


def test_metrics_are_compared_only_with_themselves():
    own = [zone_of("a", *[(0.4, 0.6)] * 3), zone_of("a", *[(1, 2)] * 3, metric="lost_pct")]
    other = [zone_of("b", *[(0.4, 0.6)] * 3), zone_of("b", (3, 4), (1, 2), (1, 2), metric="lost_pct")]
    assert separation.telling_features(own, other) == [("a/lost_pct", CELLS[0])]


def test_lost_pct_is_by_interface_counters_and_missing_without_them():
    (seen,) = measurements_of("lost_pct", [2.5])
    assert abs(seen.value("lost_pct") - 2.5) < 1e-9
    assert measurement().value("lost_pct") is None
    assert measurement().value("queue_mean_bdp") is None


def test_transfer_rtts_count_from_the_end_of_the_handshake_and_are_missing_without_it():
    (seen,) = measurements_of("transfer_rtts", [5.25])
    assert abs(seen.value("transfer_rtts") - 5.25) < 1e-9
    assert measurement().value("transfer_rtts") is None


def test_an_algorithm_that_was_not_measured_is_answered_with_those_that_were():
    held = [*measurements([0.5] * 5), *measurements([0.5] * 5, algorithm="vegas")]
    assert "they hold cubic under atc25, vegas under atc25" in refusal(derive.derive, held, "vgeas", "V")
    with pytest.raises(UserError, match=r"they hold none$"):
        derive.derive([], "vgeas", "V")


def test_a_zone_of_split_paths_follows_from_their_trials_and_one_of_cells_does_not():
    shipped = documents.zone(paths.data("zones", "cubic", "split-utilization.json"))
    held = [
        of_trial(m, setting=scenarios.setting("split", place))
        for place, permitted in shipped.intervals.items()
        for m in measurements(permitted.basis.values)
    ]
    derived = derive.derive(held, "cubic", "V", profile="split", name="split-utilization")
    assert [(entry["low"], entry["high"]) for entry in derived["points"]] == [
        (permitted.low, permitted.high) for _, permitted in sorted(shipped.intervals.items())
    ]
    under_profile = of_trial(measurement(), setting=documents.path("atc25", (CELLS[0], CELLS[1])))
    with pytest.raises(UserError, match=r"they hold none$"):
        derive.derive([under_profile] * 5, "cubic", "V")


def test_a_forgotten_profile_or_scenario_is_named_with_its_option():
    scenario = scenarios.find("fairness")
    of_flows = dataclasses.replace(trial(), setting=scenario.setting(scenario.point({})))
    held = [*measurements([0.5] * 5), dataclasses.replace(measurement(), trial=of_flows)]
    with pytest.raises(UserError, match=r"give --profile atc25 or --scenario fairness$"):
        derive.derive(held, "cubic", "V", profile="packets")

"""Figures for benchmark trackers: medians with their intervals, under names that do not depend on versions."""

import json

import pytest
from helpers import CELL, measurement, measurements, refusal

from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps
from conformance.reporting.tools import bencher


def document(found):
    return json.loads(bencher.render(heatmaps.all_series(found)))


def test_each_cell_is_a_benchmark_with_its_metrics_and_their_intervals():
    found = document(measurements([0.5, 0.52, 0.54, 0.56, 0.58], stack_version="1.2.3"))
    (name,) = found
    assert name == f"cubic/linux-tcp {CELL.id} (atc25)" and "1.2.3" not in name
    assert found[name]["utilization"] == {"value": 0.54, "lower_value": 0.5, "upper_value": 0.58}


def test_too_few_trials_have_no_interval_and_what_failed_has_no_value():
    (found,) = document(measurements([0.5, 0.6])).values()
    assert found["utilization"] == {"value": pytest.approx(0.55)}
    assert document([*measurements([0.5] * 5), measurement(seed=6, outcome=Outcome.FAILED)]) == {}


def test_two_builds_may_not_share_a_name():
    both = measurements([0.5] * 5, stack_digest="a" * 16) + measurements([0.6] * 5, stack_digest="b" * 16)
    assert "results of several builds of cubic/" in refusal(document, both)

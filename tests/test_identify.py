"""Identification: right, or inconclusive; never by half of the evidence."""

import pytest
from helpers import measurements, zone

from conformance.model import identify
from conformance.model.setting import Cell
from conformance.model.trial import Outcome

CELLS = [Cell(10, d, 0) for d in range(1, 11)]


def zones(algorithm, low, high):
    return [zone(low, high, cell, id=f"{algorithm}/identify-utilization", algorithm=algorithm) for cell in CELLS]


ZONES = [*zones("cubic", 0.4, 0.6), *zones("reno", 0.1, 0.3), *zones("bbrv1", 0.8, 1.0)]


def seen(*values):
    return {cell: measurements([value] * 3, cell=cell) for cell, value in zip(CELLS, values, strict=False)}


def test_all_inside_one_zone_is_that_algorithm():
    scores = identify.scores(ZONES, seen(*[0.5] * 10))
    assert [(s.algorithm, s.share) for s in scores] == [("cubic", 1.0), ("bbrv1", 0.0), ("reno", 0.0)]
    assert identify.conclusion(scores) == "cubic"


def test_a_tenth_outside_is_still_it_and_more_is_inconclusive():
    assert identify.conclusion(identify.scores(ZONES, seen(*[0.5] * 9, 0.7))) == "cubic"
    assert identify.conclusion(identify.scores(ZONES, seen(*[0.5] * 8, 0.7, 0.7))) is None


def test_two_zones_that_both_fit_are_inconclusive():
    both = [*ZONES, *zones("vegas", 0.45, 0.7)]
    assert identify.conclusion(identify.scores(both, seen(*[0.5] * 10))) is None


def test_misses_say_what_was_measured_and_permitted():
    (miss,) = identify.scores(zones("cubic", 0.4, 0.6), seen(*[0.5] * 9, 0.7))[0].misses
    assert (miss.cell, miss.value, miss.low, miss.high) == (CELLS[9], 0.7, 0.4, 0.6)


def test_what_was_not_seen_is_no_miss_and_nothing_seen_is_refused():
    found = seen(*[0.5] * 10)
    found[CELLS[0]] = measurements([0.1] * 3, cell=CELLS[0], outcome=Outcome.TIMEOUT)
    assert identify.scores(ZONES, found)[0].features == 9
    with pytest.raises(ValueError, match="nothing was measured"):
        identify.scores(ZONES, {})


@pytest.mark.parametrize(
    ("called", "found", "contradicted"),
    [
        ("cubic", "cubic", False),
        ("cubic", "reno", True),
        ("bbr", "bbrv3", False),
        ("bbr", "cubic", True),
        ("bbrv3", "bbrv1", True),
        ("prague", "cubic", False),  # no zone, so nothing is claimed that could be denied
    ],
)
def test_names_and_versions(called, found, contradicted):
    assert identify.contradicts(called, found, ["cubic", "reno", "bbrv1", "bbrv3"]) is contradicted

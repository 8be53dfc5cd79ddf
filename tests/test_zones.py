"""The zones that ship: each accepts its own reference and rejects the other algorithms' somewhere."""

import itertools

import pytest
from helpers import measurements

from conformance import derive, specs
from conformance.model import grid
from conformance.model.verdict import Status, judge

ZONES = {zone.algorithm: zone for zone in specs.all_zones()}


def reference(zone, cell):
    """Five trials as the zone's reference made them, from the basis that the zone records."""
    b = zone.intervals[cell].basis
    return [b["min"], (b["min"] + b["median"]) / 2, b["median"], (b["median"] + b["max"]) / 2, b["max"]]


def test_there_is_a_zone_for_each():
    assert {"cubic", "reno", "bbrv1"} <= set(ZONES)


@pytest.mark.parametrize("algorithm", ZONES)
def test_covers_the_grid_under_the_shipped_profile(algorithm):
    zone = ZONES[algorithm]
    assert set(zone.cells) == set(grid.cells("full"))
    assert zone.profile_digest == specs.profile(zone.profile, zone.cells[0]).profile_digest


@pytest.mark.parametrize("algorithm", ZONES)
def test_accepts_its_own_reference_everywhere(algorithm):
    zone = ZONES[algorithm]
    for cell in zone.cells:
        found = measurements(reference(zone, cell), cell=cell, algorithm=algorithm)
        assert judge(zone, cell, found).status is Status.CONFORMS, cell.id


@pytest.mark.parametrize(("algorithm", "other"), list(itertools.permutations(ZONES, 2)))
def test_smoke_cells_reject_every_other_algorithm(algorithm, other):
    zone = ZONES[algorithm]
    verdicts = [
        judge(zone, cell, measurements(reference(ZONES[other], cell), cell=cell, algorithm=other)).status
        for cell in zone.smoke
    ]
    assert Status.VIOLATES in verdicts


@pytest.mark.parametrize("algorithm", ZONES)
def test_intervals_follow_the_stated_margin_rule(algorithm):
    zone = ZONES[algorithm]
    assert zone.margin_rule == derive.margin_rule()
    for cell, permitted in zone.intervals.items():
        low, high = derive.interval([permitted.basis["min"], permitted.basis["max"]])
        assert permitted.low == pytest.approx(low, abs=2e-3), cell.id
        assert permitted.high == pytest.approx(high, abs=2e-3), cell.id


def test_derived_intervals_hold_their_values():
    for values in ([0.0, 0.001], [0.5, 0.9], [0.99, 1.0], [0.0078, 0.0081]):
        low, high = derive.interval(values)
        assert 0 <= low <= min(values)
        assert max(values) <= high <= 1

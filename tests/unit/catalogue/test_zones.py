"""The zones that ship: each accepts its own reference and rejects those of other algorithms somewhere."""

import itertools
import json
import re

import pytest
from helpers import invoke, measurements, measurements_of, refusal

from conformance.catalogue import derive, documents, scenarios
from conformance.model.judging import grid
from conformance.model.judging.verdict import Status, judge, status_in
from conformance.model.judging.zone import Basis
from conformance.model.networks.place import Cell, Point

ZONES = {(zone.algorithm, kind): zone for kind in documents.KINDS for zone in documents.all_zones(kind)}
ALGORITHMS = sorted({algorithm for algorithm, _ in ZONES})
#: zones that leave out the points beside BBR (docs/why-these-zones.md)
BESIDE_OTHER_BBR = ("bbrv3/coexistence-harm", "bbrv3/coexistence-share")
IDENTIFY = documents.all_zones("identify-*")


def reference(zone, cell):
    """Return trials like the reference's: with its own values, or five over the range that the zone records."""
    b = zone.intervals[cell].basis
    values = b.values or [b.min, (b.min + b.median) / 2, b.median, (b.median + b.max) / 2, b.max]
    return measurements_of(zone.metric, values, cell=cell, algorithm=zone.algorithm)


def test_there_are_zones_for_each():
    assert set(itertools.product(("cubic", "reno", "bbrv1", "bbrv2", "bbrv3"), ("heatmap", "loss"))) <= set(ZONES)


@pytest.mark.parametrize("key", ZONES, ids="-".join)
def test_covers_the_grid_under_the_shipped_profile(key):
    zone = ZONES[key]
    assert zone.id == "/".join(key)
    assert set(zone.cells) == set(grid.cells("full"))
    assert zone.profile_digest == documents.profile(zone.profile, zone.cells[0]).profile_digest


@pytest.mark.parametrize("key", ZONES, ids="-".join)
def test_accepts_its_own_reference_everywhere(key):
    zone = ZONES[key]
    for cell in zone.cells:
        assert judge(zone, cell, reference(zone, cell)).status.passes == zone.intervals[cell].counted, cell.id


@pytest.mark.parametrize(("algorithm", "other"), list(itertools.permutations(ALGORITHMS, 2)))
def test_smoke_cells_reject_every_other_algorithm(algorithm, other):
    verdicts = [
        judge(ZONES[algorithm, kind], cell, reference(ZONES[other, kind], cell)).status
        for kind in documents.KINDS
        if {(algorithm, kind), (other, kind)} <= set(ZONES)
        for cell in ZONES[algorithm, kind].smoke
    ]
    assert verdicts.count(Status.VIOLATES) >= 2
    assert len(verdicts) <= 12


@pytest.mark.slow
def test_zones_of_a_kind_have_the_cells_of_cubic_s():
    """docs/why-these-zones.md gives the reasons for cells that are left out. Two kinds exist for BBR alone."""
    left_out, first = [], {"threshold": "bbrv1", "spaced-losses": "bbrv3"}
    for profile in documents.PROFILES.values():
        for kind, zone in documents.judging(profile):
            under = profile if kind in documents.KINDS else "atc25"
            places = set(documents.zone_of(first.get(kind, "cubic"), kind, under).places)
            assert set(zone.places) <= places
            left_out += [(zone.id, place.id) for place in places - set(zone.places)]
    unfit = {("reno/sawtooth-queue", "30mbps-100ms-0pct"), ("bbrv2/threshold", "10mbps-100ms-6pct")}
    # Beside BBR: "bbr" is BBRv3 on the kernel of the zone's reference, and BBRv1 on the kernel of stacks over UDP.
    unfit |= {(zone, place) for zone, place in left_out if zone in BESIDE_OTHER_BBR and "other=bbr" in place}
    assert set(left_out) == unfit
    assert len(unfit) == 2 + 6 * len(BESIDE_OTHER_BBR)
    of_first = {kind: documents.zone_of(first.get(kind, "cubic"), kind) for kind in documents.kinds("atc25")}
    counts = {kind: len(zone.cells) for kind, zone in of_first.items() if zone.of_cells}
    assert counts == {
        "heatmap": 150, "loss": 150, "startup": 6, "competing": 3, "sawtooth-utilization": 5, "sawtooth-queue": 5,
        "sawtooth-events": 4,
        "identify-utilization": 8, "identify-queue": 8, "pacing": 4, "threshold": 9,
    }  # fmt: skip
    for kind in documents.KINDS:
        assert set(documents.zone_of("cubic", kind, "packets").cells) == set(grid.cells("10mbps"))


@pytest.mark.slow
def test_zones_over_points_have_those_of_their_scenario():
    found = [zone for _, zone in documents.judging("atc25") if not zone.of_cells]
    assert {"cubic/fairness-jain", "cubic/coexistence-share"} <= {zone.id for zone in found}
    for zone in found:
        grids = scenarios.find(zone.profile).grids
        expected = {point.by_name for point in grids[scenarios.ZONE]}
        if zone.id in BESIDE_OTHER_BBR:
            expected = {point for point in expected if point["other"] != "bbr"}
        assert set(zone.places) == expected
        assert set(zone.smoke) == {point.by_name for point in grids.get(scenarios.SMOKE, ())}


def test_several_flows_of_bbrv1_lose_far_more_than_bbrv3_s():
    """This is the positive control: loss tells the two apart beside their own kind, at a queue of one BDP."""
    lost = {
        algorithm: documents.zone_of(algorithm, "fairness-loss").intervals[Point((("flows", 8),))].basis.median
        for algorithm in ("bbrv1", "bbrv3")
    }
    assert lost["bbrv1"] > 3 * lost["bbrv3"]


def test_zones_of_bonded_links_tell_cubic_from_reno_where_packets_come_out_of_order():
    """This is the positive control: the links are unlike, batches are large, and packets are not put in order."""
    at = Point((("batch", 100), ("rates", "4:1"), ("reordering", "off")))
    cubic, reno = (documents.zone_of(name, "bonded-utilization").intervals[at] for name in ("cubic", "reno"))
    assert reno.basis.median not in cubic
    assert cubic.basis.median not in reno


def test_bbrv1_is_apart_where_a_bond_puts_the_packets_of_unlike_links_in_order():
    at = Point((("batch", 100), ("rates", "4:1"), ("reordering", "on")))
    of = {name: documents.zone_of(name, "bonded-utilization").intervals[at] for name in ("cubic", "reno", "bbrv1")}
    assert of["bbrv1"].high < min(of["cubic"].low, of["reno"].low)


def test_generations_of_bbr_differ_above_the_loss_that_the_newer_ones_bear():
    """Version 1 ignores loss; versions 2 and 3 send less above a loss of 2 % (BBR.LossThresh in the draft)."""
    zones = {a: documents.zone_of(a, "threshold") for a in ("bbrv1", "bbrv2", "bbrv3")}
    for newer in ("bbrv2", "bbrv3"):
        for cell in zones[newer].cells:
            apart = zones[newer].intervals[cell].high < zones["bbrv1"].intervals[cell].low
            assert apart or cell.loss_pct < 2, (newer, cell.id)


@pytest.mark.parametrize(
    ("loss_pct", "lost_pct"),
    [
        (1, [1.85, 1.79, 1.64, 2.1, 1.68, 1.96, 2.27, 2.29]),
        (2, [2.63, 3.2, 2.85, 2.56, 2.71, 2.59, 2.9, 2.88]),
        (4, [4.64, 4.72, 4.96, 4.33, 4.43, 4.38, 4.95, 5.03]),
    ],
)
def test_what_the_draft_s_stack_loses_at_1_ms_is_no_fault_and_what_cloudflare_s_does_is(loss_pct, lost_pct):
    """Its window has a third of the offload budget of Linux's over TCP: in guests it lost so much (seeds from 1001)."""
    zone = documents.zone_of("bbrv3", "loss", "packets")
    at = zone.intervals[Cell(10, 1, loss_pct)]
    assert status_in(zone.metric, at, lost_pct, family=154) is Status.CONFORMS
    assert status_in(zone.metric, at, [80.2] * 8, family=154) is Status.VIOLATES


def test_identification_asks_the_same_of_every_algorithm():
    cells = {zone.id: set(zone.cells) for zone in IDENTIFY}
    assert cells.keys() >= {
        f"{a}/{kind}" for a in ("cubic", "reno", "bbrv1") for kind in ("identify-utilization", "identify-queue")
    }
    assert len({frozenset(found) for found in cells.values()}) == 1
    assert len({zone.profile_digest for zone in IDENTIFY}) == 1


@pytest.mark.parametrize("metric", ["utilization", "lost_pct", "queue_mean_bdp", "transfer_rtts"])
def test_derived_intervals_hold_the_medians_of_their_bases(metric):
    for values in ([0.0, 0.001], [0.5, 0.9], [0.99, 1.0], [0.0078, 0.0081]):
        low, high = derive.interval([Basis.of(f"r{value}", [value]) for value in values], metric)
        assert 0 <= low <= min(values)
        assert max(values) <= high
        assert metric != "utilization" or high <= 1


def test_a_zone_names_its_cells():
    assert documents.cells("cubic/startup") == documents.zone_of("cubic", "startup").cells
    assert documents.cells("10mbps") == grid.cells("10mbps")


@pytest.fixture
def derived(tmp_path):
    def run(values, *others):
        """Run `zones derive` on a cell with `values` and one with `others`; return (its output, its document)."""
        found = measurements(values, cell=Cell(10, 50, 0)) + measurements(others or values, cell=Cell(10, 100, 0))
        results, target = tmp_path / "r.jsonl", tmp_path / "zone.json"
        results.write_text("".join(json.dumps(m.to_json()) + "\n" for m in found))
        options = ["--version-text", "v", "--out", str(target)]
        made = invoke("zones", "derive", "cubic", results, *options)
        assert made.exit_code == 0, made.output
        return made.output, json.loads(target.read_text())

    return run


def test_derive_says_when_cells_have_few_trials(derived):
    assert "some cells have only 6 trials" in derived([0.5] * 6, *[0.6] * 30)[0]
    assert "; 30 are enough for a session of 400 questions" in derived([0.5] * 6)[0]
    assert "trials:" not in derived([0.5] * 30)[0]


def test_derive_raises_the_version_where_it_permits_other_values(derived):
    assert [derived([value] * 20)[1]["version"] for value in (0.5, 0.5, 0.6, 0.6, 0.5)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("heatmap", ("--profile", "packets"), "/profile: 'packets', .* are under atc25; call the file heatmap-packets"),
        ("startup", ("--metric", "transfer_rtts"), "/profile: 'atc25', .* startup are under startup; call the file"),
        ("loss", (), "/metric: 'utilization', but zones called loss are about lost_pct; call the file heatmap.json"),
    ],
)
def test_derive_refuses_a_name_of_zones_of_another_profile_or_metric(tmp_path, name, options, words):
    target = tmp_path / f"{name}.json"
    options = ["--version-text", "v", "--out", str(target), *options]
    done = invoke("zones", "derive", "cubic", "none.jsonl", *options)
    assert done.exit_code == 2 and re.search(f"--out .*{name}.json: {words}", " ".join(done.output.split()))
    assert not target.exists()


def test_a_grid_s_name_means_all_that_a_zone_has_there():
    startup = documents.zone_of("cubic", "startup").cells
    assert grid.within("full", startup) == startup
    assert {cell.bandwidth_mbps for cell in grid.within("10mbps", startup)} == {10}
    assert grid.within("10mbps", startup) != () and not set(startup) <= set(grid.cells("full"))
    assert grid.within("10mbps", documents.zone_of("cubic").cells) == grid.cells("10mbps")
    assert grid.within(f"{startup[1].id},10mbps-1ms-0.5pct", startup) == startup[1:2]
    assert "grid '11mbps' is not known" in refusal(grid.within, "11mbps", startup)

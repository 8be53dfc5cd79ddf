"""What QUIC has beside TCP with the same algorithm: a factor by kind of cell, which multiplies the kernel's basis."""

import copy
import json

import pytest
from helpers import refusal

from conformance.catalogue import documents
from conformance.model.judging import zone as zones
from conformance.model.judging.margins import factors
from conformance.model.judging.zone import SOME_LOSS, kind_of

BBRV1 = documents.zone_of("bbrv1", "heatmap", "packets")


def medians(*by_stack):
    """Return medians of stacks that have so many times what the kernel has, in every cell."""
    return {
        f"stack-{at}": {cell: (times * permitted.basis.median, 1452.0) for cell, permitted in BBRV1.intervals.items()}
        for at, times in enumerate(by_stack)
    }


def test_a_factor_is_the_mean_over_stacks_and_its_spread_theirs():
    by_kind = {factor.kind: factor for factor in factors(BBRV1, medians(1.0, 1.1, 1.21))}
    assert by_kind.keys() == {kind_of(cell) for cell in BBRV1.intervals}
    assert all(factor.factor == pytest.approx(1.1) for factor in by_kind.values())
    assert all(factor.spread == pytest.approx(0.0953, abs=1e-4) for factor in by_kind.values())


@pytest.mark.parametrize(("count", "whole"), [(0, 0), (2, 2), (3, 2)])
def test_too_few_stacks_with_all_cells_are_one_line(count, whole):
    found = medians(*[1.0] * count)
    for stack in list(found)[whole:]:
        found[stack].popitem()
    assert f"at least 3 stacks, and these results have {whole}" in refusal(factors, BBRV1, found)


@pytest.mark.parametrize("algorithm", ["bbrv2", "bbrv3"])
def test_zones_that_ship_multiply_the_kernels_basis_alone(algorithm):
    path = documents.zone_path(f"{algorithm}/heatmap-packets")
    document = json.loads(path.read_text())
    with_factor = zones.from_json(document, path)
    kernel, *_ = document["references"]
    assert kernel.startswith("linux-")
    for entry in document["cells"]:
        place = zones.place_of(entry)
        factor = document["transport"][kind_of(place)]["factor"]
        basis = with_factor.intervals[place].basis
        assert basis.reference == kernel
        assert basis.values == pytest.approx([factor * value for value in sorted(entry["bases"][0]["values"])])
    assert len(document["transport"][SOME_LOSS]["implementations"]) >= 3


def test_further_bases_stay_as_they_are():
    path = documents.zone_path("bbrv3/heatmap-packets")
    document = copy.deepcopy(json.loads(path.read_text()))
    entry = next(entry for entry in document["cells"] if kind_of(zones.place_of(entry)) == SOME_LOSS)
    document["references"]["document"] = document["references"][next(iter(document["references"]))]
    entry["bases"].append({"reference": "document", "values": entry["bases"][0]["values"]})
    kernel, other = zones.from_json(document, path).intervals[zones.place_of(entry)].bases
    assert kernel.median == pytest.approx(document["transport"][SOME_LOSS]["factor"] * other.median)


def test_zones_of_other_algorithms_have_no_factor():
    assert not documents.zone_of("cubic", "heatmap", "packets").transport and not BBRV1.transport

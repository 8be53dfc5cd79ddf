"""A zone may also rest on measurements of another implementation, besides the reference and the documents."""

import pytest
from helpers import measurements, of_trial

from conformance.catalogue import bases, derive, documents, lint
from conformance.model.errors import UserError
from conformance.model.judging.verdict import judge
from conformance.model.networks.place import Cell

CELL, OTHER = Cell(10, 20, 1), Cell(10, 20, 0)


def run(values, cells=(CELL, OTHER), **scheme):
    """Return a trial of each cell for each value, under the profile of QUIC stacks."""
    made = [m for cell in cells for m in measurements(values, cell=cell, algorithm="reno", **scheme)]
    settings = [documents.profile("packets", m.trial.setting.cell) for m in made]
    return [of_trial(m, setting=setting) for m, setting in zip(made, settings, strict=True)]


LINUX = run([0.5] * 20)
QUIC = run([0.6] * 20, cells=(CELL,), stack="aioquic", stack_digest="9" * 16)


@pytest.fixture
def zone_file(tmp_path):
    """Write a zone that rests on Linux and, in one cell, on aioquic; return its path."""
    folder = tmp_path / "reno"
    folder.mkdir()
    target = folder / "mine.json"
    derive.write(derive.derive(LINUX, "reno", "Reno", profile="packets", name="mine", beside=[QUIC]), target)
    return target


def test_a_zone_reaches_to_the_other_implementation_where_it_was_measured(zone_file):
    zone = documents.zone(zone_file)
    there, elsewhere = zone.intervals[CELL], zone.intervals[OTHER]
    measured = [basis.reference for basis in bases.measured(there.bases, zone.references)]
    assert measured == ["linux-6.12.0", "aioquic-99999999"]
    assert there.bases[2].reference == "rfc5681-played"
    assert there.high >= there.margin.above(0.6) - 1e-4
    assert [basis.reference for basis in elsewhere.bases] == ["linux-6.12.0"]
    assert zone.references["aioquic-99999999"]["scheme"].startswith("reno/aioquic")


def test_what_only_the_other_implementation_does_is_no_violation(zone_file):
    alone = derive.derive(LINUX, "reno", "Reno", profile="packets", name="mine")
    zone = documents.zone(zone_file)
    stack = run([0.6] * 20, cells=(CELL,), stack="mine", stack_digest="8" * 16)
    assert judge(zone, CELL, stack).value in zone.intervals[CELL]
    narrow = alone["cells"][[cell["loss_pct"] for cell in alone["cells"]].index(1)]
    assert narrow["high"] < 0.6


def test_the_zone_passes_its_own_check(zone_file):
    lint.check(zone_file)


def test_a_reference_that_is_not_the_kernel_s_tcp_has_the_name_of_its_stack():
    quinn = {"stack": "quinn", "stack_version": "quinn 0.11.12", "stack_digest": "9" * 16, "kernel_release": "7.2.11"}
    for scheme, name in (
        (quinn, "quinn-0.11.12"),
        ({}, "linux-6.12.0"),
        ({"stack": "linux-tcp-h2"}, "linux-6.12.0"),
    ):
        zone = derive.derive(run([0.5] * 20, **scheme), "reno", "Reno", profile="packets", name="mine", baseline=True)
        assert list(zone["references"]) == [name]
        assert {basis["reference"] for cell in zone["cells"] for basis in cell["bases"]} == {name}


def test_two_results_of_one_implementation_are_one_line():
    with pytest.raises(UserError, match="two of these results files are of aioquic-99999999; give one file for each"):
        derive.derive(LINUX, "reno", "Reno", profile="packets", beside=[QUIC, QUIC])


def test_results_of_nothing_that_the_zone_is_about_are_one_line():
    with pytest.raises(UserError, match="no measurements of 'reno'"):
        derive.derive(LINUX, "reno", "Reno", profile="packets", beside=[run([0.5] * 5)[:0]])


@pytest.mark.parametrize(("profile", "bdp"), [("packets", 1), ("identify", 1), ("sawtooth", 0.5)])
def test_documents_are_played_over_the_profiles_own_queue(profile, bdp):
    cell = Cell(30, 100, 0.03)
    path = bases._path(documents.profile(profile, cell), 1448)
    assert path.queue_packets * path.wire_bytes == pytest.approx(bdp * cell.bdp_bytes, rel=1e-4)

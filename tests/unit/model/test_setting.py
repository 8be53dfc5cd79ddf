import math

import pytest
from helpers import refusal, setting
from hypothesis import example, given, strategies as st

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting

cells = st.builds(
    Cell,
    st.floats(0.1, 10_000, allow_nan=False),
    st.floats(0, 10_000, allow_nan=False),
    st.floats(0, 50, allow_nan=False),
)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((10, -1, 0), "one_way_delay_ms is -1"),
        ((10, 20, 100), "loss_pct is 100"),
        ((0, 20, 1), "bandwidth_mbps is 0"),
        ((math.nan, 20, 1), "it must be a number"),
        ((10, 20, True), "it must be a number"),
        (("10", 20, 1), "it must be a number"),
    ],
)
def test_impossible_cells_are_refused_with_the_reason(values, words):
    with pytest.raises(UserError, match=words):
        Cell(*values)


@given(cells)
def test_a_setting_survives_json(cell):
    made = setting(cell)
    assert Setting.from_json(made.to_json()) == made


@given(cells, cells)
@example(Cell(1234.5678, 20, 1), Cell(1234.57, 20, 1))
@example(Cell(10, 1e-05, 5e-324), Cell(10, 0, 0))
def test_every_cell_has_an_id_of_its_own_that_reads_back(one, other):
    assert Cell.parse(one.id) == one
    assert (one.id == other.id) == (one == other)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell(10.0, 20, 1.0), "10mbps-20ms-1pct"),
        (Cell(10, 0.5, 0.01), "10mbps-0.5ms-0.01pct"),
        (Cell(1234.5678, 1e-05, -0.0), "1234.5678mbps-1e-05ms-0pct"),
        (Cell(10_000, 10_000, 50), "10000mbps-10000ms-50pct"),
    ],
)
def test_ids_are_short(cell, words):
    assert cell.id == words


@pytest.mark.parametrize("text", ["10mbps", "10mbps-20ms", "10mbps-20ms-1", "1.2.3mbps-1ms-1pct", "amps-1ms-1pct", ""])
def test_malformed_cell_ids_are_refused(text):
    assert "not of the form" in refusal(Cell.parse, text)


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        ("fifo", "queue 'fifo' is not known"),
        ("bfifo", "not of the form bfifo:SIZE"),
        ("red:3", "not of the form red"),
        ("pfifo:1.5", "positive number of packets"),
        ("bfifo:-1", "positive number of bdp"),
        ("bfifo:nan", "positive number of bdp"),
        ("bfifo:x", "positive number of bdp"),
        ("pfifo:99999999999", "the size is too large; give at most 4294967295 packets"),
    ],
)
def test_impossible_queues_are_refused(queue, words):
    with pytest.raises(UserError, match=words):
        setting(queue=queue)


def test_transfer_is_ten_seconds_at_the_bottleneck():
    assert setting(Cell(10, 1, 0)).transfer_bytes == 12_500_000
    assert setting(Cell(50, 1, 0)).transfer_bytes == 62_500_000


def test_profile_digest_ignores_the_cell_and_nothing_else():
    assert setting(Cell(10, 1, 0)).profile_digest == setting(Cell(50, 100, 4)).profile_digest
    assert setting(queue="fq_codel").profile_digest != setting().profile_digest
    assert setting(offload=False).profile_digest != setting().profile_digest
    assert setting(transfer_s=20).profile_digest != setting().profile_digest


def test_sysctls_outside_the_network_are_refused():
    with pytest.raises(UserError, match=r"kernel\.core_pattern"):
        Setting.from_json({**setting().to_json(), "sysctls": {"kernel.core_pattern": "|/bin/sh"}})


def test_grids():
    assert len(grid.cells("full")) == 150
    assert len(grid.cells("20mbps")) == 30
    assert grid.cells("10mbps-20ms-1pct,10mbps-1ms-0.01pct")[1].loss_pct == 0.01
    assert "grid '15mbps' is not known" in refusal(grid.cells, "15mbps")


def test_unknown_profile_names_the_known_ones():
    assert "choose one of atc25" in refusal(documents.profile, "atc24", Cell(10, 1, 0))

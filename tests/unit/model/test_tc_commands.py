"""The numbers of the published ATC'25 testbed, and what tc is told."""

import pytest
from helpers import setting
from hypothesis import given
from hypothesis import strategies as st

from conformance.lab import job
from conformance.model.emulation import tc_commands
from conformance.model.links import DUAL, QUEUES
from conformance.model.place import Cell


@pytest.mark.parametrize(
    ("cell", "bdp"), [(Cell(10, 1, 0), 2_500), (Cell(10, 20, 0), 50_000), (Cell(50, 100, 0), 1_250_000)]
)
def test_bdp_is_of_the_round_trip(cell, bdp):
    assert tc_commands.bdp_bytes(cell) == pytest.approx(bdp)


def test_red_at_10_mbps_and_1_ms_hits_its_floor():
    red = tc_commands.red_parameters(Cell(10, 1, 0))
    assert red == {
        "limit_bytes": 48_000,
        "max_bytes": 12_000,
        "min_bytes": 4_000,
        "avpkt_bytes": 1000,
        "burst_packets": 5,
    }


@given(st.builds(Cell, st.floats(1, 1000), st.floats(0, 500), st.just(0)))
def test_red_thresholds_are_ordered_and_burst_covers_the_lower(cell):
    red = tc_commands.red_parameters(cell)
    assert 4_000 <= red["min_bytes"] < red["max_bytes"] < red["limit_bytes"]
    # By tc-red(8), burst must cover min in average packets, or the kernel refuses it.
    assert red["burst_packets"] * red["avpkt_bytes"] >= red["min_bytes"]


def test_chain_is_netem_then_htb_then_the_queue():
    lines = tc_commands.tc_lines(setting(Cell(10, 20, 1)).cell_form)
    assert lines == [
        "qdisc add dev {dev} root handle 1: netem limit 1000000 delay 20000us loss 1%",
        "qdisc add dev {dev} parent 1: handle 5: htb default 1",
        "class add dev {dev} parent 5: classid 5:1 htb rate 10mbit quantum 125000",
        "qdisc add dev {dev} parent 5:1 handle 10: red limit 200000 min 16666 max 50000 avpkt 1000 burst 17"
        " probability 0.02 adaptive harddrop bandwidth 10mbit",
    ]


def test_quantum_is_capped():
    assert "quantum 200000" in tc_commands.tc_lines(setting(Cell(50, 20, 0)).cell_form)[2]


@pytest.mark.parametrize(("loss", "word"), [(0, "netem"), (0.01, "loss 0.01%"), (4, "loss 4%")])
def test_fractional_loss_is_kept(loss, word):
    first = tc_commands.tc_lines(setting(Cell(10, 20, loss)).cell_form)[0]
    assert word in first
    assert ("loss" in first) == (loss > 0)


@pytest.mark.parametrize("kind", [kind for kind in QUEUES if kind != DUAL])
def test_every_queue_is_told_to_tc_under_the_same_handle(kind):
    size = {"bfifo": ":1", "pfifo": ":100"}.get(kind, "")
    lines = tc_commands.tc_lines(setting(Cell(10, 20, 0), queue=kind + size).cell_form)
    wanted = "bfifo" if kind == "policer" else kind
    assert f"handle {tc_commands.QUEUE_HANDLE}: {wanted}" in lines[3]
    assert (len(lines) == 5) == (kind == "policer")


def test_policer_polices_at_the_rate_behind_twice_the_rate():
    lines = tc_commands.tc_lines(setting(Cell(50, 20, 0), queue="policer").cell_form)
    assert "rate 100mbit" in lines[2]
    assert "police rate 50mbit burst 65536" in lines[4]


def test_bfifo_is_sized_in_bdp():
    assert tc_commands.tc_lines(setting(Cell(10, 20, 0), queue="bfifo:0.5").cell_form)[3].endswith("bfifo limit 25000")


def test_a_trials_delay_is_never_quite_the_cells():
    offs = [job.delay_off_ns(seed, 0) for seed in range(1, 201)]
    assert len(set(offs)) > 190 and 0 not in offs and -10_000 <= min(offs) < -9_000 and 9_000 < max(offs) <= 10_000
    assert offs == [job.delay_off_ns(seed, 0) for seed in range(1, 201)]
    assert job.delay_off_ns(1, 0) != job.delay_off_ns(1, 1)
    as_asked, later = (tc_commands.tc_lines(setting(Cell(10, 20, 0)).cell_form, 0, off) for off in (0, 7))
    assert "delay 20000us" in as_asked[0] and "delay 20000.007us" in later[0] and as_asked[1:] == later[1:]
    assert "delay 0us" in tc_commands.tc_lines(setting(Cell(10, 0, 0)).cell_form, 0, -3)[0]

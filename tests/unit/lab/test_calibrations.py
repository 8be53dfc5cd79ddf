"""Remembered calibrations: what they depend on, and which files are never taken for one."""

import concurrent.futures
import dataclasses

import pytest
from helpers import changed, setting, trial
from test_reader import BATCHES, CELLS, KERNELS_OWN, STORY, link_of

from conformance.guest import protocol, wire
from conformance.lab import calibrations, job, manifest
from conformance.lab.reader import Reader
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(calibrations, "folder", lambda: tmp_path / "kept")
    return tmp_path / "kept"


def about(trial, **changes):
    """Return the arguments of recall() and remember() for a trial."""
    return trial, job.cell_of([trial]), dataclasses.replace(job.PROBING, **changes)


GOOD = (link_of(CELLS[0]),)


def test_what_is_remembered_comes_back_as_it_was(folder):
    assert calibrations.recall(*about(trial())) is None
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(trial())) == GOOD
    assert len(list(folder.rglob("*.json"))) == 1


def other(**changes):
    return dataclasses.replace(trial(), setting=changed(setting(), **changes))


@pytest.mark.parametrize(
    "same",
    [
        trial(seed=5), trial(algorithm="reno"), trial(stack="quinn"), other(transfer_s=3), other(host_queue="fq"),
        other(sysctls=(("net.ipv4.tcp_sack", "0"),)), other(rival="cubic"),
    ],
)  # fmt: skip
def test_seed_algorithm_stack_hosts_and_length_do_not_matter(same):
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(same)) == GOOD


@pytest.mark.parametrize(
    "unlike",
    [
        trial(kernel_digest="8" * 16), trial(lab_digest="8" * 16), other(queue="bfifo:1"), trial(cell=Cell(10, 21, 1)),
    ],
)  # fmt: skip
def test_what_a_calibration_depends_on_makes_it_another(unlike):
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(unlike)) is None


def test_another_tc_makes_it_another(monkeypatch, tmp_path):
    """Versions of tc round delays differently (docs/virtual-time.md)."""
    calibrations.remember(*about(trial()), GOOD)
    (tmp_path / "tc").write_text("#!/bin/sh")
    (tmp_path / "tc").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "GUEST_PATH", str(tmp_path))
        calibrations._tc_digest.cache_clear()
        assert calibrations.recall(*about(trial())) is None
    calibrations._tc_digest.cache_clear()
    assert calibrations.recall(*about(trial())) == GOOD


def test_other_probes_make_it_another():
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(trial(), loss_packets=7)) is None


def test_a_failed_one_is_not_remembered(folder):
    calibrations.remember(*about(trial()), (dataclasses.replace(GOOD[0], rate_mbps=5.0),))
    calibrations.remember(*about(trial()), ())
    assert not folder.exists()


@pytest.mark.parametrize("damage", [lambda text: text[: len(text) // 2], lambda text: "", lambda text: "\xff\0",
                                    lambda text: text.replace("loss_lost", "lost"),
                                    lambda text: text.replace('"rate_mbps": 10', '"rate_mbps": 20')])  # fmt: skip
def test_a_damaged_one_is_made_again(folder, damage):
    calibrations.remember(*about(trial()), GOOD)
    (file,) = folder.rglob("*.json")
    before = file.read_text()
    file.write_text(damage(before), encoding="latin-1")
    assert damage(before) != before and calibrations.recall(*about(trial())) is None
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(trial())) == GOOD


def test_a_cache_that_takes_no_files_is_no_error(folder):
    folder.write_text("no folder")
    calibrations.remember(*about(trial()), GOOD)
    assert calibrations.recall(*about(trial())) is None


def test_many_at_once_leave_one_whole_entry(folder):
    def one(_):
        calibrations.remember(*about(trial()), GOOD)
        return calibrations.recall(*about(trial()))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(found == GOOD for found in pool.map(one, range(200)))
    assert len(list(folder.rglob("*"))) == 2  # the folder of the digest's first digits, and the file


def told(reader, without=()):
    return [m for event in STORY if not isinstance(event, without) for m in reader.feed(event, {})]


def test_a_reader_asks_for_what_is_not_remembered_and_says_the_same_with_what_is():
    first = Reader(BATCHES, KERNELS_OWN, remembers=True)
    assert [bool(cell.calibrate) for cell in first.cells] == [True] * 3
    made = told(first)
    again = Reader(BATCHES, KERNELS_OWN, remembers=True)
    assert [cell.calibrate for cell in again.cells] == [()] * 3
    assert told(again, protocol.Calibration) == made
    assert {m.outcome for m in made} == {Outcome.OK}
    assert all(cell.calibrate for cell in Reader(BATCHES, KERNELS_OWN).cells)


def test_a_guest_reads_the_cells_that_it_is_fed(tmp_path):
    feeder, cells = job.Feeder(tmp_path), [job.cell_of([trial(cell=cell)]) for cell in (CELLS[0], Cell(50, 1, 0))]
    feeder.feed_all(cells)
    texts = [(tmp_path / protocol.cell_file(index)).read_text() for index in range(3)]
    assert [protocol.parse_cell(text) for text in texts] == [*cells, None]
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    with pytest.raises(wire.ProtocolError, match=": missing in CellJob"):
        protocol.parse_cell("{}")

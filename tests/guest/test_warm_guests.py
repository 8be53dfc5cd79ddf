"""A guest that is fed cell after cell measures in each the same as a guest of its own would."""

import dataclasses
import os
import signal
import threading
import time

import pytest
from helpers import line
from test_guest import go, guests, short

from conformance.lab import calibrations, virtual
from conformance.model.judging import grid
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

pytestmark = pytest.mark.guest


@pytest.fixture(autouse=True)
def nothing_remembered_and_no_other_run(monkeypatch, tmp_path):
    monkeypatch.setattr(virtual.cores, "others_wait", lambda: False)
    monkeypatch.setattr(calibrations, "folder", lambda: tmp_path / "calibrations")


def by_trial(measurements):
    return {(m.trial.setting.cell.id, m.trial.seed): line(m) for m in measurements}


@pytest.mark.thorough
def test_fifty_cells_in_one_guest_measure_what_guests_of_their_own_do(bench):
    """The cells have 10 to 50 Mbit/s and 1 to 100 ms; every tenth is also measured alone, the last one first."""
    settings = [short(cell, transfer_s=0.3) for cell in grid.cells("full")[::3]]
    started = []
    together = go(bench, settings, (1, 2), on_start=started.append)
    assert len(settings) == 50 and len(started) == 1
    assert {m.outcome for m in together} == {Outcome.OK}
    alone = by_trial(m for setting in settings[::-10] for m in go(bench, [setting], (2, 1)))
    assert alone.items() <= by_trial(together).items()


def test_a_cell_that_is_fed_late_measures_the_same(bench):
    """A guest without work waits; how long depends on the host's clock and affects no result."""
    settings = [short(Cell(10, delay, 2)) for delay in (1, 20, 60)]
    at_once = by_trial(go(bench, settings, (1, 2)))

    def late(pause_s):
        for setting in settings:
            yield bench.trials("cubic", setting, [1])
            time.sleep(pause_s)
        for setting in settings[::-1]:  # as after a look at the measurements
            yield []
            time.sleep(pause_s)
            yield bench.trials("cubic", setting, [2])

    for pause_s in (0, 0.7):
        started = []
        room = bench.place("cubic").room
        found = list(room.run(bench.adapter, late(pause_s), threading.Event(), on_start=started.append))
        assert by_trial(found) == at_once and len(started) == 1


def test_a_guest_that_is_killed_costs_the_cell_it_was_in(bench):
    settings = [short(Cell(10, delay, 0)) for delay in (1, 2, 5, 10)]
    started = []

    def kill_at_the_second():
        for at, setting in enumerate(settings):
            if at == 2:  # the room asks for this cell during the last trial of the second
                os.kill(started[0].pid, signal.SIGKILL)
            yield bench.trials("cubic", setting, [1, 2])

    found = list(
        bench.place("cubic").room.run(
            bench.adapter, kill_at_the_second(), threading.Event(), on_start=started.append
        )
    )  # fmt: skip
    assert len(started) == 2 and guests() == []
    wrong = [m for m in found if m.outcome is not Outcome.OK]
    assert {m.trial.setting for m in wrong} == {settings[1]} and "SIGKILL" in wrong[0].message
    assert len(found) == 8


def test_an_old_guest_is_replaced(bench):
    """A guest's uptime is bounded, because code that counts milliseconds in 32 bits would go wrong otherwise."""
    settings = [short(Cell(10, delay, 1), transfer_s=0.3) for delay in (1, 20, 60, 100)]
    started = []
    room = virtual.VirtualRoom(bench.place("cubic").kernel, most_uptime_s=300)
    found = go(bench, settings, (1, 2), room=room, on_start=started.append)
    assert len(started) > 1
    assert by_trial(found) == by_trial(go(bench, settings, (1, 2)))


@pytest.mark.parametrize("count", [1, pytest.param(3, marks=pytest.mark.thorough)])
def test_a_trial_does_not_depend_on_whether_its_guest_made_the_calibration(bench, count):
    """This holds for calibrations of its own cell and of others, and a calibration is the same for every algorithm."""
    cells = short(Cell(10, 20, 1)), short(Cell(40, 60, 3), queue="bfifo:1"), short(Cell(20, 5, 0))
    settings = cells[:count]
    for algorithm in ("cubic", "reno"):
        made = virtual.VirtualRoom(bench.place(algorithm).kernel, remembers=False)
        # One setting is enough for the second algorithm, to see whether it finds the first one's calibration.
        for setting in settings if algorithm == "cubic" else settings[:1]:
            always = go(bench, [setting], (1, 2), algorithm, made)
            assert "calibration_s" in always[0].host
            first, again = (go(bench, [setting], seeds, algorithm) for seeds in ((1, 2), (2, 1)))
            # The second algorithm finds all calibrations remembered from the first.
            assert ("calibration_s" in first[0].host) == (algorithm == "cubic")
            assert all("calibration_s" not in m.host for m in again)
            assert by_trial(first) == by_trial(again) == by_trial(always)
            assert dataclasses.asdict(first[0])["evidence"]["calibration"]

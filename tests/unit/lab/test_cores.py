"""Cores are lent to one guest at a time, in turn, and the idlest first."""

import contextlib
import fcntl
import itertools
import os
import subprocess
import sys
import threading
import time

import pytest
from helpers import at_once

from conformance.lab import cores
from conformance.model.errors import UserError
from conformance.support import paths


@pytest.fixture
def one(own_cache, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})


def test_a_core_is_lent_to_one_at_a_time_and_comes_back(one):
    held, most = [], []

    def borrow():
        for _ in range(5):
            with cores.one_core() as core:
                held.append(core)
                most.append(len(held))
                time.sleep(0.001)
                held.remove(core)

    at_once(*[borrow] * 3)
    assert len(most) == 15
    assert set(most) == {1}


def test_who_waits_is_served_before_who_asks_again(one):
    """A run gives its core back and asks for one again at once, while another run has been waiting."""
    served = []

    def wait():
        with cores.one_core():
            served.append("waited")

    waiting = threading.Thread(target=wait)
    with cores.one_core():
        waiting.start()
        while not _locked("queue-8.lock"):
            time.sleep(0.001)
    with cores.one_core():
        served.append("again")
    waiting.join()
    assert served == ["waited", "again"]


@contextlib.contextmanager
def held(name):
    """Hold a lock, as another run does."""
    paths.cache("cores").mkdir(parents=True, exist_ok=True)
    with open(paths.cache("cores") / name, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_who_waits_for_another_core_stands_in_nobodys_way(one, monkeypatch):
    with cores.one_core(), held("queue-8.lock"):
        monkeypatch.setattr(cores.limits, "cores", lambda: [321])
        assert not cores.others_wait()
        with cores.one_core() as core:
            assert core == 321


def test_who_may_use_some_of_the_cores_is_seen_waiting_by_who_may_use_more(four):
    with held("queue-4.lock"):
        assert cores.others_wait()
    assert not cores.others_wait()


def _locked(name):
    file = paths.cache("cores") / name
    if not file.exists():
        return False
    with open(file) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_waiting_can_be_interrupted(one):
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(UserError, match="interrupted while waiting for a core"), cores.one_core(cancelled):
        raise AssertionError("a core was lent")


def test_a_wait_for_another_process_names_it_once(one, monkeypatch):
    said, cancelled = [], threading.Event()
    monkeypatch.setattr(cores.Waiting, "say", said.append)
    monkeypatch.setattr(cores.Waiting, "was_said", False)
    monkeypatch.setattr(cores, "_SILENT_S", 0.0)
    paths.cache("cores").mkdir(parents=True)
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", hold, paths.cache("cores") / "core3.lock"]

    def wait():
        with pytest.raises(UserError, match="interrupted"), cores.one_core(cancelled):
            raise AssertionError("a core was lent")

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        waiting = threading.Thread(target=wait)
        waiting.start()
        while not said:
            time.sleep(0.001)
        cancelled.set()
        waiting.join()
        other.communicate("\n")
    assert said == [f"waiting for a core that process {other.pid} holds"] and cores.Waiting.was_said


def test_a_run_that_has_a_core_says_nothing_of_waiting(one, monkeypatch):
    """Its guests wait for one another if there are more workers than cores."""
    monkeypatch.setattr(cores.Waiting, "say", pytest.fail)
    monkeypatch.setattr(cores, "_SILENT_S", 0.0)
    cancelled = threading.Event()
    with cores.one_core(), pytest.raises(UserError, match="interrupted"):
        threading.Timer(0.05, cancelled.set).start()
        with cores.one_core(cancelled):
            raise AssertionError("a core was lent")


@pytest.fixture
def four(own_cache, monkeypatch):
    """Fake four cores; return a function that sets how many clock ticks each is idle between two looks."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr(cores, "_BELIEVE_S", -1.0)
    monkeypatch.setattr(cores, "_LOOK_S", 0.001)

    def idle(later=None, **ticks):
        first, again = ({int(core.removeprefix("core")): n for core, n in of.items()} for of in (ticks, later or ticks))
        looks = itertools.chain([{}, first], itertools.cycle([{}, again]))
        monkeypatch.setattr(cores, "_idle_ticks", lambda: next(looks))

    return idle


def test_the_idlest_core_is_lent_first_and_then_the_next(four):
    four(core0=2, core1=9, core2=0, core3=7)
    with cores.one_core() as first, cores.one_core() as second, cores.one_core() as third:
        assert (first, second, third) == (1, 3, 0)


def test_who_finds_somebody_on_his_core_by_then_moves_once(four):
    four(core0=2, core1=9, core2=0, core3=7, later={"core0": 9, "core1": 4, "core2": 1, "core3": 8})
    with cores.one_core() as core:
        assert core == 0
        assert [_locked(f"core{n}.lock") for n in range(4)] == [True, False, False, False]
    assert not _locked("core0.lock")


def test_who_finds_somebody_on_his_core_stays_where_no_other_is_free_or_much_idler(four):
    four(core0=2, core1=9, core2=0, core3=7, later={"core0": 9, "core1": 4, "core2": 1, "core3": 8})
    with held("core0.lock"), held("core3.lock"), cores.one_core() as core:
        assert core == 1 and _locked("core1.lock")
    four(core1=9, core3=7, later={"core0": 8, "core1": 4, "core2": 8, "core3": 8})
    with cores.one_core() as core:
        assert core == 1


def test_of_equally_idle_cores_any_may_be_first(four):
    first = set()
    for _ in range(40):
        four()
        with cores.one_core() as core:
            first.add(core)
    assert len(first) > 1


def test_where_the_cache_cannot_be_written_to_locks_are_in_the_temp_folder(own_cache, tmp_path, monkeypatch):
    own_cache.write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    with cores.one_core() as core:
        assert core == 3
    assert (tmp_path / f"cc-conformance-{os.getuid()}" / "core3.lock").exists()


def test_where_locks_lie_in_the_temp_folder_they_are_not_in_anothers_folder(own_cache, tmp_path, monkeypatch):
    own_cache.write_text("no folder")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"cc-conformance-{os.getuid()}").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(UserError, match="is not yours; set TMPDIR"):
        cores.others_wait()

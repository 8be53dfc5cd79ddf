"""Cores are lent to one guest at a time, and in turn."""

import fcntl
import os
import threading
import time

import pytest

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

    threads = [threading.Thread(target=borrow) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 15
    assert set(most) == {1}


def test_who_waits_is_served_before_who_asks_again(one):
    """A run gives its core back and at once asks again, while another has been waiting."""
    served = []

    def wait():
        with cores.one_core():
            served.append("waited")

    waiting = threading.Thread(target=wait)
    with cores.one_core():
        waiting.start()
        while not _locked("queue.lock"):
            time.sleep(0.001)
    with cores.one_core():
        served.append("again")
    waiting.join()
    assert served == ["waited", "again"]


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

"""The long-lived tc(8) of a node: what it refuses is an error with its words, and it goes on."""

import contextlib
import os
import signal

import pytest

from conformance.guest import tc


class Node:
    pid = os.getpid()


@pytest.fixture
def node(monkeypatch):
    """This process's own namespace, which takes no rights to look at."""
    monkeypatch.setattr(tc, "inside", lambda node: contextlib.nullcontext())
    monkeypatch.setattr(tc, "_RUNNING", {})
    yield Node()
    for pid in tc.pids():
        os.kill(pid, signal.SIGKILL)


def test_it_shows_what_is_there(node):
    assert tc.read_qdiscs(node, ["lo"]) != []
    assert tc.read_qdiscs(node, ["nowhere"]) == []


def test_what_it_refuses_is_an_error_with_its_words_and_it_goes_on(node):
    with pytest.raises(RuntimeError, match="tc: Cannot find device"):
        tc.run(node, ["qdisc add dev nowhere root pfifo"])
    tc.run(node, [])
    assert len(tc.pids()) == 1


def test_one_that_ended_is_an_error(node):
    tc.run(node, [])
    (pid,) = tc.pids()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="tc: it ended"):
        tc.run(node, [])

"""The long-lived tc(8) of a node: if it refuses a command, that is an error with its words, and it goes on."""

import contextlib
import os
import signal

import pytest

from conformance.guest import tc
from conformance.lab.manifest import GUEST_PATH


class Node:
    pid = os.getpid()


@pytest.fixture
def node(monkeypatch):
    """Yield a node in this process's own namespace, where reading queues needs no privileges."""
    monkeypatch.setattr(tc, "inside", lambda node: contextlib.nullcontext())
    monkeypatch.setattr(tc, "_RUNNING", {})
    monkeypatch.setattr(os, "sched_setscheduler", lambda *args: None)
    monkeypatch.setenv("PATH", GUEST_PATH)  # an ordinary user's lacks sbin
    yield Node()
    for pid in tc.pids():
        os.kill(pid, signal.SIGKILL)


def test_it_shows_what_is_there(node):
    assert tc.read_qdiscs(node, ["lo"]) != []
    assert tc.read_qdiscs(node, ["nowhere"]) == []


def test_what_it_refuses_is_an_error_with_its_words_and_it_goes_on(node):
    with pytest.raises(RuntimeError, match="tc: Cannot find device"):
        tc.run(node, ["qdisc add dev nowhere root pfifo"])
    before = tc.pids()
    assert tc.read_qdiscs(node, ["lo"]) != []
    assert tc.pids() == before


@pytest.mark.parametrize("line", ["qdisc add dev", "qdisc add dev lo root netem delay much"])
def test_what_it_cannot_parse_is_an_error_with_its_words_and_there_is_another_one(node, line):
    with pytest.raises(RuntimeError, match=r"tc: [A-Z]\w+ "):
        tc.run(node, [line])
    assert tc.read_qdiscs(node, ["lo"]) != []


def test_one_that_was_killed_is_an_error_once(node):
    tc.run(node, [])
    (pid,) = tc.pids()
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="tc: it ended without a message"):
        tc.run(node, [])
    assert tc.pids() == set()
    assert tc.read_qdiscs(node, ["lo"]) != []


@pytest.mark.slow
def test_one_that_does_not_answer_is_ended(node, monkeypatch, tmp_path):
    silent = tmp_path / "tc"
    silent.write_text("#!/bin/sh\necho 'Dump terminated' >&2\ncat > /dev/null\n")
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(tc, "_PATIENCE_MS", 300)
    with pytest.raises(RuntimeError, match="tc: Dump terminated"):
        tc.read_qdiscs(node, [])
    assert tc.pids() == set()

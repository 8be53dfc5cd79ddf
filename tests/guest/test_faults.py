"""Hostile adapters (tests/faults): each ends in time, with the right outcome and words, and leaves nothing behind.

The misdeeds of a group share a guest. A good trial follows each misdeed, or all of them if the client only says false
things. Its client first looks for processes, files, kernel objects and memory use that should not be there. All good
trials give the same bytes.
"""

import contextlib
import dataclasses
import functools
import hashlib
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest
from helpers import line
from test_guest import guests
from test_scenario_guest import FIFO, network

from conformance.catalogue import documents
from conformance.commands import trace
from conformance.engine import benches
from conformance.guest import protocol
from conformance.lab import job, virtual
from conformance.lab.reader import Reader
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.support import paths

pytestmark = pytest.mark.guest

FOLDER = paths.PACKAGE.parent / "tests" / "faults"
MARK = "hostile-left-this"
TIMEOUT_S = 30
#: of virtual time: twice the pause before a calibration or a trial, a server's start, the transfer, and the clean-up
BOUND_S = 2 * (61 + 66) + 30 + TIMEOUT_S + 10
#: of wall time, only so that a test ends; nothing is asserted about wall time
WALL_S = 500
OK, FAILED, ERROR, UNSUPPORTED = Outcome.OK, Outcome.FAILED, Outcome.ERROR, Outcome.UNSUPPORTED
NO_RESULT = "the client of hostile printed no valid result line: "

#: {group: {misdeed: (outcome, words of its message)}}
GROUPS = {
    "lies": {
        "more-bytes": (ERROR, "were requested"),
        "fewer-bytes": (ERROR, "were requested"),
        "less-time": (ERROR, "the harness saw it run for"),
        "more-time": (ERROR, "the harness saw it run for"),
        "no-time": (ERROR, "reports a completion time of 0.0 s"),
        "negative-time": (ERROR, "reports a completion time of -0."),
        "before-the-transfer": (ERROR, "but only 0 crossed its link"),
        "compressed": (ERROR, "crossed its link"),
        "late-handshake": (ERROR, "from the end of the handshake to the last byte, but its packets show"),
    },
    "results": {
        "says-nan": (ERROR, NO_RESULT + '{"bytes": '),
        "says-infinity": (ERROR, NO_RESULT + '{"bytes": '),
        "says-huge": (ERROR, NO_RESULT + "00000"),
        "says-a-key-twice": (ERROR, NO_RESULT + '{"bytes": 1, "bytes": '),
        "says-brackets": (ERROR, NO_RESULT + "[[["),
        "says-words": (ERROR, NO_RESULT + "all [31mgood [0m [bold]here[/bold]"),
        "says-bytes": (ERROR, NO_RESULT + "\ufffd\ufffd"),
        "says-nothing": (ERROR, NO_RESULT + "nothing"),
        "says-two-results": (ERROR, "printed 2 result lines"),
        "dies-with-escapes": (FAILED, "ended with status 1: ]0;title [2J[red] no [/red] end"),
        "127": (UNSUPPORTED, "hostile does not offer cubic"),
        "127-half-way-server": (FAILED, "the server of hostile ended with status 127 during the transfer"),
        "127-half-way-client": (FAILED, "the client of hostile ended with status 127 during the transfer"),
    },
    "ports": {
        "never-binds": (ERROR, "the server of hostile did not bind CC_PORT within 30 s"),
        "another-port": (ERROR, "the server of hostile did not bind CC_PORT within 30 s"),
        "binds-and-exits": (FAILED, "the server of hostile died with status 0 during the transfer"),
        "exits-at-once": (ERROR, "the server of hostile ended with status 3 before it was ready"),
        "daemonises": (ERROR, "the server of hostile ended with status 0 before it was ready"),
        "never-accepts": (FAILED, "hostile transferred nothing in 30"),
    },
    "processes": {
        "server-leaves-processes": (OK, None),
        "client-leaves-processes": (OK, None),
        "holds-the-port": (OK, None),
        "dead-leader": (OK, None),
        "forks": (ERROR, "the stack already runs 256 processes, its limit"),
        "ignores-sigterm": (OK, None),
        "stopped-server": (FAILED, "hostile transferred nothing in 30"),
        "stopped-client": (FAILED, "hostile transferred nothing in 30"),
        "stops-half-way": (FAILED, "hostile stood still after"),
        "kills-everybody": (FAILED, "hostile"),
    },
    "resources": {
        "server-floods-stdout": (OK, None),
        "server-floods-stderr": (OK, None),
        "client-floods-stdout": (FAILED, "hostile"),
        "client-floods-stderr": (FAILED, "hostile"),
        "fills-folders": (OK, None),
        "nests-folders": (OK, None),
        "server-eats-memory": (ERROR, "the server of hostile ended with status -9 (its guest's memory ran out)"),
        "client-eats-memory": (ERROR, "the client of hostile ended with status -9 (its guest's memory ran out)"),
        "child-eats-memory": (ERROR, "the client of hostile ended with status 137 (its guest's memory ran out)"),
        "fills-and-eats": (ERROR, "the client of hostile ended with status -9 (its guest's memory ran out)"),
        "leaves-in-the-kernel": (OK, None),
    },
    # These clients end with an error that says so if a deed was possible.
    "business of others": {
        "writes-outside": (OK, None),
        "reads-the-job": (OK, None),
        "attacks": (OK, None),
        "stirs-the-random": (OK, None),
        "spoils-logs": (OK, None),
        "links-the-clients-output": (OK, None),
    },
    "other transfers": {
        "another-algorithm": (ERROR, "the server of hostile sent with reno instead of cubic"),
        "another-for-a-while": (ERROR, "the server of hostile sent with reno instead of cubic"),
        "side-door": (ERROR, "nothing shows that it used cubic"),
        "four-connections": (ERROR, "the client of hostile opened 4 connections instead of one"),
        "beside": (ERROR, "the server of hostile sent beside its connection: "),
        "calls-back": (ERROR, "the client of hostile accepted connections (1)"),
        # These cannot be seen from outside (docs/security.md).
        "other-bytes": (OK, None),
        "plain": (OK, None),
    },
}
TALK = ("lies", "results")
ALONE = {"spins": "a trial took longer than 4 s of wall time"}


@pytest.fixture(scope="module")
def bench():
    return benches.find(benches.Choice(stack=str(FOLDER / "adapter.json")))


@pytest.fixture(autouse=True)
def nothing_is_left_on_the_host():
    yield
    assert guests() == []
    assert not list(pathlib.Path(tempfile.gettempdir()).glob(f"conformance-scratch-{os.getpid()}-*"))
    places = (
        *(pathlib.Path(name) for name in ("/", "/etc", "/usr", "/run", "/tmp", "/var/tmp", "/var/log", "/dev/shm")),
        *(pathlib.Path.home(), paths.PACKAGE.parent, paths.cache(), paths.cache("adapters"), FOLDER),
    )
    assert [place for place in places if list(place.glob(f"{MARK}*"))] == []


@functools.cache
def sizes():
    """Return {misdeed: the size of the transfer that selects it}, as the adapter says itself."""
    done = subprocess.run([FOLDER / "hostile", "misdeeds"], capture_output=True, text=True, check=True)
    return {name: int(size) for name, size in map(str.split, done.stdout.splitlines())}


def trials(bench, misdeed):
    size = sizes()[misdeed]
    setting = documents.profile("atc25", Cell(10, 20, 0), transfer_s=(size + 0.5) * 8 / 10e6)
    assert setting.transfer_bytes == size
    return bench.trials("cubic", dataclasses.replace(setting, timeout_s=TIMEOUT_S), [1])


def carry_out(bench, batches):
    """Return ([measurement], [event], files in the scratch folder) of one guest that makes all trials."""
    reader, found = Reader(batches, bench.adapter), []
    with virtual.one_guest(bench.place("cubic").kernel, bench.adapter, batches[0][0]) as (guest, scratch):
        job.Feeder(scratch).feed_all(reader.cells)
        events = []
        for event in virtual.events(guest, scratch, WALL_S):
            events.append(event)
            found += reader.feed(event, {})
        console = (scratch / "console.log").read_text(errors="replace")
        files = {str(p.relative_to(scratch)) for p in scratch.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert not reader.owed, console[-2000:]
    return found, events, files


def contents():
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.rglob("*")}


def test_the_table_is_complete():
    named = [misdeed for group in GROUPS.values() for misdeed in group]
    assert sorted([*named, *ALONE, "none"]) == sorted(sizes())


def order_of(group):
    """Return the names of the trials that the guest of a group makes, in order."""
    if group in TALK:
        return ["none", *GROUPS[group], "none"]
    return ["none", *(name for misdeed in GROUPS[group] for name in (misdeed, "none"))]


def as_expected(measurement, expected):
    outcome, words = expected or (OK, None)
    message = measurement.message or ""
    return measurement.outcome is outcome and (words or "") in message and message.isprintable()


@pytest.mark.parametrize("group", GROUPS)
def test_misdeeds_end_with_the_right_outcome_and_leave_nothing(bench, monkeypatch, group):
    # The emulator is not under test, so its calibration of loss takes few packets.
    monkeypatch.setattr(job, "PROBING", dataclasses.replace(job.PROBING, loss_packets=200))
    expected, before = GROUPS[group], contents()
    order = order_of(group)
    found, events, files = carry_out(bench, [trials(bench, name) for name in order])
    found = list(zip(order, found, strict=True))

    assert [(name, str(m.outcome), m.message) for name, m in found if not as_expected(m, expected.get(name))] == []
    assert len({line(m) for name, m in found if name == "none"}) == 1

    began = [e.uptime_s for e in events if isinstance(e, protocol.CellBegins)]
    ended = [e.uptime_s for e in events if isinstance(e, protocol.TrialDone | protocol.TrialFailed)]
    assert max(end - begin for begin, end in zip(began, ended, strict=True)) < BOUND_S
    assert contents() == before
    certificates = {f"pki/{name}" for name in ("ca.crt", "other-ca.crt", "server.crt", "server.key")}
    assert files == {"job.json", "out.jsonl", "console.log", "topology.py", *certificates}


def test_who_spins_without_end_is_ended_by_the_clock_on_the_wall(bench):
    """Virtual time stands still while a program computes, so no limit in virtual time can end it."""
    room = virtual.VirtualRoom(bench.place("cubic").kernel, trial_wall_timeout_s=4)
    with contextlib.closing(room.run(bench.adapter, [trials(bench, "spins")], threading.Event())) as measurements:
        found = next(measurements)
    assert found.outcome is ERROR
    assert found.message == ALONE["spins"]


def test_a_trace_is_kept_whatever_a_stack_leaves_where_logs_belong(bench):
    with contextlib.closing(
        trace.take(bench.place("cubic").kernel, bench.adapter, [trials(bench, "spoils-logs")], "all")
    ) as traces:
        found, _, folder = next(traces)
        assert found.outcome is OK, found.message
        kept = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert kept >= {"server/qlog/good.qlog", "server/stderr.txt", "client/qlog/good.qlog"}
        assert not any("\x1b" in name or len(name) > 300 for name in kept)
        assert (folder / "server" / "stderr.txt").read_text() == "these are the server's words\n"


def test_bytes_beside_the_connection_are_an_error_in_a_scenario_too(bench):
    names = ("beside", "calls-back", "none")
    settings = [network([{"name": "test", "bytes": sizes()[name]}], FIFO) for name in names]
    batches = [bench.trials("cubic", setting, [1]) for setting in settings]
    beside, back, good = bench.place("cubic").room.run(bench.adapter, batches, threading.Event())
    assert (beside.outcome, back.outcome) == (ERROR, ERROR)
    assert beside.message.startswith("the server of hostile sent beside its connection: ")
    assert back.message == "the server of hostile opened connections itself (1)"
    assert good.outcome is OK, good.message

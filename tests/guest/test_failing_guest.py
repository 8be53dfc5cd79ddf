"""Stacks that fail in guests: one exits, one falls silent, one resets the connection; a sound one does not fail."""

import dataclasses

import kernel_stack
import pytest

from conformance.catalogue import documents
from conformance.commands.measuring import source
from conformance.engine import benches, runs
from conformance.lab import reader
from conformance.model.judging.session import Session, plan
from conformance.model.judging.verdict import Status, ask
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support.console import Console

pytestmark = pytest.mark.guest

PLACE = Cell(10, 20, 0)
BODY = """
    def body(connection, size):
        if {kind!r} == "sound" or size < 1_000_000:  # the guest's first transfer
            return good.zeros(connection, size)
        connection.sendall(bytes(size // 2))
        time.sleep(1)
        if {kind!r} == "exits":
            print("assertion failed: \\x1b[31mcwnd > 0", file=sys.stderr, flush=True)
            os._exit(3)
        if {kind!r} == "hangs":
            time.sleep(1e6)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(connection.detach())
"""


@pytest.fixture
def findings(tmp_path):
    """Return a function that judges a stack of a kind in one cell, and what the results file then holds."""

    def judge(kind):
        stack = kernel_stack.adapter(tmp_path / kind, BODY.format(kind=kind))
        bench = benches.find(benches.Choice(stack=str(stack)))
        zone = documents.zone_of("cubic", profile="atc25")
        session = Session(plan=plan([ask(zone, documents.profile("atc25", PLACE))], trials=5, most_trials=20))
        kept = tmp_path / f"{kind}.jsonl"
        means = benches.Means(results=kept, workers=2, notes=ConsoleNotes(Console()))
        (finding,) = session.findings(source(bench, means, new=session.is_new))
        return finding, store.read(kept)

    return judge


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exits", "the server of exits died with status 3 during the transfer: assertion failed: [31mcwnd > 0"),
        pytest.param("hangs", ": no packet came for 120 s", marks=pytest.mark.thorough),
        pytest.param("resets", "the client of resets ended with status 1: ", marks=pytest.mark.thorough),
    ],
)
def test_a_stack_that_fails_is_said_to_fail_and_quoted(findings, kind, words):
    finding, kept = findings(kind)
    assert (finding.verdict.status, finding.again.status) == (Status.FAILS, Status.FAILS)
    assert words in finding.verdict.reason and finding.verdict.reason.isprintable()
    assert "cubic/linux-tcp/" in finding.verdict.reason
    assert {m.outcome for m in kept} == {Outcome.FAILED} and all(m.settled for m in kept)
    # The control's trials are recorded with what failed, and are no lines of their own.
    assert {m.trial.scheme.stack for m in kept} == {kind}


@pytest.mark.thorough
def test_a_sound_stack_does_not_fail(findings):
    finding, kept = findings("sound")
    assert finding.verdict.status.passes or finding.verdict.status is Status.INCONCLUSIVE
    assert {m.outcome for m in kept} == {Outcome.OK}


@pytest.mark.thorough
def test_a_fault_of_the_emulator_stays_an_error(findings, monkeypatch):
    monkeypatch.setattr(reader.Reader, "_uncalibrated", lambda self, index: "calibration: a delay of 0 ms")
    finding, kept = findings("exits")
    assert finding.verdict.status is Status.ERROR
    assert {m.outcome for m in kept} == {Outcome.ERROR}


@pytest.mark.thorough
def test_without_another_stack_it_is_an_error(findings, monkeypatch):
    monkeypatch.setattr(runs, "beside", lambda bench: None)
    finding, kept = findings("exits")
    assert finding.verdict.status is Status.ERROR and "none is built" in finding.verdict.reason
    assert not any(m.settled for m in kept)
    assert dataclasses.replace(kept[0], control=None) == kept[0]

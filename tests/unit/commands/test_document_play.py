"""`conformance dev document play`: cells become words for the program, and guests' results stand beside its plays."""

import types

import pytest
from helpers import invoke, measurements, of_trial

from conformance.catalogue import documents
from conformance.commands import document_play
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.model.networks.place import Cell
from conformance.results import store
from conformance.support import schema

#: a program that says what it was asked, and plays a utilization of 0.1 for each seed
PROGRAM = """\
#!/bin/sh
echo "$*" >> "$(dirname "$0")/asked"
case "$*" in *no-such*) echo "there is no such deviation" >&2; exit 64;; esac
for seed in 1 2 3; do echo "{\\"seed\\": $seed, \\"utilization\\": 0.$seed, \\"lost_pct\\": $seed}"; done
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    (tmp_path / "document").write_text(PROGRAM)
    (tmp_path / "document").chmod(0o755)
    built = types.SimpleNamespace(build=tmp_path)
    monkeypatch.setattr(document_play.adapter, "load", lambda stack, client: built)
    return tmp_path


def test_a_cell_is_played_as_guests_have_it(program):
    played = document_play.compute("10mbps-20ms-1pct", ["loss-ignored", "no-undo"], 3, options=["queue=bdp:4"])
    assert (program / "asked").read_text().split() == [
        "play", "rate_mbps=10", "rtt_ms=40", "loss_pct=1", "ack_loss_pct=1", "write=0:12500000",
        "called=bbrv3+loss-ignored+no-undo", "seeds=1:3", "queue=bdp:4",
    ]  # fmt: skip
    (row,) = played.rows
    assert (row.utilization, row.lost_pct, row.measured, row.ratio) == (0.2, 2, None, None)
    schema.check("document-play", printed(played), "test")


def test_results_of_guests_in_the_same_profile_stand_beside(program):
    results = store.Store(program / "r.jsonl")
    cell = Cell(10, 20, 1)
    for stack, profile, values in (
        ("document", "packets", [0.2, 0.4, 0.5]), ("document", "identify", [0.7] * 4), ("quinn", "packets", [0.9]),
    ):  # fmt: skip
        for made in measurements(values, cell=cell, algorithm="bbrv3", stack=stack):
            results.add(of_trial(made, setting=documents.profile(profile, cell)))
    done = invoke("dev", "document", "play", "--grid", cell.id, "--results", results.path)
    assert done.exit_code == ExitStatus.DONE, done.output
    assert "utilization 0.200, lost 2.00 %; in guests 0.400, ratio 0.50" in done.stdout


def test_a_deviation_that_nobody_knows_is_one_line(program):
    done = invoke("dev", "document", "play", "--deviation", "no-such")
    assert done.exit_code == ExitStatus.MISUSE
    assert "there is no such deviation" in done.stderr and done.stderr.count("\n") == 1

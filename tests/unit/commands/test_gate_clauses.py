"""`conformance gate --clauses`: what fails, what is on record, and what there was no time for; the room is a fake."""

import json
import xml.etree.ElementTree as xml

import fake_room
import msgspec
import pytest
from helpers import invoke
from test_clause_command import HALVES, VIOLATED, Packets

from conformance.catalogue import clause_record, clauses
from conformance.commands import clause as command, gate_budget
from conformance.model.judging import seeds
from conformance.support import schema

CELLS = "10mbps-20ms-4pct,10mbps-40ms-4pct"


class Both(Packets):
    """A room that makes packets for clauses, of a Reno whose beta is `kind`, and good measurements for cells.

    Without a beta, it makes no packets and waits until it is told to end.
    """

    def run(self, adapter, batches, cancelled):
        for trials in batches:
            if not trials[0].setting.packets:
                yield from fake_room.Room("good").run(adapter, [trials], cancelled)
            elif self.kind:
                yield from super().run(adapter, [trials], cancelled)
            else:
                cancelled.wait(60)


class CutShort(Both):
    """The same, but trials with fresh seeds show the violation in three of five, and then it waits."""

    def run(self, adapter, batches, cancelled):
        for trials in batches:
            for trial in trials:
                number = trial.seed - seeds.JUDGED - seeds.FRESH
                if trial.setting.packets and number >= 5:
                    cancelled.wait(8)  # longer than the repeat may take
                    return
                beta = "0.5" if trial.setting.packets and number in (0, 1) else self.kind
                yield from Both(beta).run(adapter, [[trial]], cancelled)


@pytest.fixture
def run(tmp_path, monkeypatch, front_page):
    """Return a function that runs the gate with one clause, and returns what it did and its gate.json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_chosen", lambda what: [clauses.find(HALVES)])
    monkeypatch.setattr(clause_record, "path", lambda: tmp_path / "record.json")

    def call(beta, *arguments, room=Both):
        fake_room.install(beta, room)
        options = "--grid", CELLS, "--clauses", "--no-why", "--out", "out", *arguments
        done = invoke("gate", "reno", *options)
        assert (tmp_path / "out" / "gate.json").exists(), done.output
        schema.load("gate", tmp_path / "out" / "gate.json")
        return done, json.loads((tmp_path / "out" / "gate.json").read_text())["clauses"]

    return call


def test_a_clause_that_is_kept_passes(run):
    done, found = run("0.5")
    assert done.exit_code == 0 and "clauses: 1 conforms\n" in done.output, done.output
    assert [(one["clause"], one["verdict"], one["known"]) for one in found["judged"]] == [(HALVES, "conforms", False)]


def test_a_clause_that_is_violated_fails_and_is_shown_with_its_evidence(run, tmp_path):
    done, _ = run("0.7", "--annotations")
    assert done.exit_code == 1, done.output
    assert "::error title=reno%3A CL012 violates::above the document's bound: On a loss" in done.output
    assert "violates CL012 (RFC 9002, 7.3.2, MUST): above the document's bound" in done.output
    assert "clause     On a loss" in done.output and "seen       0.7" in done.output
    assert "gate fails: 1 clause violated, nothing unexpected of 4 verdicts" in done.output
    suites = xml.parse(tmp_path / "out" / "junit.xml").getroot()
    assert len(suites.findall("testsuite[@name='clauses']/testcase[@name='CL012']/failure")) == 1


def test_a_violation_on_record_of_the_stack_is_named_and_does_not_fail(run):
    entry = msgspec.structs.replace(VIOLATED, who="another", scheme="reno/fake/1")
    clause_record.record([entry])
    assert run("0.7")[0].exit_code == 1
    clause_record.record([msgspec.structs.replace(entry, who="fake")])
    done, found = run("0.7")
    assert done.exit_code == 0 and "; violated as on record: CL012 (reno)" in done.output, done.output
    assert found["judged"][0]["known"] is True


@pytest.mark.parametrize("strict", [False, True])
def test_a_gate_that_had_no_time_for_any_clause_cannot_tell(run, tmp_path, strict):
    done, found = run("", "--budget", "2s", *(["--fail-inconclusive"] if strict else []))
    assert done.exit_code == 4, done.output
    assert found == {"judged": [], "not_measured": [HALVES]}
    assert "clauses: none measured, 1 not measured in time" in done.output and "no clause decided" in done.output
    suites = xml.parse(tmp_path / "out" / "junit.xml").getroot()
    (case,) = suites.findall("testsuite[@name='clauses']/testcase[@name='CL012']")
    assert case.find("failure" if strict else "skipped").get("type") == "not measured"


@pytest.mark.slow
def test_a_repeat_that_the_budget_cuts_short_leaves_half_of_a_violation_open(run, monkeypatch):
    # The first trials get all the time that they need, however busy the machine is; their repeat never ends.
    monkeypatch.setattr(gate_budget.Budget, "share_s", lambda self, share: lambda kept: 300.0 if kept else 3.0)
    done, found = run("0.7", "--budget", "10m", room=CutShort)
    assert [one["verdict"] for one in found["judged"]] == ["inconclusive"], done.output
    assert done.exit_code == 4


def test_clauses_get_a_share_of_what_is_left():
    assert gate_budget.Budget(None).share_s(0.5)(0.1) is None
    assert 299 < gate_budget.Budget("10m").share_s(0.5)(0.0) <= 300
    assert 269 < gate_budget.Budget("10m").share_s(0.5)(0.1) <= 270

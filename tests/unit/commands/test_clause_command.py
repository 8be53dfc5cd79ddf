"""`conformance clause` lists, shows and judges clauses, with a room that invents packets; pages show the record."""

import dataclasses
import json
import math
import random
import re

import fake_room
import pytest
import record_deviations
import senders
from helpers import invoke, shown
from msgspec.structs import replace

from conformance.catalogue import clause_record, clauses, deviation_record
from conformance.catalogue.clause_record import ClauseEntry, RecordedSample
from conformance.commands import clause as command
from conformance.commands.result import printed
from conformance.model.clauses.verdict import ClauseRule
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting.text import clause as clause_text, clause_table
from conformance.support import paths, schema

PAGES = {"findings-clauses.md": ["rfc9002", "rfc9000", "rfc9438", "rfc5681", "rfc9406"], "bbr-draft.md": ["bbr_draft"]}
HALVES = "CL012"
VIOLATED = ClauseEntry(
    who="somestack", clause=HALVES, scheme="reno/somestack/1.2", verdict=Status.VIOLATES, reason="above", value=0.7,
    interval=[0.69, 0.71], trials=5, seen=RecordedSample(seed=1001, at_s=3.2, packet=2411),
)  # fmt: skip


class Packets(fake_room.Room):
    """A room whose sender is a Reno with random losses; `kind` is its beta."""

    def made(self, trial):
        draw = random.Random(trial.seed)
        lost = frozenset(at for at in range(200, 6000) if draw.random() < 1 / 300)
        sender = senders.Sender(lost=lost, ssthresh=20, beta=float(self.kind))
        kept = senders.packets(sender, one_way_s=0.02, bytes_per_s=1.25e6).to_json()
        metrics = {"bytes": 1, "completion_s": 1.0, "goodput_mbps": 1.0, "utilization": 0.5}
        return Measurement(trial=trial, outcome=Outcome.OK, metrics=metrics, packets=kept, host={"wall_s": 0.1})


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, status=0):
        done = invoke("clause", *arguments, "--format", "json")
        assert done.exit_code == status, done.output
        data = json.loads(done.stdout)
        schema.check(data["schema"].partition("/")[0], data, " ".join(arguments))
        return data

    return call


def test_clauses_are_listed_and_shown(run):
    listed = run("show", "rfc9438")
    assert [one["name"] for one in listed["specifications"]] == ["rfc9438"]
    (draft,) = run("show", "bbr_draft")["specifications"]
    assert draft["not_visible"][0]["section"].startswith("case 6;")
    assert run("show", HALVES)["permitted"] == "at most 0.58"
    for form in (["clause", "show"], ["clause", "show", HALVES], ["dev", "clause", "table", "rfc9002"]):
        assert invoke(*form).exit_code == 0


def test_a_stack_that_halves_conforms_and_one_that_does_not_violates_again_with_fresh_seeds(run):
    fake_room.install("0.5", Packets)
    (judged,) = run("run", HALVES, "--results", "good.jsonl")["clauses"]
    assert judged["verdict"] == "conforms"
    fake_room.install("0.7", Packets)
    (judged,) = run("run", HALVES, "--results", "bad.jsonl", status=1)["clauses"]
    assert judged["verdict"] == "violates" and judged["seen"][0]["packet"] > 0
    text = invoke("clause", "run", HALVES, "--results", "bad.jsonl").output
    assert "violates CL012 (RFC 9002, 7.3.2, MUST): above" in text and "On a loss, NewReno halves" in text


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "CL998"], "there is no clause or document 'CL998'"),
        (["run", "CL030", "--algorithm", "vegas"], "none of these clauses applies"),
        (["show", "rfc1"], "there is no clause or document 'rfc1'"),
        (["run", "CL017", "--trials", "4", "--max-trials", "4"], "can never show"),
    ],
)
def test_a_mistake_is_one_line(run, arguments, says):
    fake_room.install("0.5", Packets)
    done = invoke("clause", *arguments)
    assert done.exit_code == 2 and says in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_what_is_recorded_takes_the_place_of_what_was(tmp_path, monkeypatch):
    monkeypatch.setattr(clause_record, "path", lambda: tmp_path / "record.json")
    old = replace(VIOLATED, who="a", scheme="reno/a/1")
    clause_record.record([old])
    clause_record.record([replace(old, who="b")])
    clause_record.record([replace(old, scheme="reno/a/2", verdict=Status.CONFORMS)])
    assert [(one.who, one.scheme) for one in clause_record.load()] == [("a", "reno/a/2"), ("b", "reno/a/1")]


def test_the_record_is_about_clauses_that_there_are():
    known = {clause.id for clause in clauses.all_clauses()}
    assert {one.clause for one in clause_record.load()} <= known


@pytest.mark.parametrize(("page", "names"), PAGES.items())
def test_pages_say_what_is_recorded(page, names):
    """`python tests/unit/commands/test_clause_command.py` writes them anew."""
    text = (paths.PACKAGE.parent / "docs" / page).read_text()
    assert text == _written(text, names), "run `python tests/unit/commands/test_clause_command.py`"


def _written(text, names):
    chosen = [one for name in names for one in clauses.specifications() if one.name == name]
    begin = f"<!-- generated by `conformance dev clause table {' '.join(names)}` -->"
    end = "<!-- end of what is generated -->"
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    assert mark, f"the page has no {begin} ... {end}"
    lines = clause_table.page(chosen, clause_record.load(), proven=False)
    return "\n".join([before + begin, "", *lines, "", end + after])


#: a row of a page's list of clauses that lack a record: clause, what it lacks, and why
_LACKS = re.compile(r"^\| `([A-Z]+\d+)` \| (failure|pass|either) \| (.{20,}) \|$", re.MULTILINE)


def test_each_clause_has_failed_and_was_kept_by_someone_or_a_page_says_why_not():
    """A clause that no implementation fails may be unable to fail; one that no honest stack keeps may be too strict."""
    record = clause_record.load()
    # Nobody violates a clause that only shows: what is beyond its bound is not judged.
    beyond = {True: "not judged", False: "violates"}
    failed = {one.clause for one in record if one.verdict == beyond[one.about.only_shows]}
    kept = {one.clause for one in record if one.verdict == "conforms" and not one.is_of_mutant}
    draft = clauses.first_for("bbrv3").clauses  # deviations of the document's stack fail its clauses, too
    measured = deviation_record.load().values()
    failed |= {c.id for c in draft if any(record_deviations.side(c, values.get(c.id, ())) for values in measured)}
    kept |= {name for name in deviation_record.load()[deviation_record.HONEST] if not clauses.find(name).once}
    lacks = {
        clause.id: "either" if clause.id not in failed | kept else "failure" if clause.id in kept else "pass"
        for clause in clauses.all_clauses()
        if clause.id not in failed & kept
    }
    rows = _LACKS.findall((paths.PACKAGE.parent / "docs" / "findings-clauses.md").read_text())
    told = {clause: what for clause, what, _ in rows}
    assert len(rows) == len(told)
    assert told == lacks


def test_a_violation_is_shown_with_its_evidence():
    (clause,) = [one for one in clauses.all_clauses() if one.id == HALVES]
    (specification,) = [one for one in clauses.specifications() if one.name == clause.specification]
    lines = clause_table.lines(dataclasses.replace(specification, clauses=(clause,)), [VIOLATED])
    assert any("somestack reno 0.70" in line for line in lines)
    assert any("0.70 (0.69..0.71)" in line and "seed 1001, packet 2411, at 3.200 s" in line for line in lines)
    kept = [replace(VIOLATED, scheme=f"{name}/somestack/1.2", verdict=Status.CONFORMS) for name in ("bbrv1", "cubic")]
    short = clause_table.lines(dataclasses.replace(specification, clauses=(clause,)), [VIOLATED, *kept], proven=False)
    assert any("somestack reno 0.70" in line for line in short) and not any("seed 1001" in line for line in short)
    assert any("| somestack (bbrv1, cubic) |" in line for line in short)


if __name__ == "__main__":
    for page, names in PAGES.items():
        path = paths.PACKAGE.parent / "docs" / page
        path.write_text(_written(path.read_text(), names))


@pytest.mark.parametrize(
    ("violated", "line"),
    [
        ({"reno": ["CL001", "CL017"]}, "read first: CL017 (reno); the same fault may cause CL001, too"),
        ({"reno": ["CL017"], "cubic": ["CL001"]}, None),
        ({"reno": ["CL022", "CL006"]}, None),
    ],
)
def test_what_comes_first_in_a_transfer_is_to_be_read_first(violated, line):
    findings = []
    for algorithm, ids in violated.items():
        for clause in map(clauses.find, ids):
            rule = ClauseRule(clause, algorithm)
            verdict = dataclasses.replace(
                rule.judge({clauses.setting(clause.network): ()}, 1, False), status=Status.VIOLATES
            )
            findings.append(Finding(verdict=verdict, algorithm=algorithm))
    told = shown(clause_text.show_ran, command.ClauseVerdicts(findings=findings, results="r.jsonl"))
    lines = [text for text in told.splitlines() if text.startswith("read first")]
    assert lines == ([line] if line else [])


def test_an_interval_without_ends_is_a_document_too():
    """An interval has no ends if there are fewer than five values, as with few trials."""
    found = clauses.find("BBR10")
    rule = ClauseRule(found, "bbrv3")
    verdict = dataclasses.replace(
        rule.judge({clauses.setting(found.network): ()}, 1, False),
        status=Status.INCONCLUSIVE, value=5.2, interval=(-math.inf, math.inf),
    )  # fmt: skip
    document = printed(command.ClauseVerdicts(findings=[Finding(verdict=verdict)], results="r.jsonl"))
    json.dumps(document, allow_nan=False)
    schema.check("clause-run", document, "test")
    assert document["clauses"][0]["interval"] == [None, None]

"""The catalogue of bugs that stacks had: that its entries can be run, and what its record comes to."""

import msgspec
import pytest
from helpers import refusal, results_file

from conformance.catalogue import bugs, clauses
from conformance.catalogue.bugs import EntryRun, Tier
from conformance.lab import manifest, sources
from conformance.model.clauses import changes
from conformance.model.diagnosis import feature_table
from conformance.reporting.html import defect_pages, site
from conformance.results.source import Source

ENTRIES = bugs.entries()
#: bugs in stacks that no adapter runs are kept for the record
STACKS = {stack.name: stack for stack in manifest.shipped()}


def tier(command, caught=True, named=False, trials=10):
    return Tier(command, caught, ["growth"] if caught else [], "It grows.", named, trials, 1.0)


def test_it_has_most_of_the_bugs_that_are_known_and_some_shams():
    assert sum(not bug.sham for bug in ENTRIES) >= 60
    assert sum(bug.sham for bug in ENTRIES) >= 6


@pytest.mark.parametrize("bug", ENTRIES, ids=lambda bug: bug.id)
def test_an_entry_names_an_adapter_that_takes_its_builds(bug):
    if bug.stack not in STACKS:
        assert bug.unavailable
        return
    about = STACKS[bug.stack]
    assert bug.unavailable or bug.algorithm in about.offered()
    locks = "".join(file.read_text() for file in about.folder.iterdir() if file.name.endswith((".lock", "go.mod")))
    for build in () if bug.unavailable else (bug.buggy, bug.fixed):
        if build.tree:
            assert bug.part in sources.homes(about) or f'"{bug.part}"' in locks or f"/{bug.part} v" in locks
        assert all(f'"{name}"' in locks or f"{name}==" in locks or f"/{name} v" in locks for name in build.versions)


@pytest.mark.parametrize("bug", [bug for bug in ENTRIES if not bug.sham], ids=lambda bug: bug.id)
def test_what_names_a_bug_is_a_clause_or_a_feature(bug):
    known = {clause.id for clause in clauses.all_clauses()}
    for feature in (*feature_table.FEATURES, *changes.COMPARED):
        known |= {feature.name, *(feature_table.label_of(feature, algorithm) for algorithm in ("cubic", "bbrv3"))}
    assert bug.mechanism and bug.links and set(bug.named_by) <= known


def test_an_unknown_entry_is_one_line():
    assert "there is no bug 'QUINN-FD'; did you mean QUINN-FC" in refusal(bugs.chosen, ["QUINN-FD"])


def test_the_cheapest_tier_is_the_one_with_the_fewest_trials_of_those_that_catch():
    run = EntryRun(
        "A-B",
        [],
        "lab",
        [tier("compare", trials=90), tier("clauses", named=True, trials=30), tier("zones", False, trials=3)],
    )
    assert run.cheapest == run.tiers[1] and run.named and run.trials == 123
    assert run.by("clauses", "zones") and not run.by("zones")


def test_the_record_is_kept_entry_by_entry(tmp_path, monkeypatch):
    monkeypatch.setattr(bugs, "folder", lambda: tmp_path)
    old, new = (
        EntryRun("A-B", [("x", "1"), ("y", "2")], "lab", [tier("compare", False)]),
        EntryRun("C-D", [("x", "1"), ("y", "2")], "lab", [tier("zones")]),
    )
    bugs.record([old])
    bugs.record([new])
    bugs.record([EntryRun(old.id, old.builds, "other", old.tiers)])
    assert [(run.id, run.lab) for run in bugs.runs().values()] == [("A-B", "other"), ("C-D", "lab")]


def test_a_bug_that_is_proved_not_to_show_is_counted_apart_unless_something_caught_it():
    bug = next(bug for bug in ENTRIES if not bug.sham)
    proved = msgspec.structs.replace(bug, missed=bugs.Missed("why", "takes", "the branch was taken, packets are equal"))
    for entry, caught, aside in ((bug, False, 0), (proved, False, 1), (proved, True, 0)):
        run = EntryRun(bug.id, [], "lab", [tier("clauses", caught)])
        tally = bugs.Tally.from_runs([entry], {bug.id: run})
        assert (len(tally.aside), len(tally.real)) == (aside, 1 - aside)


def test_at_most_five_bugs_are_set_aside():
    assert sum(bug.missed is not None and bug.missed.proof is not None for bug in ENTRIES) <= 5


@pytest.mark.slow
def test_the_page_has_the_entries_of_the_reports_stacks(tmp_path, monkeypatch):
    bug, missed, *_ = (bug for bug in ENTRIES if bug.stack == "linux-tcp")
    runs = {
        bug.id: EntryRun(bug.id, [], "lab", [tier("compare")]),
        missed.id: EntryRun(missed.id, [], "lab", [tier("zones", False)]),
    }
    monkeypatch.setattr(bugs, "runs", lambda: runs)
    page = defect_pages.bench({"linux-tcp"})
    assert page.of(True) == [(bug, runs[bug.id])] and page.of(False) == [(missed, runs[missed.id])]
    assert page.caught("compare") == 1 and page.caught("zones") == 0 and page.rest == ()
    assert {one.id for one in defect_pages.bench({"linux-tcp", "quinn"}).rest} == {
        e.id for e in ENTRIES if e.stack == "quinn"
    }
    assert defect_pages.bench({"tquic"}) is None
    text = (
        site.write(Source([results_file(tmp_path / "r.jsonl")]), tmp_path / "site").parent / "bugs.html"
    ).read_text()
    assert bug.did in text and "not looked at yet" in text and '<th scope="row"><a href="https://' in text

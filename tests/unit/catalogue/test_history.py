"""The history of stacks: releases in order of version, what changed, and the page that shows it."""

import helpers
import pytest

from conformance.catalogue import history
from conformance.catalogue.history import Release
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import NO_MARGIN, Interval
from conformance.model.networks.place import Cell
from conformance.reporting.html import site
from conformance.results.source import Source

ANYTHING = Interval(low=0.0, high=1.0, bases=(), margin=NO_MARGIN)


def release(version, **clauses):
    verdicts = {name: Status(word) for name, word in clauses.items()}
    return Release(
        stack="made-up", algorithm="reno", version=version, part="made", measured="2026-11-28", clauses=verdicts,
        kinds={},
    )  # fmt: skip


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(history, "path", lambda: tmp_path / "history.json")
    return tmp_path


def test_releases_are_kept_in_order_of_their_numbers_each_once(kept):
    for added in (release("0.10.0"), release("0.9.1", CL001="violates"), release("0.9.1", CL001="conforms")):
        history.add(added)
    first, second = history.load()
    assert (first.version, second.version) == ("0.9.1", "0.10.0")
    assert first.clauses == {"CL001": Status.CONFORMS}
    assert history.before(second, [first, second]) == first and history.before(first, [first, second]) is None


def test_a_release_comes_after_those_before_it():
    versions = ["0.9.0", "0.10.0-alpha.9", "0.10.0-beta.2", "0.10.0-beta.10", "0.10.0", "0.10.1-beta.1"]
    releases = [release(version) for version in versions]
    assert sorted(releases[::-1], key=lambda of: of.order) == releases
    assert history.before(releases[4], releases) == releases[3]


def test_a_change_is_between_two_clear_verdicts():
    old = release("1", CL001="conforms", CL002="violates", CL003="inconclusive", CL004="compatible", CL005="error")
    new = release(
        "2", CL001="violates", CL002="fails", CL003="violates", CL004="conforms", CL005="conforms", CL006="fails"
    )
    (change,) = history.changes(old, new)
    assert (change.asked, change.before, change.now) == ("CL001", Status.CONFORMS, Status.VIOLATES)
    assert [change.now for change in history.changes(new, old)] == [Status.CONFORMS]


def test_a_kind_has_the_worst_verdict_of_its_cells():
    def verdict(cell, status):
        return Verdict(status=status, zone_id="reno/heatmap", place=cell, permitted=ANYTHING, reason=""), "utilization"

    kinds = history.by_kind([
        verdict(Cell(10, 20, 0), Status.CONFORMS), verdict(Cell(10, 40, 0), Status.VIOLATES),
        verdict(Cell(10, 20, 1), Status.INCONCLUSIVE), verdict(Cell(10, 40, 1), Status.CONFORMS),
        verdict(Cell(10, 20, 5), Status.NOT_JUDGED),
    ])  # fmt: skip
    assert sorted(kinds.values()) == [Status.INCONCLUSIVE, Status.VIOLATES]


@pytest.mark.slow
def test_the_page_says_what_changed_and_which_verdicts_speak_against_a_release(kept):
    history.add(release("0.9.1", CL001="conforms", CL002="conforms"))
    history.add(release("0.10.0", CL001="violates", CL002="conforms", CL003="conforms"))
    helpers.results_file(kept / "r.jsonl")
    site.write(Source([kept / "r.jsonl"]), kept / "site", with_history=True)
    page = (kept / "site" / "history.html").read_text()
    assert "<strong>made 0.10.0</strong>, since 0.9.1: CL001 conforms, now violates" in page
    assert "made 0.10.0<br><small>measured on 2026-11-28</small>" in page
    assert "<td>2 of 2</td><td>1 of 2</td>" in page  # the older release was not asked CL003
    assert "CL002" not in page and "History</a>" in (kept / "site" / "index.html").read_text()
    site.write(Source([kept / "r.jsonl"]), kept / "plain")
    assert not (kept / "plain" / "history.html").exists()

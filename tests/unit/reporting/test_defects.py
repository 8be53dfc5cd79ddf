"""Defects that the suite found: each is shown by a verdict on record, and has a page with a text for maintainers."""

import types

import pytest

from conformance.catalogue import defects
from conformance.lab import manifest
from conformance.reporting import heatmaps
from conformance.reporting.html import clause_pages, defect_pages
from conformance.results import store
from conformance.support import paths

DEFECTS = defects.load()


def test_ten_defects_are_open_and_each_is_of_an_adapter():
    offered = {stack.name: stack.algorithms for stack in manifest.shipped()}
    assert sum(defect.mended_in is None for defect in DEFECTS) >= 10
    assert len({defect.id for defect in DEFECTS}) == len(DEFECTS)
    assert all(defect.algorithm in offered[defect.stack] for defect in DEFECTS)


def test_a_report_has_pages_of_the_defects_that_its_verdicts_show():
    _, clauses = clause_pages.of({"aioquic"})
    page, moved = defect_pages.pages([], clauses)
    assert moved.name == "defect-aioquic-move.html" and "CL084" in moved.where
    assert page.name == "defect-aioquic-unused-window.html" and page.scheme.startswith("reno/aioquic/")
    assert "CL005" in page.where and "26.68" in page.measured and "3.2" in page.permitted
    for part in (page.defect.where, page.defect.mend, "contradicts RFC 9002, section 7.8", *page.defect.commands):
        assert part in page.letter
    assert defect_pages.pages([], clause_pages.of({"linux-tcp"})[1]) == ()


def labels(pages, stack, algorithm, *, violates=True):
    """Return what a report's front page says of a scheme, without the words after the colon."""
    scheme = types.SimpleNamespace(stack=stack, algorithm=algorithm)
    return [cause.label for cause in defect_pages.causes(pages, scheme, violates=violates)]


def test_a_violation_has_the_cause_that_was_read_or_the_likeliest_by_clauses_or_none():
    pages = defect_pages.pages([], clause_pages.of({"aioquic"})[1])
    # A verdict of zones is not explained by what a clause alone shows.
    assert labels(pages, "aioquic", "reno", violates=False) == ["Defect", "Defect"]
    assert labels(pages, "aioquic", "reno") == ["Cause not known", "Defect", "Defect"]
    assert labels([], "linux-tcp", "cubic", violates=False) == []
    (by_clauses,) = defect_pages.causes(
        [], types.SimpleNamespace(stack="picoquic", algorithm="bbrv3"), violates=True
    )  # fmt: skip
    assert by_clauses.label == "Likeliest by clauses" and by_clauses.line.startswith("the draft's 5.")
    assert ", as " in by_clauses.line and "http" not in by_clauses.line
    assert by_clauses.href == clause_pages.of_stack("picoquic")
    (noq,) = (defect for defect in DEFECTS if defect.stack == "noq")
    read = defect_pages.DefectPage(defect=noq, scheme="", where="", measured="", permitted="")
    assert labels([read], "noq", "bbrv3") == ["Likeliest cause"]


def test_a_letter_does_not_say_that_a_document_permits_what_a_zone_permits():
    (reno,) = (defect for defect in DEFECTS if defect.id == "DQUIC-RENO-LOSS")
    page = defect_pages.DefectPage(defect=reno, scheme="s", where="there", measured="0.9", permitted="0.1 to 0.2")
    permitted = "Permitted by our zone (its reference, plus margin): 0.1 to 0.2"
    assert f"{permitted}; contradicts RFC 9002, sections 7.3.2 and 7.6." in page.letter


def test_a_letter_says_where_no_document_says_otherwise():
    (short,) = (defect for defect in DEFECTS if defect.id == "HAPROXY-RENO-SHORT")
    page = defect_pages.DefectPage(defect=short, scheme="s", where="there", measured="0.9", permitted="0.1 to 0.2")
    assert page.source == "" and "contradicts" not in page.letter and "mend" not in page.letter
    assert "0.1 to 0.2; no document that we know says otherwise." in page.letter


@pytest.mark.slow
@pytest.mark.parametrize("stack", sorted({defect.stack for defect in DEFECTS}))
def test_published_lines_and_recorded_clauses_show_each_defect(stack):
    path = paths.PACKAGE.parent / "reports" / "published" / f"{stack}.jsonl.xz"
    measured = list(store.read(path))
    series = heatmaps.drawn(measured, or_none=True).series
    pages = defect_pages.pages(series, clause_pages.of({stack})[1])
    assert [page.defect.id for page in pages] == [defect.id for defect in DEFECTS if defect.stack == stack]
    for page in pages:
        assert page in defect_pages.of_scheme(pages, next(
            m.trial.scheme for m in measured if m.trial.scheme.algorithm == page.defect.algorithm
        ))  # fmt: skip

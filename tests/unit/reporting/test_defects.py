"""Defects that the suite found: each is shown by a verdict on record, and has a page with a text for maintainers."""

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
    (page,) = defect_pages.pages([], clauses)
    assert page.name == "defect-aioquic-unused-window.html" and page.scheme.startswith("reno/aioquic/")
    assert "CL005" in page.where and "26.68" in page.measured and "3.2" in page.permitted
    for part in (page.defect.where, page.defect.mend, page.defect.source, *page.defect.commands):
        assert part in page.letter
    assert defect_pages.pages([], clause_pages.of({"linux-tcp"})[1]) == ()


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

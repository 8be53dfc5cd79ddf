"""Prepare the site's pages of studies: each figure, drawn anew, with the claims about it, and then other claims."""

import dataclasses
import math
from collections.abc import Sequence

import markupsafe

from conformance.catalogue import references, studies
from conformance.model.groups import grouped
from conformance.model.studies import claims, outcome, study_results
from conformance.model.studies.claims import ClaimVerdict, Estimate, JudgedClaim, Lookup, NotSeen
from conformance.model.studies.figure import Figure
from conformance.model.studies.outcome import Judgment
from conformance.model.studies.study import Claim, Study
from conformance.model.trials.trial import Measurement
from conformance.reporting import study_figures
from conformance.reporting.text import study as study_text
from conformance.support import extras

_INTERVALS = "Medians with their confidence intervals"
_CAPTIONS = {
    "curves": _INTERVALS, "bars": _INTERVALS, "heatmap": "Medians", "cdf": "All trials taken together",
    "series": "The first trial", "table": "",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClaimRow:
    """A claim as a page shows it."""

    claim: Claim
    judged: JudgedClaim
    findings: tuple[str, ...]

    @property
    def remark(self) -> str:
        """Why the claim is not judged, or the likeliest cause of a difference."""
        if self.judged.verdict is ClaimVerdict.DIFFERS and self.claim.difference:
            return f"Likeliest cause: {self.claim.difference}."
        return self.judged.why or ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Names of columns, and rows of (name, cells); a cell is (what was seen, what was published)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Section:
    """A figure, drawn if anything of it was measured, with the claims about it; or the claims about no figure."""

    figure: Figure | None
    drawing: markupsafe.Markup | None
    rows: tuple[ClaimRow, ...]
    table: Table | None = None

    @property
    def caption(self) -> str:
        """What is drawn, in words."""
        if self.figure is None:
            return ""
        what = _CAPTIONS[self.figure.draws]
        held = self.figure.published or any(cell.published is not None for cell in self.figure.cells)
        published = held and what == _INTERVALS  # other figures do not draw them
        return what + ("; hollow marks are published values." if published else ".")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Page:
    """A study's page: all that the results say of the study."""

    study: Study
    judgment: Judgment
    schemes: tuple[str, ...]
    measured: int
    #: how many further points are known from references of zones
    referenced: int
    sections: tuple[Section, ...]

    @property
    def name(self) -> str:
        """The page's file name."""
        return f"study-{self.study.name}.html"

    @property
    def rows(self) -> Sequence[ClaimRow]:
        """All claims, in the document's order."""
        order = {claim.id: at for at, claim in enumerate(self.study.claims)}
        return sorted((row for section in self.sections for row in section.rows), key=lambda row: order[row.claim.id])

    @property
    def counts(self) -> Sequence[tuple[str, int]]:
        """How many claims have each verdict."""
        return [(str(verdict), number) for verdict, number in self.judgment.counts.items()]


def totals(pages: Sequence[Page]) -> dict[str, int]:
    """Return how many claims of all pages have each verdict."""
    return {str(verdict): sum(page.judgment.counts[verdict] for page in pages) for verdict in ClaimVerdict}


def pages(measurements: Sequence[Measurement]) -> list[Page]:
    """Return a Page for each study that ships, if any study's smoke tier was measured for an algorithm; else none.

    So cells of a grid that happen to be points of a study make no page, and if there are pages, no claim is left out.
    Raises UserError.
    """
    measured_under = {measurement.setting.profile for measurement in measurements}
    by_name = {study.name: (study, study_results.of(study, measurements)) for study in studies.about(measured_under)}
    if not any(_is_there(study, held.measured) for study, held in by_name.values()):
        return []
    rest = (
        (study, study_results.of(study, ())) for study in map(studies.find, studies.files().keys() - by_name.keys())
    )
    every = by_name | {study.name: (study, held) for study, held in rest}
    return [_page(*every[name]) for name in studies.files()]


def _page(study: Study, held: study_results.StudyMeasurements) -> Page:
    known = references.of(study)
    judgment = outcome.judge(study, held.measured, references=known)
    look = outcome.looker(study, held.measured, references=known)
    rows = [
        ClaimRow(claim=claim, judged=judged, findings=tuple(study_text.findings(judged)) if judged.judged else ())
        for claim, judged in judgment.claims
    ]
    sections = [
        Section(
            figure=figure,
            drawing=_drawing(figure, held.measured, look),
            table=table_of(figure, look) if figure.draws == "table" else None,
            rows=tuple(row for row in rows if row.claim.figures[:1] == (figure.id,)),
        )
        for figure in study.figures
    ]
    rest = Section(figure=None, drawing=None, rows=tuple(row for row in rows if not row.claim.figures))
    return Page(
        study=study, judgment=judgment, schemes=held.schemes,
        measured=outcome.known(held.measured),
        referenced=outcome.referenced(held.measured, known),
        sections=(*sections, rest),
    )  # fmt: skip


def _is_there(study: Study, measured: outcome.MeasuredPoints) -> bool:
    """Return whether all points of the smoke tier were measured for at least one algorithm."""
    tiers = grouped(
        ((p.stack, p.algorithm), study_results.anything_known(measured.get(p, ()))) for p in study.points["smoke"]
    )
    return any(map(all, tiers.values()))


def _drawing(figure: Figure, measured: outcome.MeasuredPoints, look: claims.Lookup) -> markupsafe.Markup | None:
    if figure.draws == "table":
        return None
    rows = study_figures.rows(figure, measured, look)
    if not rows or not extras.installed("figures"):
        return None
    from conformance.reporting.html import study_charts

    return markupsafe.Markup(study_charts.svg(figure, rows))  # safe: it has numbers and our own words only


def table_of(figure: Figure, look: Lookup) -> Table | None:
    """Return a figure as a Table; None if nothing of it was seen."""
    estimates = {cell: look(cell.quantity) for cell in figure.cells}
    if not any(isinstance(estimate, Estimate) for estimate in estimates.values()):
        return None
    words = grouped(
        (cell.row, (_seen(estimate), "" if cell.published is None else f"{cell.published:g}"))
        for cell, estimate in estimates.items()
    )
    columns = dict.fromkeys(cell.column for cell in figure.cells)
    return Table(columns=tuple(columns), rows=tuple((row, tuple(cells)) for row, cells in words.items()))


def _seen(estimate: Estimate | NotSeen) -> str:
    if not isinstance(estimate, Estimate):
        return "not measured"
    bounds = (
        ""
        if estimate.low == estimate.high or math.isinf(estimate.high - estimate.low)
        else f" ({estimate.low:.4g} to {estimate.high:.4g})"
    )
    return f"{estimate.median:.4g}{bounds}"

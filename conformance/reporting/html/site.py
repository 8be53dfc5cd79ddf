"""Build the site from result lines and zones alone: static pages that open from disk, without network or script.

No page contains the time, so the same results give the same bytes. There is a page for each scheme, and one for each of
its bandwidths with all of its cells: 1,500 pages of one cell each would be as large, and harder to search and print.
"""

import collections
import dataclasses
import functools
import pathlib
import types
from collections.abc import Iterator, Mapping, Sequence

import jinja2
import markupsafe

from conformance import __version__
from conformance.catalogue import clauses
from conformance.model.groups import grouped
from conformance.model.judging.verdict import Status, worst
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point, exact
from conformance.model.trials.trial import CLIENT, Scheme, is_in_kernel
from conformance.reporting import heatmaps, marks, naming, recorded, rerun
from conformance.reporting.heatmaps import CellResult, Series
from conformance.reporting.html import (
    cell_page,
    clause_pages,
    colours,
    compare,
    defect_pages,
    heatmap_table,
    history_page,
    points_page,
    rfc9743,
    slugs,
    split_page,
    study_page,
)
from conformance.reporting.text import markdown
from conformance.reporting.tools import badge, export
from conformance.results.source import Source
from conformance.support import extras, files, paths
from conformance.support.console import printable

#: {(zone's id, cell or point): the cause of a violation, in words}
Blamed = Mapping[tuple[str, Point], str]


def write(
    source: Source, target: pathlib.Path, blamed: Blamed = types.MappingProxyType({}), with_history: bool = False
) -> pathlib.Path:
    """Write the site of a Source into the folder `target`; return the path of its front page. Raises UserError.

    `with_history`: also a page of all releases that are on record.
    """
    studies = study_page.pages(source.measurements)
    site = _Site(heatmaps.drawn(source.measurements, or_none=bool(studies)), source, blamed, studies, with_history)
    with files.folder(target, "choose another --out") as temporary:
        for name, content in site.files():
            files.write(temporary / name, content)
    return target / "index.html"


class _Site:
    def __init__(
        self, drawn: heatmaps.Drawn, source: Source, blamed: Blamed, studies: Sequence[study_page.Page],
        with_history: bool,
    ) -> None:  # fmt: skip
        self._drawn, series, self._points = drawn, drawn.series, drawn.rows
        self._series, self._source, self._blamed, self._studies = series, source, blamed, studies
        judged = {s.scheme.algorithm for s in series if s.verdict is not Status.NOT_JUDGED}
        algorithms = dict.fromkeys(s.scheme.algorithm for s in series)
        self._algorithms = sorted(algorithms, key=lambda name: (name not in judged, _place(name)))
        main = [name for name in self._algorithms if name in judged] or self._algorithms
        stacks = {m.scheme.stack for m in source.measurements}
        self._documents, self._clauses = clause_pages.of(stacks)
        self._bugs = defect_pages.bench(stacks)
        self._history = history_page.all_stacks() if with_history else []
        self._defects = defect_pages.pages(series, self._clauses)
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(paths.data("reports", "templates")),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        self._predicted = split_page.of_series(series)
        self._names = naming.labels([*(s.scheme for s in series), *(m.scheme for m in source.measurements)])
        self._environment.globals |= {
            "algorithms": self._algorithms,
            "main_algorithms": main,
            "judged": [s for s in series if s.verdict is not Status.NOT_JUDGED],
            "tally": self._tally(references=False),
            "references": self._tally(references=True),
            "violated_by": lambda scheme: len(self._violated(scheme).rows),
            "clauses": self._clauses,
            "documents": self._documents,
            "document_page": clause_pages.of_document,
            "stack_page": clause_pages.of_stack,
            "has_split": bool(self._predicted),
            "bugs": self._bugs,
            "history": self._history,
            "defects": self._defects,
            "causes_of": self._causes,
            "studies": self._studies,
            "study_totals": study_page.totals(self._studies),
            "of_points": self._points,
            "version": __version__,
            "result_files": [f"{file.name} ({file.trials} lines, SHA-256 {file.digest}…)" for file in source.files],
            "labs": sorted({s.utilization.lab_digest for s in series}),
            "kernels": sorted({f"Linux {s.scheme.kernel_release} ({s.scheme.kernel_digest})" for s in series}),
            "stacks": sorted({f"{s.scheme.stack} {s.scheme.stack_version} ({s.scheme.stack_digest})" for s in series}),
            "profiles": sorted({s.utilization.settings for s in series}),
            "trials": sum(file.trials for file in source.files),
            "looks": marks.LOOKS
            | dict.fromkeys((recorded.NOT_VISIBLE, recorded.UNASKED), marks.Look(marks.QUIET, "·")),
            "metrics": METRICS,
            "scales": {name: f"{metric.full_scale:g}{metric.suffix}" for name, metric in METRICS.items()},
            "more_digits": heatmap_table.more_digits,
            "small": heatmap_table.small,
            "how_far": heatmap_table.how_far,
            "full_distance": f"{colours.FULL_DISTANCE:g}",
            "slug": slugs.of_series,
            "label": self._names.__getitem__,
            "anchor": cell_page.anchor,
            "compared": {a for a in self._algorithms if len(self._of(a)) > 1},
            "algorithm_page": algorithm_page,
            "title_of": title_of,
            "own_version": own_version,
            "margins_of": lambda zone: naming.margins({place.id: of for place, of in zone.intervals.items()}),
            "due_to": self._due_to,
            "first_for": self._first_for,
            "unjudged": unjudged,
        }

    def _first_for(self, scheme: Scheme) -> clause_pages.Part:
        """Return what is on record of a scheme by the document that judges its algorithm before zones do, if any."""
        if (first := clauses.first_for(scheme.algorithm)) is None:
            return clause_pages.Part(rows=())
        return self._clauses.of(stack=scheme.stack, algorithm=scheme.algorithm, specification=first)

    def _violated(self, scheme: Scheme) -> clause_pages.Part:
        """Return the clauses on record that a scheme violates."""
        return self._clauses.of(stack=scheme.stack, algorithm=scheme.algorithm, status=Status.VIOLATES)

    def _tally(self, *, references: bool) -> "_Tally":
        """Count the series that zones judge, either those of Linux's own TCP or all others.

        As in docs/matrix.md, a clause of a document that judges the algorithm before zones do counts as they do.
        """
        counted = [
            s for s in self._series if s.verdict is not Status.NOT_JUDGED and is_in_kernel(s.scheme.stack) is references
        ]
        worst_of = {id(s): worst([s.verdict, *self._first_for(s.scheme).decided]) for s in counted}
        passing = [s for s in counted if worst_of[id(s)].passes]
        violating = sum(s.verdict.against for s in counted)
        return _Tally(
            all=len(counted),
            passing=len(passing),
            breaking=sum(bool(self._violated(s.scheme).rows) for s in passing),
            violating=violating,
            by_clauses=sum(status.against for status in worst_of.values()) - violating,
        )

    def _causes(self, series: Series) -> list[defect_pages.CauseLine]:
        first = self._first_for(series.scheme)
        violates = Status.VIOLATES in (series.verdict, *(row.status for row in first.rows))
        return defect_pages.causes(self._defects, series.scheme, violates=violates)

    def _due_to(self, result: CellResult) -> str | None:
        """Return the cause that was found for a violation; None if none was looked for, or there is no violation."""
        if result.verdict is None or not result.status.against:
            return None
        return self._blamed.get((result.verdict.zone_id, result.cell))

    def _of(self, algorithm: str) -> list[Series]:
        return [s for s in self._series if s.scheme.algorithm == algorithm]

    def _render(self, template: str, **context: object) -> bytes:
        return self._environment.get_template(template).render(**context).encode()

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield (name, content) of every file."""
        groups = [(algorithm, self._of(algorithm)) for algorithm in self._algorithms]
        yield "style.css", self._style()
        yield "index.html", self._render("index.html", groups=groups, stacks_by_algorithm=self._overview())
        yield (
            "rfc9743.html",
            self._render("rfc9743.html", answers=rfc9743.answers(self._series, self._names, self._source.measurements)),
        )
        yield from self._clause_pages()
        lists = {"bugs": self._bugs, "history": self._history, "defects": self._defects, "studies": self._studies}
        for name, entries in lists.items():
            if entries:
                yield f"{name}.html", self._render(f"{name}.html")
        for defect_page in self._defects:
            yield defect_page.name, self._render("defect.html", page=defect_page)
        for page in self._studies:
            yield page.name, self._render("study.html", page=page)
        if self._predicted:
            yield "split.html", self._render("split.html", predicted=self._predicted)
        for algorithm, series in groups:
            if len(series) > 1:
                yield algorithm_page(algorithm), self._compare(algorithm, series)
        for shown in self._series:
            yield f"{slugs.of_series(shown)}.html", self._scheme(shown)
            for bandwidth in shown.bandwidths:
                yield _cells_page(shown, bandwidth), self._cells(shown, bandwidth)
        parquet = extras.installed("parquet")
        if self._points:
            yield "shared.html", self._shared()
        yield "data.html", self._render("data.html", columns=export.columns(), parquet=parquet)
        yield "data/summary.json", export.summary_json(self._series, self._source.files)
        yield "data/summary.md", markdown.render(self._series, of_points=self._points).encode()
        yield "data/badge.json", badge.endpoint(self._drawn)
        yield "data/badge.svg", badge.svg(self._drawn)
        yield "data/cells.csv", export.csv_bytes(self._series)
        if parquet:
            yield "data/cells.parquet", export.parquet_bytes(self._series)
        yield "data/summary.schema.json", (paths.PACKAGE / "schemas" / "summary.json").read_bytes()

    def _shared(self) -> bytes:
        """Return the page of points, with those that have a verdict: rows without one tell a reader nothing."""
        verdicts = [status for status in Status if status.decided]
        rows = sorted(
            (row for row in self._points if row.status in verdicts), key=lambda row: verdicts.index(row.status)
        )
        others = collections.Counter(row.status for row in self._points if row.status not in verdicts)
        drawn = list(points_page.drawn(rows or self._points, self._source))
        only_kernel = all(is_in_kernel(row.scheme.stack) for row in rows)
        return self._render("shared.html", told=rows, others=others, drawn=drawn, only_kernel=only_kernel)

    def _clause_pages(self) -> Iterator[tuple[str, bytes]]:
        if not self._clauses.rows:
            return
        violations = self._clauses.of(status=Status.VIOLATES)
        of_musts = [stack for stack in violations.stacks if violations.of(stack=stack).musts]
        yield "clauses.html", self._render("clauses.html", violating=violations.stacks, violating_must=of_musts)
        for document in self._documents:
            yield clause_pages.of_document(document), self._render("clause_document.html", document=document)
        for stack in self._clauses.stacks:
            yield clause_pages.of_stack(stack), self._render("clause_stack.html", stack=stack)

    def _style(self) -> bytes:
        text = (paths.data("reports", "templates") / "style.css").read_text(encoding="utf-8")
        return f"{text}\n{colours.css()}\n".encode()

    def _overview(self) -> dict[str, dict[str, list[Series]]]:
        """Return {stack: {algorithm: [series]}}: the table on the front page."""
        by_stack = grouped((series.scheme.stack, series) for series in self._series)
        return {s: grouped((series.scheme.algorithm, series) for series in of) for s, of in sorted(by_stack.items())}

    def _scheme(self, series: Series) -> bytes:
        href = functools.partial(_href, series)
        panels = [
            (heatmap, [(b, heatmap_table.of_bandwidth(heatmap, b, href)) for b in series.bandwidths])
            for heatmap in series.heatmaps
        ]
        return self._render(
            "scheme.html", series=series, panels=panels, outside=_outside(series), why=rerun.why(series)
        )

    def _cells(self, series: Series, bandwidth: float) -> bytes:
        cells = [cell for cell in series.cells if cell.bandwidth_mbps == bandwidth]
        grid = heatmap_table.of_bandwidth(series.utilization, bandwidth, lambda cell: f"#{cell_page.anchor(cell)}")[0]
        shown = [cell_page.of_cell(series, cell, self._source) for cell in cells]
        return self._render(
            "cells.html",
            series=series,
            bandwidth=bandwidth,
            grid=grid,
            columns=cell_page.columns(),
            cells=shown,
            with_extremes=any(
                line.style in ("lowest", "highest")
                for detail in shown
                for panel in detail.panels
                for line in panel.lines
            ),
        )

    def _compare(self, algorithm: str, series: Sequence[Series]) -> bytes:
        sections = [(section, _figures(section)) for section in compare.sections(series)]
        return self._render("compare.html", algorithm=algorithm, sections=sections, href=_href)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tally:
    """How many series violate zones, how many only clauses, how many surely neither, and of these how many break other
    clauses (`breaking`).
    """

    all: int
    passing: int
    breaking: int
    violating: int
    by_clauses: int


def _shown(value: object) -> object:
    """Return text with control and bidirectional characters escaped; our own markup and numbers are unchanged."""
    return printable(value) if isinstance(value, str) and not isinstance(value, markupsafe.Markup) else value


def _figures(section: compare.ComparedSection) -> list[markupsafe.Markup]:
    """Return a section's charts; none if the extra `figures`, which draws them, is not installed."""
    if not extras.installed("figures"):
        return []
    from conformance.reporting import charts

    # Safe: they have numbers and our own words only.
    return [markupsafe.Markup(charts.svg(charts.comparison(part))) for part in section.parts]


#: the algorithms that people look for first
_FIRST = ("cubic", "reno", "bbrv3", "bbrv2", "bbrv1")


def _place(algorithm: str) -> tuple[int, str]:
    """Return the place of an algorithm among others: those of _FIRST come first."""
    return _FIRST.index(algorithm) if algorithm in _FIRST else len(_FIRST), algorithm


def unjudged(all_series: Sequence[Series]) -> list[Series]:
    """Return the series that no zone judges of schemes of which zones judge others: networks of clauses."""
    schemes = {series.scheme for series in all_series if series.verdict is not Status.NOT_JUDGED}
    return [s for s in all_series if s.verdict is Status.NOT_JUDGED and s.scheme in schemes]


def own_version(scheme: Scheme) -> str:
    """Return the stack's version without that of the client it is tested with, which adapter.load() appends."""
    return scheme.stack_version.split(CLIENT)[0]


def title_of(algorithm: str, all_series: Sequence[Series]) -> str:
    """Return the algorithm with its version as the zones say, or only its name if there is no zone."""
    zones = [s.utilization.zone for s in all_series if s.utilization.zone]
    return zones[0].algorithm_version if zones else algorithm


def algorithm_page(algorithm: str) -> str:
    return f"compare-{slugs.of_name(algorithm)}.html"


def _cells_page(series: Series, bandwidth: float) -> str:
    return f"{slugs.of_series(series)}-{exact(bandwidth)}mbps.html"


def _href(series: Series, cell: Cell) -> str:
    return f"{_cells_page(series, cell.bandwidth_mbps)}#{cell_page.anchor(cell)}"


def _outside(series: Series) -> list[tuple[str, CellResult, str]]:
    """Return (metric, result, link) of the cells that neither conform nor are compatible, the worst first."""
    outside = [
        (heatmap.metric, result, _href(series, result.cell))
        for heatmap in series.heatmaps
        for result in heatmap.results.values()
        if not (result.status.passes or result.status is Status.NOT_JUDGED) and not series.is_told(heatmap, result)
    ]
    return sorted(outside, key=lambda item: heatmaps.worst_first(item[1]))

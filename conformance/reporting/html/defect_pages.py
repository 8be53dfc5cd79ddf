"""Prepare the site's pages of defects, and the line that says why a stack violates.

A page has what is wrong in a stack, what shows it, and a text for who maintains it.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from conformance.catalogue import bugs, clause_record, clauses, defects, likely_faults
from conformance.catalogue.bugs import Tally
from conformance.catalogue.defects import Defect
from conformance.model.judging.verdict import Status
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Scheme
from conformance.reporting.heatmaps import Series
from conformance.reporting.html import clause_pages, slugs
from conformance.reporting.html.clause_pages import Part


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefectPage:
    """A defect with the verdict of a report that shows it. `scheme`: what was measured, `where`: in which network."""

    defect: Defect
    scheme: str
    where: str
    measured: str
    permitted: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"defect-{slugs.of_name(self.defect.id.lower())}.html"

    @property
    def line(self) -> str:
        """What is wrong, in a line, with the version that mended it."""
        mended = f" (mended in {self.defect.mended_in})" if self.defect.mended_in else ""
        return self.defect.title + mended

    @property
    def permitted_by(self) -> str:
        """What permits: a clause is read from the document, but a zone is measured."""
        if self.defect.shows.zone:
            return "Permitted by our zone (its reference, plus margin)"
        return "Permitted by our clause (our reading of the document)"

    @property
    def source(self) -> str:
        """The document that says otherwise, and its section; "" if none does."""
        stated = self.defect.source or ""
        document, _, section = stated.partition(", ")
        if not section[:1].isdigit():
            return stated
        return f"{document}, section{'s' if ' and ' in section else ''} {section}"

    @property
    def remedy(self) -> str:
        """What its last text says: where no document says otherwise, nothing is to be mended."""
        return "What would mend it" if self.source else "What would be inside the zone"

    @property
    def letter(self) -> str:
        """A text for the stack's maintainers, in Markdown."""
        d = self.defect
        against = f"contradicts {self.source}" if self.source else "no document that we know says otherwise"
        commands = "\n".join(f"    {command}" for command in d.commands)
        parts = (
            f"# {d.title}",
            f"We measure congestion control in emulated networks, and found this in {self.scheme}.",
            f"**What we measured.** {self.where}: {self.measured}. {self.permitted_by}: {self.permitted}; {against}.",
            f"**What packets show.** {d.packets}",
            f"**Why.** `{d.where}`: {d.cause}",
            f"**{self.remedy}.** {d.mend}",
            f"To see it on Linux, without root (cc-conformance):\n\n{commands}",
        )
        return "\n\n".join(parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CauseLine:
    """Why a stack violates, or what else is wrong in it: a line, and the page that says more, if one does."""

    label: str
    line: str = ""
    href: str = ""


def pages(series: Sequence[Series], recorded: Part) -> tuple[DefectPage, ...]:
    """Return the pages of all defects that a report's verdicts show. Raises UserError."""
    return tuple(page for defect in defects.load() for page in _page(defect, series, recorded))


def of_scheme(pages: Iterable[DefectPage], scheme: Scheme) -> list[DefectPage]:
    """Return the pages of the defects of a scheme."""
    return [page for page in pages if (page.defect.stack, page.defect.algorithm) == (scheme.stack, scheme.algorithm)]


def causes(pages: Iterable[DefectPage], scheme: Scheme, *, violates: bool) -> list[CauseLine]:
    """Return what is known to be wrong in a scheme, and why it violates, as far as that is known. Raises UserError."""
    defects_of = of_scheme(pages, scheme)
    # What only a clause shows does not explain the verdict of zones.
    explains = {page.name for page in defects_of if page.defect.shows.zone}
    listed = [
        CauseLine(label="Likeliest cause" if page.name in explains else "Defect", line=page.line, href=page.name)
        for page in sorted(defects_of, key=lambda page: page.name not in explains)
    ]
    if explains or not violates:
        return listed
    if clauses.first_for(scheme.algorithm):
        measured = clause_record.measured(scheme.stack, scheme.algorithm, newest=True)
        for fault in likely_faults.by_chapter(measured)[:1]:
            href = clause_pages.of_stack(scheme.stack)
            return [CauseLine(label="Likeliest by clauses", line=f"the draft's {fault}", href=href), *listed]
    return [CauseLine(label="Cause not known"), *listed]


def _page(defect: Defect, series: Sequence[Series], recorded: Part) -> Iterator[DefectPage]:
    """Yield a defect's page, if the report has a verdict against the stack where the defect shows."""
    shows = defect.shows
    for row in recorded.of(stack=defect.stack, algorithm=defect.algorithm, status=Status.VIOLATES).rows:
        if row.clause.id == shows.clause:
            yield DefectPage(
                defect=defect, scheme=row.entry.scheme, permitted=row.entry.about.permitted,
                where=f"Clause {row.clause.id} ({row.clause.network.words})",
                measured=f"{row.clause.observable.title}: {row.measured}",
            )  # fmt: skip
    for heatmap in (heatmap for shown in series for heatmap in shown.judged):
        if (heatmap.scheme.stack, heatmap.scheme.algorithm) != (defect.stack, defect.algorithm) or shows.place is None:
            continue
        cell = heatmap.results.get(Cell.parse(shows.place))
        # Transfers that never end are errors.
        wrong = cell and (cell.status.against or cell.status is Status.ERROR)
        if cell and cell.verdict and cell.permitted and cell.verdict.zone_id == shows.zone and wrong:
            metric = METRICS[heatmap.metric]
            yield DefectPage(
                defect=defect, scheme=heatmap.scheme.id, where=f"Zone {shows.zone} at {shows.place}",
                measured=f"{metric.title} {metric.text(cell.value)}",
                permitted=f"{metric.text(cell.permitted.low)} to {metric.text(cell.permitted.high)}",
            )  # fmt: skip


def bench(stacks: set[str]) -> Tally | None:
    """Return the entries of the stacks of a report; None if none of them is on record. Raises UserError."""
    tally = Tally.from_runs([bug for bug in bugs.entries() if bug.stack in stacks], bugs.runs())
    return tally if tally.real or tally.shams else None

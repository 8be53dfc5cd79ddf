"""Render docs/matrix.md: a Markdown table of the verdict on every stack and algorithm."""

import collections
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import rich.console
import rich.text

from conformance.catalogue import clause_record, clauses, documents
from conformance.model.judging.verdict import ALPHA, Status, Verdict, counts, overall, worst
from conformance.model.judging.zone import id_parts
from conformance.model.networks.place import Cell
from conformance.reporting.heatmaps import Series
from conformance.reporting.marks import LOOKS
from conformance.reporting.text.markdown import table
from conformance.support.console import table as console_table

if TYPE_CHECKING:
    from conformance.commands.matrix import Matrix, MatrixRow

#: most cells named in a row
_SHOWN = 2
#: the cell whose utilization is shown if no zone judges an algorithm
_ANY_CELL = Cell(10, 20, 0)
_TITLE = "# Every stack and algorithm with its verdict"
_ABOUT = """\
A row is one algorithm of one stack, and its verdict the worst that a zone gives it or, of BBRv3, a
clause of the draft on record. *Called* is the stack's own name for the algorithm. The last column
counts verdicts: by the draft, those decided; then one for each cell of each zone, or each kind of
cells, with the first that are the worst. *Client* is the program that fetched (`own`: the stack's),
with the version of ngtcp2 in it; 0.12.1 was compiled on each host. `h3-client` is the common client
of stacks over UDP.\
"""
_HEAD = ("stack", "algorithm", "called", "kernel", "client", "verdict", "verdicts (+ above, - below the zone)")


def render(all_series: Iterable[Series], called: Callable[[str, str], str]) -> str:
    """Return a page of Markdown with a row for each Series, Linux TCP first; `called(stack, algorithm)`: its own name.

    Below the table is the limit on false alarms that holds for each row.
    """
    ordered = sorted(
        all_series, key=lambda s: (not s.scheme.stack.startswith("linux-tcp"), s.scheme.stack, s.scheme.algorithm)
    )
    rows = [_row(series, called(series.scheme.stack, series.scheme.algorithm)) for series in ordered]
    rate = f"Each stack and algorithm has false alarms in at most {ALPHA:.0%} of runs (Holm over all cells that count)."
    return "\n".join([_TITLE, "", _ABOUT, "", *table(_HEAD, rows), "", rate]) + "\n"


def _row(series: Series, called: str) -> tuple[str, ...]:
    """Return what the columns of _HEAD have for a Series."""
    scheme = series.scheme
    of_draft = _on_record(scheme.stack, scheme.algorithm)
    client = scheme.client_and_version or "own"
    status = worst([series.verdict, *of_draft])
    what = _draft(of_draft) + (words(series.verdicts) if series.verdicts else _not_judged(series))
    return scheme.stack, scheme.algorithm, called, scheme.kernel_release, client, status, what


def _on_record(stack: str, algorithm: str) -> list[Status]:
    """Return the decided verdicts on record by the clauses that judge a stack's algorithm before zones do."""
    first = clauses.first_for(algorithm)
    if first is None:
        return []
    ids = {clause.id for clause in first.clauses}
    return [of.verdict for of in clause_record.judged(stack, algorithm) if of.clause in ids]


def _draft(statuses: Sequence[Status]) -> str:
    return f"draft: {sum(status.against for status in statuses)} of {len(statuses)} violated; " if statuses else ""


def words(verdicts: Sequence[Verdict]) -> str:
    """Return how many verdicts there are of each status, and for which cells the worst; or why, if it is no verdict."""
    of_worst = [verdict for verdict in verdicts if verdict.status is overall(verdicts)]
    text = counts(verdict.status for verdict in verdicts)
    if of_worst[0].status in (Status.ERROR, Status.UNSUPPORTED):
        reasons = collections.Counter(verdict.reason for verdict in of_worst)
        return f"{text}: {reasons.most_common(1)[0][0]}"
    if of_worst[0].status.passes or of_worst[0].status is Status.NOT_JUDGED:
        return text
    more = f" and {len(of_worst) - _SHOWN} more" if len(of_worst) > _SHOWN else ""
    return f"{text}: {', '.join(map(_beside, of_worst[:_SHOWN]))}{more}"


def _beside(verdict: Verdict) -> str:
    """Return the cell's name, with + if its median is above what is permitted, - if below, and no sign if inside."""
    _, name = id_parts(verdict.zone_id)
    if not name:  # a clause, whose place is the algorithm of the row
        return verdict.zone_id
    kind = documents.marker(name)
    named = verdict.place.id if kind == documents.KINDS[0] else f"{kind} {verdict.place.id}"
    if verdict.value is None or verdict.value in verdict.permitted:
        return named
    return f"{named} {'+' if verdict.value > verdict.permitted.high else '-'}"


def _not_judged(series: Series) -> str:
    results = series.utilization.results
    failed = next((r for r in results.values() if r.value is None), None)
    if failed is not None:
        return f"no zone; {failed.cell.id}: {failed.message}"
    result = results.get(_ANY_CELL) or next(iter(results.values()))
    return f"no zone; utilization {result.value:.3f} at {result.cell.id}"


_RATE = f"false alarms in at most {ALPHA:.0%} of the runs of a row (Holm over its cells)"
_HEADER = ("stack", "algorithm", "called", "verdict", "verdicts (+ above, - below the zone)", "wall s a trial")


def show(matrix: "Matrix", console: rich.console.Console) -> None:
    by = f"grid {matrix.grid}" if matrix.grid else "smoke cells"
    texts = []
    for before, row in zip((None, *matrix.rows), matrix.rows, strict=False):
        stack = "" if before and row.stack == before.stack else row.stack
        verdict = rich.text.Text(row.verdict, LOOKS[row.verdict].tone.style)
        texts.append((stack, row.algorithm, row.called, verdict, row.what, _wall(row)))
    title = f"every adapter and algorithm, by {by}"
    console.print(console_table(_HEADER, texts, _HEADER[-1:], fold=True, title=title))
    console.print(_RATE, soft_wrap=True)


def markdown(matrix: "Matrix") -> str:
    """Return the same table as Markdown, for a page."""
    cells = [(row.stack, row.algorithm, row.called, row.verdict, row.what, _wall(row)) for row in matrix.rows]
    return "\n".join([*table(_HEADER, cells), "", f"{_RATE[0].upper()}{_RATE[1:]}."]) + "\n"


def _wall(row: "MatrixRow") -> str:
    return "" if row.wall_s is None else f"{row.wall_s:.2f}"

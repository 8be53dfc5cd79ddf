"""What was measured of every stack and algorithm as a table of verdicts, in Markdown: docs/matrix.md."""

import collections
import dataclasses
from collections.abc import Callable, Iterable

from conformance.model.metrics import METRICS, UTILIZATION
from conformance.model.setting import Cell
from conformance.model.verdict import ALPHA
from conformance.reporting.heatmaps import CellResult, Heatmap, Series
from conformance.reporting.text.markdown import table

#: cells named in a row
_SHOWN = 2
#: whose utilization is shown of what no zone judges
_ANY_CELL = Cell(10, 20, 0)
_TITLE = "# Every stack and algorithm with its verdict"
_ABOUT = """\
A row is one algorithm of one stack, and its verdict is the worst of all that zones give it.
*Called* is the stack's own name for the algorithm. `2 of 60` means that 2 of its 60 verdicts, one
for each cell of each zone, are this worst one; the first of these cells follow.\
"""
_HEAD = ("stack", "algorithm", "called", "kernel", "verdict", "verdicts (+ above, - below the zone)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One stack and algorithm. `status`: the worst of its verdicts, or "not judged"; `what`: how many, and where."""

    stack: str
    algorithm: str
    called: str
    kernel: str
    status: str
    what: str


def rows(all_series: Iterable[Series], called: Callable[[str, str], str]) -> list[Row]:
    """Return a Row of each Series, stacks over TCP first; `called(stack, algorithm)`: the stack's own name for it."""
    ordered = sorted(
        all_series, key=lambda s: (not s.scheme.stack.startswith("linux-tcp"), s.scheme.stack, s.scheme.algorithm)
    )
    return [_row(series, called(series.scheme.stack, series.scheme.algorithm)) for series in ordered]


def render(made: Iterable[Row]) -> str:
    """Return the rows as a page of Markdown, with the rate of false alarms that holds for each."""
    cells = [(row.stack, row.algorithm, row.called, row.kernel, row.status, row.what) for row in made]
    rate = f"Each stack and algorithm has false alarms in at most {ALPHA:.0%} of runs (Holm over all cells that count)."
    return "\n".join([_TITLE, "", _ABOUT, "", *table(_HEAD, cells), "", rate]) + "\n"


def _row(series: Series, called: str) -> Row:
    return Row(
        stack=series.scheme.stack,
        algorithm=series.scheme.algorithm,
        called=called,
        kernel=series.scheme.kernel_release,
        status=series.verdict,
        what=_judged(series) if series.count() else _not_judged(series),
    )


def _judged(series: Series) -> str:
    """Say how many verdicts are the worst there is, and of which cells; of an error, the cause."""
    found = [(h, r, r.verdict) for h in series.heatmaps for r in h.results.values() if r.verdict]
    worst = [(h, r, verdict) for h, r, verdict in found if r.status == series.verdict]
    text = f"{len(worst)} of {len(found)}"
    if series.verdict in ("error", "unsupported"):
        reasons = collections.Counter(verdict.reason for _, _, verdict in worst)
        return f"{text}: {reasons.most_common(1)[0][0]}"
    if series.verdict == "conforms":
        return text
    more = f" and {len(worst) - _SHOWN} more" if len(worst) > _SHOWN else ""
    return f"{text}: {', '.join(_beside(h, r) for h, r, _ in worst[:_SHOWN])}{more}"


def _beside(heatmap: Heatmap, result: CellResult) -> str:
    """Name the cell, and the side of what is permitted that its median lies on; no side where it is inside."""
    metric = METRICS[heatmap.metric]
    named = result.cell.id if metric == UTILIZATION else f"{metric.noun} {result.cell.id}"
    value, permitted = result.value, result.permitted
    if value is None or permitted is None:
        return named
    if value > permitted.high:
        return f"{named} +"
    return f"{named} -" if value < permitted.low else named


def _not_judged(series: Series) -> str:
    results = series.utilization.results
    failed = next((r for r in results.values() if r.value is None), None)
    if failed is not None:
        return f"no zone; {failed.cell.id}: {failed.message}"
    result = results.get(_ANY_CELL) or next(iter(results.values()))
    return f"no zone; utilization {result.value:.3f} at {result.cell.id}"

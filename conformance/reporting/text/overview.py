"""Render docs/matrix.md: a Markdown table of the verdict on every stack and algorithm."""

import collections
import dataclasses
from collections.abc import Callable, Iterable

from conformance.model.metrics import METRICS, UTILIZATION
from conformance.model.setting import Cell
from conformance.model.verdict import ALPHA
from conformance.reporting.heatmaps import CellResult, Heatmap, Series
from conformance.reporting.text.markdown import table

#: most cells named in a row
_SHOWN = 2
#: the cell whose utilization is shown if no zone judges an algorithm
_ANY_CELL = Cell(10, 20, 0)
_TITLE = "# Every stack and algorithm with its verdict"
_ABOUT = """\
A row is one algorithm of one stack, and its verdict is the worst that any zone gives it.
*Called* is the stack's own name for the algorithm. `2 of 60` means that 2 of its 60 verdicts, one
for each cell of each zone, are this worst one; the first of these cells follow.\
"""
_HEAD = ("stack", "algorithm", "called", "kernel", "verdict", "verdicts (+ above, - below the zone)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One stack and algorithm. `status`: its worst verdict, or "not judged"; `what`: how many of these, and where."""

    stack: str
    algorithm: str
    called: str
    kernel: str
    status: str
    what: str


def rows(all_series: Iterable[Series], called: Callable[[str, str], str]) -> list[Row]:
    """Return a Row of each Series, Linux TCP first; `called(stack, algorithm)`: the stack's own name for it."""
    ordered = sorted(
        all_series, key=lambda s: (not s.scheme.stack.startswith("linux-tcp"), s.scheme.stack, s.scheme.algorithm)
    )
    return [_row(series, called(series.scheme.stack, series.scheme.algorithm)) for series in ordered]


def render(made: Iterable[Row]) -> str:
    """Return the rows as a page of Markdown, with the limit on false alarms that holds for each."""
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
    """Return how many verdicts are the worst one, and for which cells; for "error" or "unsupported", why."""
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
    """Return the cell's name, with + if its median is above what is permitted, - if below, and no sign if inside."""
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

"""Show heatmaps in a terminal: a table of utilization for each bandwidth, by delay and loss, and all verdicts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.judging.verdict import Status
from conformance.model.metrics.table import METRICS
from conformance.model.trials.trial import Scheme
from conformance.reporting import heatmaps, naming, rerun
from conformance.reporting.html import heatmap_table
from conformance.reporting.marks import LOOKS
from conformance.support.console import one_line, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.run import MeasuredGrid

#: most cells that do not conform and are named, for each metric
_MOST_NAMED = 4
#: most schemes whose heatmaps are drawn; of more, each has a line
_MOST_DRAWN = 5


def show(all_series: Sequence[heatmaps.Series], console: rich.console.Console) -> None:
    names = naming.labels(series.scheme for series in all_series)
    if len(all_series) > _MOST_DRAWN:
        for series in all_series:
            verdicts = "; ".join(map(summary, series.judged)) or summary(series.utilization)
            console.print(one_line(f"{names[series.scheme]}: {verdicts}"), soft_wrap=True, markup=False)
        return
    _draw(all_series, names, console)
    marked = {r.status for series in all_series for r in series.utilization.results.values() if r.verdict}
    meanings = [f"{of.mark} {status}: {of.meaning}" for status, of in LOOKS.items() if status in marked and of.mark]
    if meanings:
        console.print("; ".join(meanings), soft_wrap=True, markup=False)


def _draw(all_series: Sequence[heatmaps.Series], names: Mapping[Scheme, str], console: rich.console.Console) -> None:
    for series in all_series:
        heatmap = series.utilization
        console.print()
        about = one_line(f"  {heatmap.settings}; {heatmap.scheme.stack_version}")
        console.print(rich.text.Text.assemble((one_line(names[series.scheme]), "bold"), about))
        for bandwidth in sorted({cell.bandwidth_mbps for cell in heatmap.results}):
            console.print(_table(heatmap, bandwidth))
        for judged in series.judged:
            console.print(summary(judged), style="bold", markup=False)
            _name(series, judged, console)
        if command := rerun.why(series):
            console.print(f"to see what differs: {command}", soft_wrap=True, markup=False)
        if series.false_alarms:
            console.print(f"all zones of {series.scheme.id}: {series.false_alarms}", soft_wrap=True, markup=False)


def _name(series: heatmaps.Series, heatmap: heatmaps.Heatmap, console: rich.console.Console) -> None:
    """Show the cells that do not conform, with numbers and reasons; each error or "unsupported" is shown once."""
    cell_results = [
        result
        for result in heatmap.results.values()
        if result.permitted and result.status is not Status.CONFORMS and not series.is_told(heatmap, result)
    ]
    for result in sorted(cell_results, key=heatmaps.worst_first)[:_MOST_NAMED]:
        console.print(f"  {_named(heatmap.metric, result)}", soft_wrap=True, markup=False)
    if len(cell_results) > _MOST_NAMED:
        console.print(f"  and {len(cell_results) - _MOST_NAMED} more")


def _named(metric: str, result: heatmaps.CellResult) -> str:
    """Return in words a result that does not conform, with its cause unless the numbers show that."""
    text = f"{result.status} at {result.cell.id}"
    if result.value is None or result.permitted is None:
        return str(one_line(f"{text}: {result.cause}"))
    # A verdict rests on the first trials that made it clear, even if another zone asked for more trials.
    judged = result.value if result.verdict is None or result.verdict.value is None else result.verdict.value
    value, low, high = (
        METRICS[metric].text(v, heatmap_table.more_digits(metric, result))
        for v in (judged, result.permitted.low, result.permitted.high)
    )
    if result.status is Status.NOT_JUDGED:
        return str(one_line(f"{text}: {value} ({result.cause})"))
    cause = "" if result.status.against else f"{result.cause}; "
    return str(one_line(f"{text}: {value}, permitted {low} to {high} ({cause}{result.permitted.margin.words})"))


def summary(heatmap: heatmaps.Heatmap) -> str:
    """Return the zone, or the metric if no zone judges it, and how many cells have which verdict."""
    if not heatmap.zone:
        return f"{METRICS[heatmap.metric].title}: {heatmap.words}"
    return f"zone {heatmap.zone.id}: {heatmap.words}"


def _table(heatmap: heatmaps.Heatmap, bandwidth: float) -> rich.table.Table:
    results = {c: r for c, r in heatmap.results.items() if c.bandwidth_mbps == bandwidth}
    losses = sorted({cell.loss_pct for cell in results})
    trials = naming.trials_words(result.n for result in results.values())
    rows = []
    for delay in sorted({cell.one_way_delay_ms for cell in results}):
        row = {c.loss_pct: r for c, r in results.items() if c.one_way_delay_ms == delay}
        rows.append((f"{delay:g} ms", *(_text(heatmap.metric, row.get(loss)) for loss in losses)))
    header = ("delay \\ loss", *(f"{loss:g} %" for loss in losses))
    return table(header, rows, header, title=f"{bandwidth:g} Mbit/s, median utilization of {trials}")


def _text(metric: str, result: heatmaps.CellResult | None) -> str | rich.text.Text:
    if result is None:
        return ""
    look = LOOKS[result.status if result.verdict else Status.CONFORMS]
    mark = look.mark or " "
    if result.value is None:
        return rich.text.Text(f"none {mark}", style=look.tone.style or "dim")
    style = look.tone.style or shade(result.value)
    return rich.text.Text(f"{heatmap_table.value_text(metric, result)} {mark}", style=style)


def shade(value: float) -> str:
    """Return a style for a utilization.

    The background goes from dark to light as utilization grows; the text keeps its contrast.
    """
    level = round(235 + 18 * min(max(value, 0.0), 1.0))
    return f"{'white' if level < 245 else 'black'} on color({level})"


def show_measured(measured: "MeasuredGrid", console: rich.console.Console) -> None:
    """Show what `conformance run` measured."""
    if measured.not_judged:
        console.print(f"not judged: {measured.not_judged}", style="yellow", soft_wrap=True)
    show(measured.series, console)
    console.print(f"results: {measured.results}", soft_wrap=True)

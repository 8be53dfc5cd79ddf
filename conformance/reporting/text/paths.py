"""Show the results of `split measure` and `dev split accuracy` in a terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.split.accuracy import Panel
from conformance.support.console import count, duration, table

if TYPE_CHECKING:
    from conformance.commands.split_accuracy import SplitAccuracy
    from conformance.commands.split_measure import MeasuredPath, MeasuredPaths


def show_measured(measured: "MeasuredPaths", console: rich.console.Console) -> None:
    """Show the throughput over each path, then what kept paths from being measured."""
    how = "no proxy" if measured.proxy is None else f"proxy {measured.proxy}"
    title = f"{measured.scheme.id}, {how}, {count(measured.trials, 'trial')}"
    numbers = ("Mbit/s: median", "smallest", "largest", "utilization")
    rows = ((path.setting.id, *_figures(path)) for path in measured.paths)
    console.print(table(("path, client's segment first", *numbers), rows, numbers, fold=True, title=title))
    for text in sorted({f"{path.setting.id}: {why.message}" for path in measured.paths for why in path.trouble}):
        console.print(text, soft_wrap=True)


def _figures(path: "MeasuredPath") -> tuple[str, ...]:
    if path.bad:
        return (str(path.bad.outcome),)
    rates = path.rates
    assert rates is not None
    # A transfer that timed out gives only an upper bound on the rate.
    mark = "< " if rates.timed_out else ""
    return (
        f"{mark}{rates.median:.3f}", f"{mark}{rates.smallest:.3f}", f"{rates.largest:.3f}",
        f"{mark}{rates.utilization:.3f}",
    )  # fmt: skip


def show_accuracy(comparison: "SplitAccuracy", console: rich.console.Console) -> None:
    """Show measured and predicted rates, panel by panel, then a summary of the errors."""
    for compared in comparison.panels:
        console.print()
        console.print(rich.text.Text(f"{compared.algorithm}: {compared.panel.title}", "bold"))
        for title, values, form in (
            ("measured, Mbit/s", compared.measured, "{:.2f}"),
            ("predicted, Mbit/s", compared.predicted, "{:.2f}"),
            ("error of the prediction", compared.errors, "{:+.1%}"),
        ):
            console.print(_table(title, compared.panel, values, form))
    numbers, rows = ("paths", "missing", "mean absolute", "largest", "bias"), []
    for summary in comparison.summaries:
        of = summary.accuracy
        figures = ("",) * 4
        if of is not None:
            figures = (str(of.missing), f"{of.mean_absolute:.1%}", f"{of.worst:+.1%}", f"{of.bias:+.1%}")
        rows.append((summary.scheme, summary.paths, str(summary.of), *figures))
    title = "error of the prediction: (predicted - measured) / measured"
    console.print(table(("scheme", "panel", *numbers), rows, numbers, title=title))
    for problem in comparison.problems:
        console.print(str(problem), soft_wrap=True)
    console.print(
        f"{comparison.settings} cells and paths x {comparison.trials} trials: {duration(comparison.took_s)} now;"
        f" all of these trials, including earlier ones, took {duration(comparison.spent_s)} on one core",
        soft_wrap=True,
    )


def _table(title: str, panel: Panel, values: Mapping[tuple[str, str], float | None], form: str) -> rich.table.Table:
    columns = list(dict.fromkeys(column for _, column in panel.paths))
    header = (f"{panel.row_title} \\ {panel.column_title}", *columns)
    rows = []
    for row in dict.fromkeys(row for row, _ in panel.paths):
        shown = (values[row, column] for column in columns)
        rows.append((row, *("none" if value is None else form.format(value) for value in shown)))
    return table(header, rows, header, title=title)

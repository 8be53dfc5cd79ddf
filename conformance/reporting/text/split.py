"""Show predictions for split paths in a terminal: counts by class and filter, bars of a path; draw the bars, too."""

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich.console
import rich.table
import rich.text

from conformance.model.split import split_rates
from conformance.model.split.accuracy import Panel
from conformance.model.split.split_paths import Path, PathClass
from conformance.model.split.split_rates import Bounds, Prediction
from conformance.support import extras, files
from conformance.support.console import count, duration, table

if TYPE_CHECKING:
    import altair

    from conformance.commands.split_accuracy import SplitAccuracy
    from conformance.commands.split_analyze import Analysis, InterpolationError, MeasuredCells
    from conformance.commands.split_measure import MeasuredPath, MeasuredPaths

_BAR_CHARACTERS = 40
_NAMES = {"split": "split", "end_to_end": "end-to-end"}


def show_measured(measured: "MeasuredCells", console: rich.console.Console) -> None:
    """Show what the predictions rest on, {scheme's id: {cell: measurements}}: a line for each scheme."""
    for scheme, cells in measured.items():
        by_cell = list(cells.values())
        trials = sorted({len(measurements) for measurements in by_cell})
        of = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
        setting = by_cell[0][0].trial.setting
        missing = sum(split_rates.trial_rates(measurements) is None for measurements in by_cell)
        failed = f", {missing} with an error or not supported" if missing else ""
        console.print(
            f"{scheme}: {len(cells)} cells x {of} trials{failed}; profile {setting.profile},"
            f" {setting.transfer_s:g} s transfers",
            soft_wrap=True,
        )


def show_table(
    predictions: Mapping[str, Sequence[Prediction]], transfer_s: float, console: rich.console.Console, where: str
) -> None:
    """Show how many paths pass each filter, by class, and the largest gain, for each of {name: predictions}."""
    first = next(iter(predictions.values()))
    sizes = split_rates.count(first, split_rates.Filter())
    console.print()
    console.print(
        f"predicted: {len(first)} ordered paths of two segments, {where}, {transfer_s:g} s transfers", soft_wrap=True
    )
    counts_table = _columns(show_header=True)
    counts_table.add_row("all paths", *(str(sizes[c].paths) if c in sizes else "0" for c in PathClass), str(len(first)))
    console.print(counts_table)
    for name, predicted in predictions.items():
        console.print(name, style="bold", soft_wrap=True)
        counts_table = _columns(show_header=False)
        for filter_ in split_rates.FILTERS:
            counts = split_rates.count(predicted, filter_)
            passed = sum(c.passed for c in counts.values())
            unknown = sum(c.unknown for c in counts.values())
            # The share is of the known paths only: unknown ones may pass or not.
            share = f"{passed / (len(predicted) - unknown):.1%}" if unknown < len(predicted) else "?"
            by_class = (str(counts[c].passed) if c in counts else "0" for c in PathClass)
            counts_table.add_row(filter_.title, *by_class, str(passed), share, str(unknown or ""))
        console.print(counts_table)
        console.print(_largest(predicted), soft_wrap=True)


def _columns(show_header: bool) -> rich.table.Table:
    """Return a table of counts by class that fits 80 columns; widths are fixed, so that several tables read as one."""
    drawn = rich.table.Table(box=None, padding=(0, 1, 0, 0), show_header=show_header)
    drawn.add_column("paths", width=20, no_wrap=True)
    for name, width in zip((*PathClass, "all", "share", "unknown"), (6, 5, 4, 4, 9, 5, 4, 6, 7), strict=True):
        drawn.add_column(str(name), justify="right", width=width, no_wrap=True)
    return drawn


def _largest(predictions: Iterable[Prediction]) -> str:
    largest = split_rates.largest_gain(predictions)
    if largest is None:
        return "no path whose cells are known"
    gain, path = largest
    return f"largest gain {gain:.2f}x, at {path.id} ({path.path_class})"


def show_errors(errors: "Iterable[InterpolationError]", console: rich.console.Console) -> None:
    """Show the error of interpolation along each axis."""
    console.print()
    console.print("interpolation: error of the rate if a cell is computed from its two neighbours on one axis")
    numbers = ("cells", "typical", "worst")
    rows = ((e.scheme, e.axis, str(e.cells), f"{e.typical:.1%}", f"{e.worst:.0%}") for e in errors)
    console.print(table(("scheme", "axis", *numbers), rows, numbers, box=None, padding=(0, 1, 0, 0)))


def show(analysis: "Analysis", console: rich.console.Console) -> None:
    """Show paths by class and filter, and bars of the paths to be drawn."""
    show_measured(analysis.measured, console)
    if analysis.tables:
        (first,) = analysis.tables
        n, schemes = len(next(iter(first.predictions.values()))), len(first.predictions)
        console.print(
            f"{count(n, 'path')} x {count(schemes, 'scheme')} predicted in {analysis.took_s:.2f} s", soft_wrap=True
        )
        show_table(first.predictions, analysis.transfer_s, console, first.where)
    if analysis.interpolation is not None:
        show_errors(analysis.interpolation, console)
    show_bars(analysis.predictions, analysis.transfer_s, console)


def show_bars(
    predictions: Mapping[Path, Mapping[str, Prediction]], transfer_s: float, console: rich.console.Console
) -> None:
    """Show the predicted utilization, split and end to end, of {path: {scheme: Prediction}}."""
    for path, by_scheme in predictions.items():
        console.print()
        console.print(f"{path.id}  class {path.path_class}, {transfer_s:g} s transfers, predicted", style="bold")
        width = max(len(scheme) for scheme in by_scheme)
        for scheme, prediction in by_scheme.items():
            for name, of in zip((scheme, ""), _NAMES, strict=True):
                console.print(f"{name:{width}}  {_NAMES[of]:10} {_bar(prediction.utilization(of))}", soft_wrap=True)


def _bar(utilization: Bounds | None) -> str:
    if utilization is None:
        return "unknown: a cell it needs was not measured"
    low, high = utilization
    bar = "█" * round(low * _BAR_CHARACTERS) + "░" * (round(high * _BAR_CHARACTERS) - round(low * _BAR_CHARACTERS))
    return f"{bar:{_BAR_CHARACTERS}} {_number(utilization)}"


def _number(utilization: Bounds) -> str:
    low, high = utilization
    return f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f} (a transfer timed out)"


def _short(utilization: Bounds | None) -> str:
    if utilization is None:
        return "unknown"
    low, high = utilization
    return f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"


def chart(predictions: Mapping[Path, Mapping[str, Prediction]], transfer_s: float) -> "altair.FacetChart":
    """Return the same bars as a chart, with a row for each path."""
    import altair  # imported late: not every installation has the libraries that draw

    rows: list[dict[str, Any]] = [
        {
            "path": f"{path.id}  ({path.path_class})", "scheme": scheme, "connection": name,
            "low": bounds[0] if bounds else 0, "high": bounds[1] if bounds else 0, "words": _short(bounds),
        }
        for path, by_scheme in predictions.items()
        for scheme, prediction in by_scheme.items()
        for of, name in _NAMES.items()
        for bounds in [prediction.utilization(of)]
    ]  # fmt: skip
    order = list(dict.fromkeys(row["path"] for row in rows))
    base = altair.Chart().encode(
        y=altair.Y("scheme:N", title=None),
        yOffset=altair.YOffset("connection:N", sort=list(_NAMES.values())),
        x=altair.X("high:Q", title="predicted utilization", scale=altair.Scale(domain=[0, 1])),
    )
    colour = altair.Color("connection:N", sort=list(_NAMES.values()), scale=altair.Scale(scheme="tableau10"),
                          legend=altair.Legend(symbolOpacity=1))  # fmt: skip
    # If a transfer timed out, the rate is only known to be in a range, which is pale.
    most = base.mark_bar(opacity=0.35).encode(color=colour)
    least = base.mark_bar().encode(x=altair.X("low:Q"), color=colour)
    words = base.mark_text(align="left", dx=3, fontSize=10).encode(text="words:N")
    facets: altair.FacetChart = (
        altair.layer(most, least, words, data=altair.Data(values=rows))
        .properties(width=420)
        .facet(row=altair.Row("path:N", title=None, sort=order, header=altair.Header(labelAngle=0, labelOrient="top")))
        .properties(title=f"Split and end-to-end, predicted from end-to-end results of {transfer_s:g} s transfers")
        .configure(font="DejaVu Sans, sans-serif")
    )
    return facets


#: suffixes that the file of a figure may have
FIGURES = (".svg", ".png")


def draw(predictions: Mapping[Path, Mapping[str, Prediction]], transfer_s: float, target: pathlib.Path) -> None:
    """Write the bars to a file with one of the suffixes FIGURES. Raises UserError, also without the extra `figures`."""
    extras.need("figures")
    from conformance.reporting import charts

    content = charts.render(chart(predictions, transfer_s), target.suffix.removeprefix("."), scale=1.5)
    files.write(target, content, "choose another --out")


def show_paths_measured(measured: "MeasuredPaths", console: rich.console.Console) -> None:
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
            console.print(_panel(title, compared.panel, values, form))
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


def _panel(title: str, panel: Panel, values: Mapping[tuple[str, str], float | None], form: str) -> rich.table.Table:
    columns = list(dict.fromkeys(column for _, column in panel.paths))
    header = (f"{panel.row_title} \\ {panel.column_title}", *columns)
    rows = []
    for row in dict.fromkeys(row for row, _ in panel.paths):
        shown = (values[row, column] for column in columns)
        rows.append((row, *("none" if value is None else form.format(value) for value in shown)))
    return table(header, rows, header, title=title)

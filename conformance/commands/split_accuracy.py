"""`conformance split accuracy`: predicted against measured throughput over splits of one path."""

import dataclasses
import pathlib
import time

import rich.table
import rich.text

from conformance.catalogue import documents
from conformance.commands.measuring import measure
from conformance.engine import benches, runs
from conformance.lab import proxy as proxies
from conformance.model.errors import UserError
from conformance.model.split import accuracy, split_paths
from conformance.model.split.accuracy import Panel
from conformance.model.trial import Outcome
from conformance.reporting import split_charts
from conformance.support.console import duration


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compared:
    """A panel of one algorithm: {(row, column): Mbit/s, or None where nothing is known}, and the relative errors."""

    algorithm: str
    panel: Panel
    measured: dict
    predicted: dict

    @property
    def errors(self):
        return {at: accuracy.relative_error(self.predicted[at], self.measured[at]) for at in self.panel.paths}


def run(algorithms, choice, *, proxy, queue_sized_by, trials, results, workers, profile, target, console):
    """Measure the paths and their segments alone, compare, show; `target`: folder for figures, or None.

    Without a proxy, the paths are measured end to end, and predicted by one segment that is what they come to. Returns
    the exit status: 0, 3 where a trial was an error, 4 where an algorithm is unsupported and nothing worse. Raises
    UserError.
    """
    bench = benches.find(choice)
    if bench.adapter.manifest.transport != "tcp":
        raise UserError(f"a proxy splits TCP, and {bench.adapter.name} serves over {bench.adapter.manifest.transport}")
    profile = profile or bench.profile
    found_proxy = proxies.choose(proxy)
    panels = accuracy.panels()
    paths = {
        segments: documents.path(profile, segments, found_proxy, queue_sized_by)
        for panel in panels
        for segments in panel.paths.values()
    }
    # A split path is predicted by its segments, an unsplit one by what they come to.
    predict = split_paths.predict_split if found_proxy else split_paths.predict_end_to_end
    composed = {segments: split_paths.Path(*segments, exact=True) for segments in paths}
    needed = {segments: segments if found_proxy else (path.end_to_end,) for segments, path in composed.items()}
    alone = {cell: documents.profile(profile, cell) for cells in needed.values() for cell in cells}
    settings = [*paths.values(), *alone.values()]
    work = [(algorithm, setting) for algorithm in algorithms for setting in settings]
    began = time.monotonic()
    measured, messages, spent_s = {}, set(), 0.0
    for (algorithm, setting), measurements in measure(bench, work, runs.seeds(trials), results, workers, console):
        measured[algorithm, setting] = _throughput(measurements)
        spent_s += sum(m.host.get("wall_s", 0) for m in measurements)
        messages |= {
            (m.outcome, f"{algorithm}, {setting.id}: {m.message}")
            for m in measurements
            if m.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)
        }
    compared = [
        Compared(
            algorithm=bench.scheme(algorithm).id,
            panel=panel,
            measured={at: measured[algorithm, paths[segments]] for at, segments in panel.paths.items()},
            predicted={
                at: predict(composed[segments], {cell: measured[algorithm, alone[cell]] for cell in needed[segments]})
                for at, segments in panel.paths.items()
            },
        )
        for algorithm in algorithms
        for panel in panels
    ]
    _show(compared, console)
    for outcome, message in sorted(messages):
        console.print(f"{outcome}: {message}", soft_wrap=True)
    console.print(
        f"{len(work)} cells and paths x {trials} trials: {duration(time.monotonic() - began)} now;"
        f" all trials, whenever they were made, took {duration(spent_s)} of a core",
        soft_wrap=True,
    )
    if target:
        for path in split_charts.write(compared, pathlib.Path(target)):
            console.print(f"figure: {path}", soft_wrap=True)
    outcomes = {outcome for outcome, _ in messages}
    return 3 if Outcome.ERROR in outcomes else 4 if outcomes else 0


def _throughput(measurements):
    """p50 in Mbit/s of the transfers that ended, as published; None where a trial says nothing of the stack."""
    if any(m.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED) for m in measurements):
        return None
    return accuracy.p50([m.metrics["goodput_mbps"] for m in measurements if m.outcome is Outcome.OK])


def _show(compared, console):
    for one in compared:
        console.print()
        console.print(rich.text.Text(f"{one.algorithm}: {one.panel.title}", "bold"))
        for title, values, form in (
            ("measured, Mbit/s", one.measured, "{:.2f}"),
            ("predicted, Mbit/s", one.predicted, "{:.2f}"),
            ("error of the prediction", one.errors, "{:+.1%}"),
        ):
            console.print(_table(title, one.panel, values, form))
    table = rich.table.Table(title="error of the prediction: (predicted - measured) / measured", title_justify="left")
    for name in ("scheme", "paths", "of", "missing", "mean absolute", "largest", "bias"):
        table.add_column(name, justify="left" if name in ("scheme", "paths") else "right")
    schemes = list(dict.fromkeys(one.algorithm for one in compared))
    for scheme in schemes:
        own = [one for one in compared if one.algorithm == scheme]
        groups = [(one.panel.title, list(one.errors.values())) for one in own]
        groups.append(("all", [error for _, errors in groups for error in errors]))
        for title, errors in groups:
            found = accuracy.summary(errors)
            figures = (
                ("", "", "", "") if found is None
                else (str(found.missing), f"{found.mean_absolute:.1%}", f"{found.worst:+.1%}", f"{found.bias:+.1%}")
            )  # fmt: skip
            table.add_row(scheme, title, str(len(errors)), *figures)
    console.print(table)


def _table(title, panel, values, form):
    table = rich.table.Table(title=title, title_justify="left")
    table.add_column(f"{panel.row_title} \\ {panel.column_title}", justify="right")
    columns = list(dict.fromkeys(column for _, column in panel.paths))
    for column in columns:
        table.add_column(column, justify="right")
    for row in dict.fromkeys(row for row, _ in panel.paths):
        shown = (values[row, column] for column in columns)
        table.add_row(row, *("none" if value is None else form.format(value) for value in shown))
    return table

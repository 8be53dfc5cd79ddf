"""Commands over results: reports, exports, figures, comparisons with published figures."""

import pathlib
import sys
from collections.abc import Sequence

import click

from conformance.cli.base import FORMAT, finish, out
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import files

_RESULTS = click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))


def _source(results):
    from conformance.results import source

    return source.Source(results or (pathlib.Path(DEFAULT_RESULTS),))


@click.command()
@_RESULTS
@click.option("--out", "target", default="report", show_default=True, type=click.Path(path_type=pathlib.Path))
@click.option("--terminal/--no-terminal", default=True, help="Also draw the heatmaps in the terminal.")
def report(results, target, terminal):
    """A site of RESULTS in a folder: schemes, cells, comparisons, RFC 9743, data. Opens from disk."""
    from conformance.reporting import heatmaps
    from conformance.reporting.html import site
    from conformance.reporting.text import terminal as drawn

    source = _source(results)
    if terminal:
        drawn.show(heatmaps.all_series(source.measurements), out)
    out.print(f"report: {site.write(source, target).absolute()}", soft_wrap=True)


#: what `conformance export` writes, and where unless told otherwise
_EXPORTS = {
    "json": "summary.json",
    "csv": "cells.csv",
    "parquet": "cells.parquet",
    "markdown": "summary.md",
    "badge-json": "badge.json",
    "badge-svg": "badge.svg",
}


@click.command()
@click.argument("form", type=click.Choice(list(_EXPORTS)), metavar=f"[{'|'.join(_EXPORTS)}]")
@_RESULTS
@click.option("--out", "target", help="File to write, or - (default: named after what it is).")
def export(form, results, target):
    """RESULTS for other tools: cells as CSV or Parquet, a JSON summary, Markdown for a pull request, a badge."""
    from conformance.reporting import heatmaps
    from conformance.reporting.text import markdown
    from conformance.reporting.tools import badge
    from conformance.reporting.tools import export as tool

    source = _source(results)
    series = heatmaps.all_series(source.measurements)
    made = {
        "json": lambda: tool.summary_json(series, source.files),
        "csv": lambda: tool.csv_bytes(series),
        "parquet": lambda: tool.parquet_bytes(series),
        "markdown": lambda: markdown.render(series).encode(),
        "badge-json": lambda: badge.endpoint(series),
        "badge-svg": lambda: badge.svg(series),
    }[form]()
    _write(made, target or _EXPORTS[form])


@click.command()
@click.argument("what", type=click.Choice(["heatmap", "loss", "compare"]))
@_RESULTS
@click.option("--format", "form", type=click.Choice(["pdf", "svg", "png"]), default="pdf", show_default=True)
@click.option("--algorithm", help="Only of this algorithm.")
@click.option("--stack", help="Only of this stack.")
@click.option("--out", "folder", default="figures", show_default=True, type=click.Path(path_type=pathlib.Path))
def plot(what, results, form, algorithm, stack, folder):
    """Figures for papers: heatmaps of utilization or loss with zone and difference, or several schemes compared."""
    from conformance.reporting import charts, figures, heatmaps

    series = heatmaps.all_series(_source(results).measurements)
    for name, chart in figures.chosen(what, series, algorithm, stack):
        _write(charts.render(chart, form), folder / f"{name}.{form}")


def _write(content, target):
    if str(target) == "-":
        sys.stdout.buffer.write(content)
        return
    out.print(str(files.write(target, content, "choose another --out")), soft_wrap=True)


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option("--published", type=click.Path(path_type=pathlib.Path), help="CSV of published cells to compare with.")
@FORMAT
def fidelity(results: Sequence[pathlib.Path], published: pathlib.Path | None, form: str) -> None:
    """Compare RESULTS with the published cells: bias and rms by algorithm."""
    from conformance.commands import fidelity
    from conformance.reporting.text import fidelity as shown

    finish(fidelity.compute(results or (pathlib.Path(DEFAULT_RESULTS),), published), form, shown.show)


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--out", "target", required=True, type=click.Path(path_type=pathlib.Path), help="Results file to write.")
def merge(results, target):
    """RESULTS of shards as one file; refuses unlike runs, and one trial with two results."""
    from conformance.results import merge as merging

    n = merging.merge(results, target, lambda text: out.print(text, style="yellow", soft_wrap=True))
    out.print(f"{target}: {n} trials", soft_wrap=True)


COMMANDS = (report, plot, export, fidelity, merge)

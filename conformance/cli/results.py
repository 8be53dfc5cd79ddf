"""Commands that read results: reports, figures, exports, merging, and comparison with published cells."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli.base import FORMAT, echo, err, finish, finish_made, out_folder, out_path, progress_console
from conformance.commands.result import Item
from conformance.model.errors import UserError
from conformance.reporting import text
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import extras, files, paths

#: the forms that `export` writes; conformance/commands/export.py has their file names, but takes long to import
FORMS = ("json", "csv", "parquet", "markdown", "badge-json", "badge-svg", "matrix", "bencher")
_RESULTS = click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))


def _source(results: Sequence[pathlib.Path]) -> Any:
    from conformance.results import source

    read = source.Source(results or (pathlib.Path(DEFAULT_RESULTS),))
    _warn(read.left_out)
    return read


def _published() -> list[pathlib.Path]:
    """Return the result files that are published in a checkout. Raises UserError if there are none."""
    kept = sorted((paths.PACKAGE.parent / "reports" / "published").glob("*.jsonl.xz"))
    if not kept:
        raise UserError("this installation has no published results", "name RESULTS, or run it in a checkout")
    return kept


def _warn(left_out: Iterable[str]) -> None:
    """Print which lines were left out, where it cannot mix with an export on standard output."""
    for line in left_out:
        err.print(line, style="yellow", soft_wrap=True)


@click.command()
@_RESULTS
@out_folder("report")
@click.option("--terminal/--no-terminal", default=True, help="Also draw the heatmaps in the terminal.")
@click.option(
    "--history", "with_history", is_flag=True,
    help="Also show what each release of a stack does, of all that are on record; RESULTS are what is published unless"
    " given.",
)  # fmt: skip
@FORMAT
def report(
    results: Sequence[pathlib.Path], target: pathlib.Path, terminal: bool, with_history: bool, form: str
) -> None:  # fmt: skip
    """Write a site of RESULTS that opens from disk.

    It shows schemes, cells, comparisons, the criteria of RFC 9743, and data.
    """
    from conformance.reporting import heatmaps
    from conformance.reporting.html import site

    source = _source(results or (_published() if with_history else ()))
    files.check_writable(target, "choose another --out")
    if terminal:
        text.terminal.show(heatmaps.all_series(source.measurements), progress_console(form))
    page = str(site.write(source, target, with_history=with_history).absolute())
    finish_made("report", [Item(name="site", words=f"report: {page}", path=page)], form)


@click.command()
@click.argument("form", type=click.Choice(FORMS), metavar=f"[{'|'.join(FORMS)}]")
@_RESULTS
@click.option(
    "--out", "target", help="File to write, or - for standard output (default: a name that suits the format)."
)
@click.option(
    "--format", "printed", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to print what was written: text for people, or JSON (schema: conformance/schemas) for programs.",
)  # fmt: skip
def export(form: str, results: Sequence[pathlib.Path], target: str | None, printed: str) -> None:
    """Write RESULTS in a format for other tools.

    json is a summary, csv and parquet hold cells, markdown suits a pull request, and badge-json and badge-svg are
    badges. matrix is Markdown with one row for each stack and algorithm, and bencher is for benchmark trackers.
    """
    if target == "-" and printed == "json":
        raise UserError("--out - leaves no room for --format json on standard output", "name a file with --out")
    exported = commands.export.compute(form, _source(results))
    if target == "-":
        echo(exported.content)
        return
    finish(
        commands.export.write(exported, target),
        printed,
        lambda exported, console: console.print(str(exported.path), soft_wrap=True),
    )


@click.command()
@_RESULTS
@out_folder("published")
@FORMAT
def publish(results: Sequence[pathlib.Path], target: pathlib.Path, form: str) -> None:
    """Compress RESULTS for keeping.

    Writes a file for each stack into a folder, without data that no report shows. Results of scenarios, whose flows
    share a network, go into its folder "scenarios". Existing files keep algorithms that RESULTS lack.
    """
    from conformance.reporting import published

    read = _source(results)
    items = [
        Item(name=path.name, words=f"{path}: {path.stat().st_size / 1000:.0f} kB", path=str(path))
        for path in (*published.write(read, target), *published.write_scenarios(read, target))
    ]
    finish_made("publish", items, form)


@click.command()
@click.argument("what", type=click.Choice(["heatmap", "loss", "compare"]))
@_RESULTS
@click.option(
    "--as", "kind", type=click.Choice(["pdf", "svg", "png"]), default="pdf", show_default=True, help="Kind of figure."
)
@click.option("--algorithm", help="Draw this algorithm only.")
@click.option("--stack", help="Draw this stack only.")
@click.option("--out", "folder", default="figures", show_default=True, type=click.Path(path_type=pathlib.Path))
@FORMAT
def plot(
    what: str,
    results: Sequence[pathlib.Path],
    kind: str,
    algorithm: str | None,
    stack: str | None,
    folder: pathlib.Path,
    form: str,
) -> None:
    """Draw figures for papers.

    heatmap and loss draw utilization or loss with zone and difference; compare draws several schemes side by side.
    """
    extras.need("figures")
    from conformance.reporting import charts, heatmaps

    series = heatmaps.all_series(_source(results).measurements)
    items = []
    for name, chart in charts.chosen(what, series, algorithm, stack):
        path = str(files.write(folder / f"{name}.{kind}", charts.render(chart, kind), "choose another --out"))
        items.append(Item(name=name, words=path, path=path))
    finish_made("plot", items, form)


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@FORMAT
def fidelity(results: Sequence[pathlib.Path], form: str) -> None:
    """Compare RESULTS with the published cells.

    Prints the bias and the root mean square of the differences, by algorithm.
    """
    finish(commands.fidelity.compute(results or (pathlib.Path(DEFAULT_RESULTS),)), form, text.dev.show_fidelity)


@click.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@out_path("Results file to write.", required=True)
@FORMAT
def merge(results: Sequence[pathlib.Path], target: pathlib.Path, form: str) -> None:
    """Merge the RESULTS of shards into one file.

    Refuses runs that differ in build, kernel or lab, and a trial with two different results.
    """
    merged = commands.merge.compute(results, target)
    _warn(merged.left_out)
    finish(merged, form, lambda merged, console: console.print(f"{target}: {merged.trials} trials", soft_wrap=True))


COMMANDS = (report, plot, export, publish, merge)
DEV_COMMANDS = (fidelity,)

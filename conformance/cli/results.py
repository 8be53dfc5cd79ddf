"""Commands over results: reports, comparisons with published figures."""

import pathlib

import click

from conformance.cli.base import out
from conformance.store import DEFAULT_RESULTS


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option(
    "--out", "target", default="report/index.html", show_default=True, type=click.Path(path_type=pathlib.Path)
)
@click.option("--terminal/--no-terminal", default=True, help="Also draw the heatmaps in the terminal.")
def report(results, target, terminal):
    """Heatmaps of RESULTS, their zones and the differences: in the terminal and as one HTML page."""
    from conformance.reporting import html, tables
    from conformance.reporting import terminal as drawn

    heatmaps = tables.from_files(results or (pathlib.Path(DEFAULT_RESULTS),))
    if terminal:
        drawn.show(heatmaps, out)
    html.write(heatmaps, target)
    out.print(f"report: {target.absolute()}", soft_wrap=True)


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option("--published", type=click.Path(path_type=pathlib.Path), help="CSV of published cells to compare with.")
def fidelity(results, published):
    """Compare RESULTS with the published cells: bias and rms by algorithm."""
    from conformance import fidelity as compare

    compare.show(results or (pathlib.Path(DEFAULT_RESULTS),), published, out)


COMMANDS = (report, fidelity)

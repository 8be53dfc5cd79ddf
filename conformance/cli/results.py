"""Commands over results and zones: reports, comparisons with published figures, zone tools."""

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


@click.group()
def zones():
    """Zone specs: check, derive, choose smoke cells."""


@zones.command("check")
@click.argument("files", nargs=-1, type=click.Path())
def zones_check(files):
    """Check zone files (all that ship, if none is named) against schema, invariants and the mutants' record."""
    from conformance import detected, specs

    for path in files or specs.zone_files("*"):
        zone = specs.zone(path)
        said = detected.check(zone, pathlib.Path(path))
        out.print(f"ok  {zone.id}: {len(zone.cells)} cells, {f'{said}, ' if said else ''}{path}", soft_wrap=True)


@zones.command("derive")
@click.argument("results", type=click.Path(path_type=pathlib.Path))
@click.option("--algorithm", required=True)
@click.option("--version-text", required=True, help="Which version of the algorithm, with its document.")
@click.option(
    "--metric",
    type=click.Choice(["utilization", "lost_pct", "queue_mean_bdp"]),
    default="utilization",
    show_default=True,
)
@click.option("--profile", default="atc25", show_default=True, help="Which of the results' profiles.")
@click.option("--out", "target", required=True, type=click.Path(path_type=pathlib.Path))
def zones_derive(results, algorithm, version_text, metric, profile, target):
    """Derive the zone of ALGORITHM from the reference runs in RESULTS."""
    from conformance import derive

    zone = derive.derive_file(results, algorithm, version_text, target, metric, profile)
    out.print(f"zone {zone.id}: {len(zone.cells)} cells, {len(zone.smoke)} smoke cells, {target}", soft_wrap=True)


@zones.command("smoke")
def zones_smoke():
    """Choose the smoke cells of all zones anew: those that tell each from the others."""
    from conformance import derive

    for zone in derive.choose_smoke_cells():
        out.print(f"zone {zone.id}: {', '.join(cell.id for cell in zone.smoke) or 'none'}", soft_wrap=True)


@zones.command("apart")
@click.argument("algorithms", nargs=-1, required=True)
@click.option("--profile", default="atc25", show_default=True, help="The zones' profile.")
def zones_apart(algorithms, profile):
    """List the cells that tell ALGORITHMS apart: where no value is permitted to both of a pair."""
    from conformance import derive

    for first, second, metric, n, cells in derive.apart(algorithms, profile):
        names = ", ".join(f"{cell.id} ({width:.1f})" for cell, width in cells)
        out.print(
            f"{first} and {second}, {metric}: {len(cells)} of {n} cells{': ' if cells else ''}{names}", soft_wrap=True
        )


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option("--published", type=click.Path(path_type=pathlib.Path), help="CSV of published cells to compare with.")
def fidelity(results, published):
    """Compare RESULTS with the published cells: bias and rms by algorithm."""
    from conformance import fidelity as compare

    compare.show(results or (pathlib.Path(DEFAULT_RESULTS),), published, out)


COMMANDS = (report, fidelity, zones)

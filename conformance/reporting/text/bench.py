"""How `bench` shows what trials and sites cost."""

from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.support.console import duration

if TYPE_CHECKING:
    from conformance.commands.bench import Benchmark, CellCost, SiteBenchmark
    from conformance.commands.bench_figures import Figures

_GRID = "150 cells x 20 trials"


def show(found: "Benchmark", console: rich.console.Console) -> None:
    """Show a row for each cell, then what a whole grid would take; or a row for each stack and rate."""
    title = "cost of a 10-second trial on one core, by stack"
    if not found.by_stack:
        title = f"{found.rows[0].algorithm} on {found.rows[0].stack}: cost of a trial on one core"
    table = rich.table.Table(title=title, title_justify="left")
    for name in ("stack", "algorithm", "cell") if found.by_stack else ("cell",):
        table.add_column(name, overflow="fold")  # half of a cell's id says nothing
    for name in ("utilization", "wall s", "virtual s", "virtual / wall", "system calls a packet"):
        table.add_column(name, justify="right")
    for row in found.rows:
        cell = row.cell.id if row.cell else ""
        table.add_row(*((row.stack, row.algorithm, cell) if found.by_stack else (cell,)), *_figures(row))
    console.print(table)
    if found.known and not found.by_stack:
        console.print(
            f"start and calibration: {found.start_s:.2f} s a cell; {_GRID} on {found.cores} cores:"
            f" about {duration(found.grid_s)}"
        )


def _figures(row: "CellCost") -> tuple[str, ...]:
    cost = row.cost
    if cost is None:
        return (row.trouble or "",)
    calls = "" if cost.calls_a_packet is None else f"{cost.calls_a_packet:.1f}"
    return (
        f"{cost.utilization:.3f}", f"{cost.wall_s:.2f}", f"{cost.virtual_s:.1f}",
        f"{cost.virtual_s / cost.wall_s:.0f}", calls,
    )  # fmt: skip


def show_figures(found: "Figures", console: rich.console.Console) -> None:
    """Show a row for each figure, beside what it should be at most."""
    table = rich.table.Table(title=f"what it takes on {found.cores} cores", title_justify="left")
    table.add_column("what", overflow="fold")
    for name in ("wall s", "target"):
        table.add_column(name, justify="right")
    for figure in found.figures:
        seconds = (figure.trouble or "") if figure.seconds is None else f"{figure.seconds:.2f}"
        table.add_row(figure.name, seconds, "" if figure.target_s is None else f"{figure.target_s:g}")
    console.print(table)


def show_site(found: "SiteBenchmark", console: rich.console.Console) -> None:
    """Show what building a site took, and how large it is."""
    site = found.site
    console.print(f"results: {site.trials} trials, {site.results_mb:.0f} MB")
    console.print(f"built in {site.built_s:.1f} s, of which reading {site.reading_s:.1f} s")
    console.print(f"front page: {site.front_mb:.3f} MB; site: {site.files} files, {site.site_mb:.1f} MB")
    console.print(f"most memory: {site.peak_mb:.0f} MB")

"""Show what trials and whole commands cost (`conformance dev bench`) in a terminal."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.support.console import duration, table

if TYPE_CHECKING:
    from conformance.commands.bench import Benchmark, CellCost, Cost, Figures

_GRID = "150 cells x 20 trials"
#: {header of a column: function that gives its text}; headers are broken so that the table of stacks fits 80 columns
_Columns = dict[str, Callable[["CellCost", "Cost"], str]]
_STACK, _ALGORITHM, _RATE, _CELL, _VIRTUAL = "stack", "algo-\nrithm", "Mbit/s", "cell", "virtual\ns"
_COSTS: _Columns = {
    "utili-\nzation": lambda row, cost: f"{cost.utilization:.3f}",
    "wall\ns": lambda row, cost: f"{cost.wall_s:.2f}",
    _VIRTUAL: lambda row, cost: f"{cost.virtual_s:.1f}",
    "virtual\n/ wall": lambda row, cost: f"{cost.virtual_s / cost.wall_s:.0f}",
    "system\ncalls a\npacket": lambda row, cost: "" if cost.calls_a_packet is None else f"{cost.calls_a_packet:.1f}",
}
_BY_CELL: _Columns = {_CELL: lambda row, cost: row.cell.id if row.cell else "", **_COSTS}
_BY_STACK: _Columns = {
    _STACK: lambda row, cost: row.stack,
    _ALGORITHM: lambda row, cost: row.algorithm or "",
    _RATE: lambda row, cost: f"{row.cell.bandwidth_mbps:g}" if row.cell else "",
    **{name: text for name, text in _COSTS.items() if name != _VIRTUAL},
}


def show(benchmark: "Benchmark", console: rich.console.Console) -> None:
    """Show a row for each cell, then what a whole grid would take; or a row for each stack and rate."""
    title = "cost of a 10-second trial at 20 ms on one core, by stack"
    if not benchmark.by_stack:
        title = f"{benchmark.rows[0].algorithm} on {benchmark.rows[0].stack}: cost of a trial on one core"
    columns = _BY_STACK if benchmark.by_stack else _BY_CELL
    rows = [[text(row, row.cost) for text in columns.values()] for row in benchmark.rows if row.cost]
    if rows:
        # Half of a stack's name or of a cell's id says nothing.
        names = (_STACK, _CELL)
        numbers = set(columns) - {*names, _ALGORITHM}
        console.print(table(columns, rows, numbers, fold=True, whole=names, title=title))
    for note in _not_measured(benchmark):
        console.print(note, soft_wrap=True)
    if benchmark.start_s is not None and benchmark.grid_s is not None:
        console.print(
            f"start and calibration: {benchmark.start_s:.2f} s a cell; {_GRID} on {benchmark.cores} cores:"
            f" about {duration(benchmark.grid_s)}"
        )


def _not_measured(benchmark: "Benchmark") -> Iterator[str]:
    """Yield a line for each cell that failed, then one for all stacks that could not be tried."""
    cell_costs = [row for row in benchmark.rows if row.trouble and row.cell]
    yield from (f"{row.algorithm} on {row.stack} at {row.cell and row.cell.id}: {row.trouble}" for row in cell_costs)
    why: dict[str, list[str]] = {}
    for row in benchmark.rows:
        if row.trouble and not row.cell:
            why.setdefault(row.trouble, []).append(row.stack)
    if why:
        yield "not measured: " + "; ".join(f"{', '.join(stacks)} ({trouble})" for trouble, stacks in why.items())


def _time(seconds: float, form: str = ".2f") -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds:{form}}"


def show_figures(figures: "Figures", console: rich.console.Console) -> None:
    """Show a row for each figure: the time it takes, took before guests were made faster, and should take at most."""
    rows = []
    for figure in figures.figures:
        seconds = (figure.trouble or "") if figure.seconds is None else _time(figure.seconds)
        before, target = ("" if limit is None else _time(limit, "g") for limit in (figure.before_s, figure.target_s))
        estimate = "" if figure.estimate_s is None else f"{figure.estimate_s:.1f}, {figure.left_s:.1f}"
        rows.append((figure.name, seconds, before, target, estimate))
    numbers = ("wall s", "before", "target", "first estimate,\nactually left")
    console.print(table(("what", *numbers), rows, numbers, title=f"time taken on {figures.cores} cores", fold=True))

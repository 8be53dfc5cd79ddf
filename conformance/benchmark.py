"""`conformance bench`: what trials cost, by cell, and what the full grid would. Prints; asserts nothing."""

import itertools
import os
import pathlib
import statistics
import tempfile

import rich.table

from conformance import engine, specs, store
from conformance.model.setting import Cell
from conformance.model.trial import Outcome

_BANDWIDTHS, _DELAYS, _LOSSES = (10, 30, 50), (1, 20, 100), (0, 1, 4)
_GRID_CELLS, _GRID_TRIALS = 150, 20


def run(algorithm, choice, trials, console):
    """Measure 27 cells on one core, nothing from the store; print a row each and the extrapolation."""
    bench = engine.bench(choice)
    cells = [Cell(*c) for c in itertools.product(_BANDWIDTHS, _DELAYS, _LOSSES)]
    work = [(algorithm, specs.profile("atc25", cell)) for cell in cells]
    table = rich.table.Table(
        title=f"{algorithm} on {bench.adapter.name}: cost of a trial on one core", title_justify="left"
    )
    for name in ("cell", "utilization", "wall s", "virtual s", "virtual / wall"):
        table.add_column(name, justify="left" if name == "cell" else "right")
    per_cell = {}
    starts = []
    with tempfile.TemporaryDirectory() as folder:
        kept = store.Store(pathlib.Path(folder) / "results.jsonl")
        with engine.Run(bench, kept, work, engine.seeds(trials), workers=1) as running:
            for key in work:
                measurements = running.result(*key)
                good = [m for m in measurements if m.outcome is Outcome.OK]
                if not good:
                    table.add_row(key[1].cell.id, str(measurements[0].outcome), "", "", "")
                    continue
                walls = [m.host["wall_s"] for m in good]
                # A cell's first trial also pays for its calibration, a guest's first for the guest's start.
                wall_s = statistics.median(walls[1:] or walls)
                starts.append(walls[0] - wall_s)
                virtual_s = statistics.median(m.metrics["virtual_s"] for m in good)
                utilization = statistics.median(m.utilization for m in good)
                per_cell[key[1].cell] = wall_s
                table.add_row(
                    key[1].cell.id,
                    f"{utilization:.3f}",
                    f"{wall_s:.2f}",
                    f"{virtual_s:.1f}",
                    f"{virtual_s / wall_s:.0f}",
                )
    console.print(table)
    if per_cell:
        cores = len(os.sched_getaffinity(0))
        start_s = statistics.mean(starts)
        total_s = _GRID_CELLS * (_GRID_TRIALS * statistics.mean(per_cell.values()) + start_s)
        console.print(
            f"start and calibration: {start_s:.2f} s a cell;"
            f" {_GRID_CELLS} cells x {_GRID_TRIALS} trials on {cores} cores:"
            f" about {engine.duration(total_s / cores)}"
        )

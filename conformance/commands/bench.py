"""`conformance bench`: what trials cost, by cell and by stack. Prints; asserts nothing."""

import contextlib
import dataclasses
import itertools
import os
import pathlib
import statistics
import tempfile

import rich.table

from conformance.catalogue import documents
from conformance.engine import benches, runs
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.trial import Outcome
from conformance.results import store
from conformance.support.console import duration

_BANDWIDTHS, _DELAYS, _LOSSES = (10, 30, 50), (1, 20, 100), (0, 1, 4)
_GRID_CELLS, _GRID_TRIALS = 150, 20
#: transfers of 10 s at full rate, by which stacks are compared
_STACK_CELLS = (Cell(10, 20, 0), Cell(50, 20, 0))
_PACKET_BYTES = 1500


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """Medians over the trials of a cell; `start_s` is what its first trial took beyond that."""

    wall_s: float
    start_s: float
    virtual_s: float
    utilization: float
    calls_a_packet: float | None


def run(algorithm, choice, trials, console):
    """Measure 27 cells on one core, nothing from the store; print a row each and the extrapolation."""
    bench = benches.find(choice)
    cells = [Cell(*c) for c in itertools.product(_BANDWIDTHS, _DELAYS, _LOSSES)]
    table = _table(f"{algorithm} on {bench.adapter.name}: cost of a trial on one core", "cell")
    found = []
    for cell, cost in _costs(bench, algorithm, cells, trials):
        if isinstance(cost, Cost):
            found.append(cost)
        table.add_row(cell.id, *_columns(cost))
    console.print(table)
    if found:
        cores = len(os.sched_getaffinity(0))
        start_s = statistics.mean(cost.start_s for cost in found)
        total_s = _GRID_CELLS * (_GRID_TRIALS * statistics.mean(cost.wall_s for cost in found) + start_s)
        console.print(
            f"start and calibration: {start_s:.2f} s a cell;"
            f" {_GRID_CELLS} cells x {_GRID_TRIALS} trials on {cores} cores:"
            f" about {duration(total_s / cores)}"
        )


def run_stacks(choice, trials, console):
    """One row for each stack that ships and is built, and rate: CUBIC where it has that, else its first algorithm."""
    table = _table("cost of a 10-second trial on one core, by stack", "stack", "algorithm", "cell")
    for about in manifest.shipped():
        offered = about.offered()
        if not offered:
            continue
        try:
            bench = benches.find(dataclasses.replace(choice, stack=about.name))
        except UserError as error:
            table.add_row(about.name, "", "", str(error).partition(";")[0])
            continue
        algorithm = "cubic" if "cubic" in offered else offered[0]
        for cell, cost in _costs(bench, algorithm, _STACK_CELLS, trials):
            table.add_row(about.name, algorithm, cell.id, *_columns(cost))
    console.print(table)


def _costs(bench, algorithm, cells, trials):
    """Yield (cell, Cost, or what happened instead), measured on one core."""
    work = [(algorithm, documents.profile(bench.profile, cell)) for cell in cells]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        kept = store.Store(pathlib.Path(folder) / "results.jsonl")
        running = stack.enter_context(runs.Run(bench, kept, work, runs.seeds(trials), workers=1))
        for key in work:
            measurements = running.result(*key)
            good = [m for m in measurements if m.outcome is Outcome.OK]
            yield key[1].cell, _cost(good) if good else f"{measurements[0].outcome}: {measurements[0].message}"


def _cost(measurements):
    walls = [m.host["wall_s"] for m in measurements]
    # A cell's first trial also pays for its calibration, a guest's first for the guest's start.
    wall_s = statistics.median(walls[1:] or walls)
    calls = [m.host["system_calls"] / _packets(m) for m in measurements if "system_calls" in m.host]
    return Cost(
        wall_s=wall_s,
        start_s=walls[0] - wall_s,
        virtual_s=statistics.median(m.metrics["virtual_s"] for m in measurements),
        utilization=statistics.median(m.utilization for m in measurements),
        calls_a_packet=statistics.median(calls) if calls else None,
    )


def _packets(measurement):
    """Full packets that the server's bytes come to: interfaces count a batch that is segmented later as one."""
    interfaces = measurement.evidence["interfaces"]["server"]
    return sum(counters["tx_bytes"] for counters in interfaces.values()) / _PACKET_BYTES


def _table(title, *names):
    table = rich.table.Table(title=title, title_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")  # half of a cell's id says nothing
    for name in ("utilization", "wall s", "virtual s", "virtual / wall", "system calls a packet"):
        table.add_column(name, justify="right")
    return table


def _columns(cost):
    if isinstance(cost, str):
        return (cost,)
    calls = "" if cost.calls_a_packet is None else f"{cost.calls_a_packet:.1f}"
    return (
        f"{cost.utilization:.3f}", f"{cost.wall_s:.2f}", f"{cost.virtual_s:.1f}",
        f"{cost.virtual_s / cost.wall_s:.0f}", calls,
    )  # fmt: skip

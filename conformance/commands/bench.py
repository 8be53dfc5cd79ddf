"""`conformance dev bench`: measure what trials cost, by cell or by stack."""

import contextlib
import dataclasses
import itertools
import pathlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence

from conformance.catalogue import documents
from conformance.commands.result import Result
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice
from conformance.lab import building, manifest
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import files, limits

_BANDWIDTHS, _DELAYS, _LOSSES = (10, 30, 50), (1, 20, 100), (0, 1, 4)
#: the cells of a zone over the full grid, and the trials of each, to which the cost of a trial is extrapolated
GRID_CELLS, GRID_TRIALS = 150, 20
#: the cells in which stacks are compared; a transfer takes 10 s at full rate
_STACK_CELLS = (Cell(10, 20, 0), Cell(50, 20, 0))
_PACKET_BYTES = 1500


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Medians over the trials of a cell, except `start_s`: the time to start the guest and to calibrate the cell."""

    wall_s: float
    start_s: float
    virtual_s: float
    utilization: float
    calls_a_packet: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CellCost:
    """The cost of a trial in a cell."""

    stack: str
    algorithm: str | None = None
    cell: Cell | None = None
    cost: Cost | None = None
    #: Why no cost was measured.
    trouble: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Result):
    """The cost of trials on one core: by cell for one algorithm, or by stack."""

    SCHEMA = "bench"
    SHOWN = ("rows", "cores", "start_s", "grid_s")

    rows: tuple[CellCost, ...]
    by_stack: bool
    cores: int

    @property
    def known(self) -> list[Cost]:
        """The costs of the cells that could be measured."""
        return [row.cost for row in self.rows if row.cost]

    @property
    def start_s(self) -> float | None:
        """The mean time to start a guest and calibrate a path, in seconds per cell; None of stacks and if unknown."""
        return None if self.by_stack or not self.known else statistics.mean(cost.start_s for cost in self.known)

    @property
    def grid_s(self) -> float | None:
        """The time that all cells of the full grid would take on all cores, in seconds; None if start_s is."""
        if self.start_s is None:
            return None
        wall_s = statistics.mean(cost.wall_s for cost in self.known)
        return GRID_CELLS * (GRID_TRIALS * wall_s + self.start_s) / self.cores


def cores() -> int:
    """Return how many guests can run at a time."""
    return limits.workers()


def compute(algorithm: str, choice: Choice, trials: int) -> Benchmark:
    """Measure an algorithm in 27 cells on one core, without using earlier results. Raises UserError."""
    bench = benches.find(choice, remembers=False)
    cells = [Cell(*c) for c in itertools.product(_BANDWIDTHS, _DELAYS, _LOSSES)]
    return Benchmark(rows=tuple(_costs(bench, algorithm, cells, trials)), by_stack=False, cores=cores())


def compute_stacks(choice: Choice, trials: int) -> Benchmark:
    """Measure every stack that ships at two rates, with CUBIC if the stack has it, else with its first algorithm."""
    rows: list[CellCost] = []
    for about in manifest.shipped():
        offered = about.offered()
        if not offered:
            continue
        try:
            bench = benches.find(dataclasses.replace(choice, stack=about.name, source=()))
        except building.NotBuilt:
            rows.append(CellCost(stack=about.name, trouble="not built"))
            continue
        except UserError as error:
            rows.append(CellCost(stack=about.name, trouble=str(error.cause)))
            continue
        rows += _costs(bench, "cubic" if "cubic" in offered else offered[0], _STACK_CELLS, trials)
    return Benchmark(rows=tuple(rows), by_stack=True, cores=cores())


def _costs(bench: Bench, algorithm: str, cells: Sequence[Cell], trials: int) -> Iterator[CellCost]:
    """Yield the cost of each cell, measured on one core, or what went wrong there."""
    work = [(algorithm, documents.profile(bench.profile, cell)) for cell in cells]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=files.temp_folder()))
        kept = store.Store(pathlib.Path(folder) / "results.jsonl")
        running = stack.enter_context(runs.Run(bench, kept, work, runs.seeds(trials), workers=1))
        for key in work:
            measurements = running.result(*key)
            good = [m for m in measurements if m.outcome is Outcome.OK]
            row = CellCost(stack=bench.adapter.name, algorithm=algorithm, cell=key[1].cell)
            if good:
                yield dataclasses.replace(row, cost=_cost(good))
            else:
                yield dataclasses.replace(row, trouble=f"{measurements[0].outcome}: {measurements[0].message}")


def _cost(measurements: Sequence[Measurement]) -> Cost:
    calls = [m.host["system_calls"] / _packets(m) for m in measurements if "system_calls" in m.host]
    return Cost(
        wall_s=statistics.median(m.host["wall_s"] for m in measurements),
        start_s=sum(m.host.get(name, 0.0) for m in measurements for name in ("start_s", "calibration_s")),
        virtual_s=statistics.median(m.metrics["virtual_s"] for m in measurements),
        utilization=statistics.median(m.utilization for m in measurements if m.utilization is not None),
        calls_a_packet=statistics.median(calls) if calls else None,
    )


def _packets(measurement: Measurement) -> float:
    """Return the bytes that the server sent, counted in full packets.

    Packet counters of interfaces would not do: they count a batch that is segmented later as one packet.
    """
    interfaces = measurement.evidence["interfaces"]["server"]
    sent_bytes: int = sum(counters["tx_bytes"] for counters in interfaces.values())
    return sent_bytes / _PACKET_BYTES

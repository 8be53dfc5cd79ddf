"""`conformance dev bench`: measure what trials cost, by cell or by stack, and what whole commands cost."""

import contextlib
import dataclasses
import itertools
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

from conformance.catalogue import documents, scenarios
from conformance.commands.result import Result
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice
from conformance.engine.progress import RunProgress
from conformance.lab import building, cores as cores_of_guests, manifest, virtual
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.judging.question import Key
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import files, limits, scratch as scratch_place
from conformance.support.console import seconds_of

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
    #: How many guests can run at a time.
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


def compute(algorithm: str, choice: Choice, trials: int) -> Benchmark:
    """Measure an algorithm in 27 cells on one core, without using earlier results. Raises UserError."""
    bench = benches.find(choice, remembers=False)
    cells = [Cell(*c) for c in itertools.product(_BANDWIDTHS, _DELAYS, _LOSSES)]
    return Benchmark(rows=tuple(_costs(bench, algorithm, cells, trials)), by_stack=False, cores=limits.workers())


def compute_stacks(choice: Choice, trials: int) -> Benchmark:
    """Measure every stack that ships at two rates, with CUBIC if the stack has it, else with its first algorithm."""
    rows: list[CellCost] = []
    for about in manifest.shipped():
        offered = about.offered()
        if not offered:
            continue
        try:
            bench = benches.find(dataclasses.replace(choice, stack=about.name, source=()))
        except UserError as error:
            trouble = "not built" if isinstance(error, building.NotBuilt) else str(error.cause)
            rows.append(CellCost(stack=about.name, trouble=trouble))
            continue
        rows += _costs(bench, "cubic" if "cubic" in offered else offered[0], _STACK_CELLS, trials)
    return Benchmark(rows=tuple(rows), by_stack=True, cores=limits.workers())


def _costs(bench: Bench, algorithm: str, cells: Sequence[Cell], trials: int) -> Iterator[CellCost]:
    """Yield the cost of each cell, measured on one core, or what went wrong there."""
    work = [(algorithm, documents.profile(bench.profile, cell)) for cell in cells]
    with _run(bench, work, trials, workers=1) as running:
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
    left_bytes: int = measurement.flows[0]["left_bytes"]
    return left_bytes / _PACKET_BYTES


#: How the cost of a trial is split into parts: its cell, the seconds' worth of data of a short transfer, and the trials
#: of each. The usual transfer takes 10 s; the short one, of ten packets, costs the same but for the packets.
_CELL, _FEW_PACKETS_S, _REPEATED = Cell(10, 20, 0), 0.012, 8
#: scenarios of many flows, and how long a trial of each should take at most, in seconds
_SHARED = (("ten-flows", 6.0), ("hundred-flows", 60.0))
#: {what: seconds at commit 13184142, before guests were made faster, and at most now} of figures, some of which only
#: --whole measures (docs/performance.md)
_CALL, _START, _TCP_TRIAL = "a system call that does nothing", "start of a guest", f"Linux TCP, a trial at {_CELL.id}"
_SMOKE, _ALL_OF_CUBIC = "quinn's CUBIC smoke tier", "pytest -m cubic"
_GRID, _CLAUSES = f"CUBIC, {GRID_CELLS} cells x {GRID_TRIALS} trials", "bbr_draft of ngtcp2-1.11"
_AIMS = {
    _CALL: (6.4e-6, 4.8e-6), _START: (0.7, 0.3), _TCP_TRIAL: (0.11, 0.065), _SMOKE: (20.0, 12.0),
    _ALL_OF_CUBIC: (141.0, 90.0), _GRID: (365.0, 220.0), _CLAUSES: (178.0, 110.0),
}  # fmt: skip
#: (stack, cell, seconds' worth of data, seconds at 13184142, at most now) of a trial of CUBIC. At 1 Gbit/s, the body of
#: ten seconds has no room in a guest.
_QUIC = (
    ("picoquic", _CELL, 10, 0.46, 0.5), ("quinn", _CELL, 10, 0.39, 0.24), ("quinn", Cell(50, 20, 0), 10, 1.66, 1.0),
    ("quinn", Cell(1000, 20, 0), 1, 3.3, 2.0),
)  # fmt: skip
#: how often a guest makes the call of _CALL, and what it prints before and after
_CALLS, _BEGIN, _END = 300_000, "calls begin", "calls end"
_CALLER = f"import os\nprint({_BEGIN!r})\nfor _ in range({_CALLS}):\n    os.getppid()\nprint({_END!r})\n"
#: wall seconds that this may take
_CALLS_TIMEOUT_S = 60.0
_LEFT_OUT = "not measured; give --whole (make: WHOLE=--whole)"
#: the end of the line that pytest prints every ten seconds
_LEFT = re.compile(r"\d+ of \d+ tests, about (.*) left$")
#: exit statuses of a complete session of pytest: all tests passed, or some failed, which does not matter here
_MEASURED = (0, 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BenchFigure:
    """The wall seconds that something takes, and the most that it should take on two cores.

    `before_s`: what it took on two idle cores before guests were made faster (commit 13184142). `trouble`: why it was
    not measured. `estimate_s`: the time left by the command's first estimate, if it makes one; `left_s`: the time that
    was really left then.
    """

    name: str
    seconds: float | None = None
    before_s: float | None = None
    target_s: float | None = None
    estimate_s: float | None = None
    left_s: float | None = None
    trouble: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Result):
    """All figures, in order."""

    SCHEMA = "bench-figures"

    figures: tuple[BenchFigure, ...]
    cores: int


def compute_figures(choice: Choice, whole: bool) -> Figures:
    """Measure all figures; without `whole`, commands that take minutes are listed but not run. Raises UserError."""
    figures = [_call(choice), *_parts(choice), *_tens(choice), *_quic(choice), *_shared(choice)]
    if whole:
        figures += _whole(choice)
    else:
        figures += [_aimed(name, trouble=_LEFT_OUT) for name in (_ALL_OF_CUBIC, _GRID, _CLAUSES)]
    return Figures(figures=tuple(figures), cores=limits.workers())


def _aimed(name: str, seconds: float | None = None, trouble: str | None = None) -> BenchFigure:
    """Return the figure of this name in _AIMS."""
    before_s, target_s = _AIMS[name]
    return BenchFigure(name=name, seconds=seconds, before_s=before_s, target_s=target_s, trouble=trouble)


def _call(choice: Choice) -> BenchFigure:
    """Measure a system call in a guest, by a program that makes many of them."""
    at_s: dict[str, float] = {}
    with cores_of_guests.one_core() as core, scratch_place.folder() as scratch:
        (scratch / "caller.py").write_text(_CALLER)
        kernel = benches.find(choice).place("cubic").kernel
        guest = virtual.boot(kernel, scratch, core, run="/run/scratch/caller.py")
        deadline_s = time.monotonic() + _CALLS_TIMEOUT_S
        try:
            while _END not in at_s and guest.exit_status is None and time.monotonic() < deadline_s:
                printed = (scratch / "console.log").read_text(errors="replace")
                at_s = {mark: at_s.get(mark, time.monotonic()) for mark in (_BEGIN, _END) if mark in printed}
                time.sleep(0.002)
        finally:
            guest.end()
    if len(at_s) < 2:
        return _aimed(_CALL, trouble="the guest did not end: run `conformance doctor`")
    return _aimed(_CALL, (at_s[_END] - at_s[_BEGIN]) / _CALLS)


def _shared(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the cost of a trial of each scenario with many kernel flows, on one core."""
    bench = benches.find(choice)
    for name, target_s in _SHARED:
        scenario = scenarios.find(name)
        setting = scenario.setting(scenario.point({}))
        with _run(bench, [("cubic", setting)], 1, workers=1) as run:
            (measured,) = run.result("cubic", setting)
            yield BenchFigure(
                name=f"one trial of {name}", seconds=measured.host.get("wall_s"), target_s=target_s,
                trouble=None if measured.outcome is Outcome.OK else f"{measured.outcome}: {measured.message}",
            )  # fmt: skip


def _parts(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the cost of each part of one trial of Linux TCP, on one core."""
    bench = benches.find(choice, remembers=False)
    ordinary = documents.profile(bench.profile, _CELL)
    few = documents.profile(bench.profile, _CELL, transfer_s=_FEW_PACKETS_S)
    walls = {}
    with _run(bench, [("cubic", ordinary), ("cubic", few)], _REPEATED, workers=1) as run:
        for setting in (ordinary, few):
            measured = run.result("cubic", setting)
            walls[setting] = _mean(measured, "wall_s")
            if setting is ordinary:
                yield _aimed(_START, measured[0].host.get("start_s"))
                yield BenchFigure(name="calibration of a cell", seconds=measured[0].host.get("calibration_s"))
    megabytes = (ordinary.transfer_bytes - few.transfer_bytes) / 1e6
    yield BenchFigure(name="trial, without its packets: processes, queues, counters", seconds=walls[few])
    yield _aimed(_TCP_TRIAL, walls[ordinary])
    yield BenchFigure(name=f"packets of a trial ({megabytes:.1f} MB)", seconds=max(walls[ordinary] - walls[few], 0.0))


def _tens(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the time that CUBIC takes in the 30 cells at 10 Mbit/s, with and without remembered calibrations."""
    bench = benches.find(choice)
    work = [("cubic", documents.profile(bench.profile, cell)) for cell in grid.cells("10mbps")]
    anew = benches.find(choice, remembers=False)
    for how, tried in (("calibrations made", anew), ("calibrations remembered", bench)):
        if tried is bench:
            with _run(bench, work, 1) as run:
                run.wait()
        yield _timed(f"CUBIC, 30 cells x 5 trials, {how}", tried, work, 5, 16)


def _quic(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the time that QUIC stacks take for a trial, and that quinn takes for the verdicts of its smoke tier."""
    for stack, cell, transfer_s, before_s, target_s in _QUIC:
        name = f"{stack}, a trial of CUBIC at {cell.id}, {transfer_s} s"
        row = BenchFigure(name=name, before_s=before_s, target_s=target_s)
        try:
            bench = benches.find(dataclasses.replace(choice, stack=stack))
        except UserError as error:
            yield dataclasses.replace(row, trouble=str(error.cause))
            continue
        setting = documents.profile(bench.profile, cell, transfer_s=transfer_s)
        with _run(bench, [("cubic", setting)], _REPEATED, workers=1) as run:
            yield dataclasses.replace(row, seconds=_mean(run.result("cubic", setting), "wall_s"))
    yield _pytest(_SMOKE, "cubic and smoke", dataclasses.replace(choice, stack="quinn"))


def _whole(choice: Choice) -> Iterator[BenchFigure]:
    bench = benches.find(choice)
    yield _pytest(_ALL_OF_CUBIC, "cubic", choice)
    work = [("cubic", documents.profile(bench.profile, cell)) for cell in grid.cells("full")]
    before_s, target_s = _AIMS[_GRID]
    yield dataclasses.replace(_timed(_GRID, bench, work, GRID_TRIALS, target_s), before_s=before_s)
    yield _pytest(_CLAUSES, "bbr_draft", dataclasses.replace(choice, stack="ngtcp2-1.11"))


#: estimates of the time that is left, or None, and when they were made
_Estimates = list[tuple[float | None, float]]


def _with_first(heard: _Estimates, figure: BenchFigure, ended_s: float) -> BenchFigure:
    """Return the figure with the first estimate and the time that was really left; the work ended at `ended_s`."""
    first = next(((left_s, at_s) for left_s, at_s in heard if left_s is not None), None)
    return dataclasses.replace(figure, estimate_s=first[0], left_s=ended_s - first[1]) if first else figure


def _timed(name: str, bench: Bench, work: Sequence[Key], trials: int, target_s: float) -> BenchFigure:
    """Measure a whole run, and how good the first estimate of its progress line is."""
    heard, began = _Estimates(), time.monotonic()
    with _run(bench, work, trials, on_trial=lambda p: heard.append((p.remaining_s(), time.monotonic()))) as run:
        run.wait()
    ended = time.monotonic()
    return _with_first(heard, BenchFigure(name=name, seconds=ended - began, target_s=target_s), ended)


@contextlib.contextmanager
def _run(
    bench: Bench, work: Sequence[Key], trials: int, workers: int | None = None,
    on_trial: Callable[[RunProgress], None] = lambda progress: None,
) -> Iterator[runs.Run]:  # fmt: skip
    """Run the work with a temporary results file of its own."""
    with tempfile.TemporaryDirectory(dir=files.temp_folder()) as folder:
        kept = store.Store(pathlib.Path(folder) / "results.jsonl")
        with runs.Run(bench, kept, work, runs.seeds(trials), workers, on_trial=on_trial) as run:
            yield run


def _mean(measurements: Sequence[Measurement], name: str) -> float:
    """Return the mean of the host's record `name` over trials that succeeded. Raises UserError if none did."""
    good = [float(m.host[name]) for m in measurements if m.outcome is Outcome.OK]
    if not good:
        raise UserError(f"no trial could be measured: {measurements[0].message}", "run `conformance doctor`")
    return statistics.mean(good)


def _pytest(name: str, marks: str, choice: Choice) -> BenchFigure:
    """Measure a whole session of pytest, as a user sees it, with a results file of its own."""
    heard, printed = _Estimates(), list[str]()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        began = time.monotonic()
        command = _session(marks, f"{folder}/results.jsonl", choice)
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True) as session:
            for line in session.stdout or ():
                printed.append(line)
                if left := _LEFT.search(line):
                    heard.append((seconds_of(left[1]), time.monotonic()))
        ended = time.monotonic()
        errors.seek(0)
        trouble = errors.read().strip()
    if session.returncode in _MEASURED:
        return _with_first(heard, _aimed(name, ended - began), ended)
    words = (trouble or "".join(printed).strip() or "it printed nothing").splitlines()[-1]
    return _aimed(name, trouble=words)


def _session(marks: str, results: str, choice: Choice) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-m", marks, "--results", results, *shlex.split(choice.options())]
    return [sys.executable, "-u", "-m", "pytest", "--pyargs", "conformance.suite", *options]

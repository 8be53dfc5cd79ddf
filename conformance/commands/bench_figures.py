"""`conformance dev bench --figures`: measure what whole commands cost, and where the time of one trial goes."""

import contextlib
import dataclasses
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
from conformance.commands.bench import GRID_CELLS, GRID_TRIALS, cores, forgetful
from conformance.commands.result import Result
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice
from conformance.engine.progress import Progress
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.judging.question import Key
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support.console import seconds_of
from conformance.support.record import Record

#: How the cost of a trial is split into parts: its cell, the seconds' worth of data of a short transfer, and the trials
#: of each. The usual transfer takes 10 s; the short one, of ten packets, costs the same but for the packets.
_CELL, _FEW_PACKETS_S, _REPEATED = Cell(10, 20, 0), 0.012, 8
#: scenarios of many flows, and how long a trial of each should take at most, in seconds
_SHARED = (("ten-flows", 6.0), ("hundred-flows", 60.0))
#: What only --whole measures: names, and how long each should take at most, in seconds. The limit for pytest was set
#: when zones had no points of scenarios, so a session without these is measured separately.
_WITHOUT_POINTS, _WITHOUT_POINTS_S = "pytest -m cubic, without points of scenarios", 165.0
_ALL_OF_CUBIC = "pytest -m cubic"
_GRID, _GRID_S = f"CUBIC, {GRID_CELLS} cells x {GRID_TRIALS} trials", 480.0
_LEFT_OUT = "not measured; give --whole (make: WHOLE=--whole)"
#: the end of the line that pytest prints every ten seconds
_LEFT = re.compile(r"\d+ of \d+ tests, about (.*) left$")
#: exit statuses of a complete session of pytest: all tests passed, or some failed, which does not matter here
_MEASURED = (0, 1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BenchFigure:
    """The wall seconds that something takes, and the most that it should take on two cores.

    `trouble`: why it was not measured. `estimate_s`: the time left by the command's first estimate, if it makes one;
    `left_s`: the time that was really left then.
    """

    name: str
    seconds: float | None = None
    target_s: float | None = None
    estimate_s: float | None = None
    left_s: float | None = None
    trouble: str | None = None


class FiguresRecord(Record):
    figures: list[BenchFigure]
    cores: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Result):
    """All figures, in order."""

    SCHEMA = "bench-figures"
    RECORD = FiguresRecord

    figures: tuple[BenchFigure, ...]
    cores: int


def compute(choice: Choice, whole: bool) -> Figures:
    """Measure all figures; without `whole`, commands that take minutes are listed but not run. Raises UserError."""
    figures = [*_parts(choice), *_tens(choice), *_quic(choice), *_shared(choice)]
    if whole:
        figures += _whole(choice)
    else:
        aims = ((_WITHOUT_POINTS, _WITHOUT_POINTS_S), (_ALL_OF_CUBIC, None), (_GRID, _GRID_S))
        figures += [BenchFigure(name=name, target_s=target_s, trouble=_LEFT_OUT) for name, target_s in aims]
    return Figures(figures=tuple(figures), cores=cores())


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
    bench = forgetful(benches.find(choice))
    ordinary = documents.profile(bench.profile, _CELL)
    few = documents.profile(bench.profile, _CELL, transfer_s=_FEW_PACKETS_S)
    walls = {}
    with _run(bench, [("cubic", ordinary), ("cubic", few)], _REPEATED, workers=1) as run:
        for setting in (ordinary, few):
            measured = run.result("cubic", setting)
            walls[setting] = _mean(measured, "wall_s")
            if setting is ordinary:
                yield BenchFigure(name="start of a guest", seconds=measured[0].host.get("start_s"))
                yield BenchFigure(name="calibration of a cell", seconds=measured[0].host.get("calibration_s"))
    megabytes = (ordinary.transfer_bytes - few.transfer_bytes) / 1e6
    yield BenchFigure(name="trial, without its packets: processes, queues, counters", seconds=walls[few])
    yield BenchFigure(name=f"packets of a trial ({megabytes:.1f} MB)", seconds=max(walls[ordinary] - walls[few], 0.0))


def _tens(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the time that CUBIC takes in the 30 cells at 10 Mbit/s, with and without remembered calibrations."""
    bench = benches.find(choice)
    work = [("cubic", documents.profile(bench.profile, cell)) for cell in grid.cells("10mbps")]
    for how, tried in (("calibrations made", forgetful(bench)), ("calibrations remembered", bench)):
        if tried is bench:
            with _run(bench, work, 1) as run:
                run.wait()
        yield _timed(f"CUBIC, 30 cells x 5 trials, {how}", tried, work, 5, 16)


def _quic(choice: Choice) -> Iterator[BenchFigure]:
    """Yield the time that QUIC stacks take for a trial, and that quinn takes for the verdicts of its smoke tier."""
    for stack in ("picoquic", "quinn"):
        name = f"{stack}, a trial of CUBIC at {_CELL.id}"
        try:
            bench = benches.find(dataclasses.replace(choice, stack=stack))
        except UserError as error:
            yield BenchFigure(name=name, target_s=0.5, trouble=str(error.cause))
            continue
        setting = documents.profile(bench.profile, _CELL)
        with _run(bench, [("cubic", setting)], _REPEATED, workers=1) as run:
            yield BenchFigure(name=name, seconds=_mean(run.result("cubic", setting), "wall_s"), target_s=0.5)
    yield _pytest("quinn's CUBIC smoke tier", "cubic and smoke", dataclasses.replace(choice, stack="quinn"), 20)


def _whole(choice: Choice) -> Iterator[BenchFigure]:
    bench = benches.find(choice)
    points = {documents.marker(kind) for kind, zone in documents.judging(bench.profile) if not zone.of_cells}
    yield _pytest(_WITHOUT_POINTS, f"cubic and not ({' or '.join(sorted(points))})", choice, _WITHOUT_POINTS_S)
    yield _pytest(_ALL_OF_CUBIC, "cubic", choice, None)
    work = [("cubic", documents.profile(bench.profile, cell)) for cell in grid.cells("full")]
    yield _timed(_GRID, bench, work, GRID_TRIALS, _GRID_S)


class _FirstEstimate:
    """The first estimate of the time that is left, and when it was made."""

    def __init__(self) -> None:
        self.left_s: float | None = None
        self._at_s = 0.0

    def hear(self, left_s: float | None) -> None:
        """Note an estimate, if it is the first."""
        if self.left_s is None and left_s is not None:
            self.left_s, self._at_s = left_s, time.monotonic()

    def beside(self, figure: BenchFigure, ended_s: float) -> BenchFigure:
        """Return the figure with the estimate and the time that was really left; the work ended at `ended_s`."""
        if self.left_s is None:
            return figure
        return dataclasses.replace(figure, estimate_s=self.left_s, left_s=ended_s - self._at_s)


def _timed(name: str, bench: Bench, work: Sequence[Key], trials: int, target_s: float) -> BenchFigure:
    """Measure a whole run, and how good the first estimate of its progress line is."""
    first, began = _FirstEstimate(), time.monotonic()
    with _run(bench, work, trials, on_trial=lambda progress: first.hear(progress.remaining_s())) as run:
        run.wait()
    ended = time.monotonic()
    return first.beside(BenchFigure(name=name, seconds=ended - began, target_s=target_s), ended)


@contextlib.contextmanager
def _run(
    bench: Bench, work: Sequence[Key], trials: int, workers: int | None = None,
    on_trial: Callable[[Progress], None] = lambda progress: None,
) -> Iterator[runs.Run]:  # fmt: skip
    """Run the work with a temporary results file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        kept = store.Store(pathlib.Path(folder) / "results.jsonl")
        with runs.Run(bench, kept, work, runs.seeds(trials), workers, on_trial=on_trial) as run:
            yield run


def _mean(measurements: Sequence[Measurement], name: str) -> float:
    """Return the mean of the host's record `name` over trials that succeeded. Raises UserError if none did."""
    good = [float(m.host[name]) for m in measurements if m.outcome is Outcome.OK]
    if not good:
        raise UserError(f"no trial could be measured: {measurements[0].message}", "run `conformance doctor`")
    return statistics.mean(good)


def _pytest(name: str, marks: str, choice: Choice, target_s: float | None) -> BenchFigure:
    """Measure a whole session of pytest, as a user sees it, with a results file of its own."""
    first, printed = _FirstEstimate(), list[str]()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as errors:
        began = time.monotonic()
        command = _session(marks, f"{folder}/results.jsonl", choice)
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True) as session:
            for line in session.stdout or ():
                printed.append(line)
                if left := _LEFT.search(line):
                    first.hear(seconds_of(left[1]))
        ended = time.monotonic()
        errors.seek(0)
        trouble = errors.read().strip()
    if session.returncode in _MEASURED:
        return first.beside(BenchFigure(name=name, seconds=ended - began, target_s=target_s), ended)
    words = (trouble or "".join(printed).strip() or "it printed nothing").splitlines()[-1]
    return BenchFigure(name=name, target_s=target_s, trouble=words)


def _session(marks: str, results: str, choice: Choice) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-m", marks, "--results", results, *shlex.split(choice.options())]
    return [sys.executable, "-u", "-m", "pytest", "--pyargs", "conformance.suite", *options]

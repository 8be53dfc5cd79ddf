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
from conformance.commands.bench import GRID_CELLS, GRID_TRIALS, cores
from conformance.commands.result import Result
from conformance.engine import benches, runs
from conformance.engine.benches import Bench, Choice
from conformance.engine.progress import Progress
from conformance.lab import cores as cores_of_guests
from conformance.lab import virtual
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.judging.question import Key
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import scratch as scratch_place
from conformance.support.console import seconds_of

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


def compute(choice: Choice, whole: bool) -> Figures:
    """Measure all figures; without `whole`, commands that take minutes are listed but not run. Raises UserError."""
    figures = [_call(choice), *_parts(choice), *_tens(choice), *_quic(choice), *_shared(choice)]
    if whole:
        figures += _whole(choice)
    else:
        figures += [_aimed(name, trouble=_LEFT_OUT) for name in (_ALL_OF_CUBIC, _GRID, _CLAUSES)]
    return Figures(figures=tuple(figures), cores=cores())


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


def _pytest(name: str, marks: str, choice: Choice) -> BenchFigure:
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
        return first.beside(_aimed(name, ended - began), ended)
    words = (trouble or "".join(printed).strip() or "it printed nothing").splitlines()[-1]
    return _aimed(name, trouble=words)


def _session(marks: str, results: str, choice: Choice) -> list[str]:
    options = ["-q", "-p", "no:cacheprovider", "-m", marks, "--results", results, *shlex.split(choice.options())]
    return [sys.executable, "-u", "-m", "pytest", "--pyargs", "conformance.suite", *options]

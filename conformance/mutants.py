"""`conformance mutants`: does the suite detect implementations that are wrong, and leave alone those that are right?

Each mutant (tests/mutants/mutants.json) is measured cell by cell, the most telling ones first, until a zone of its
algorithm violates. The false alarms are counted over whole runs of the references, with seeds that nothing else used.
"""

import collections
import contextlib
import dataclasses
import functools
import pathlib
import time

import rich.progress

from conformance import detected, engine, paths, schema, specs, store, variants
from conformance.kernel import build
from conformance.lab import adapter, manifest
from conformance.lab.virtual import VirtualRoom
from conformance.model import grid, mutants
from conformance.model.errors import UserError
from conformance.model.mutants import Outcome
from conformance.model.verdict import Status, judge, overall
from conformance.reporting import scores

GRID = "10mbps"
#: zones of 30 s transfers through a tail-drop queue, some without random loss: where the curve of a window shows
LONG_KINDS = ("identify-utilization", "identify-queue")
#: Linux TCP's algorithms that the default kernel has: the references of the false alarms
REFERENCES = ("cubic", "reno", "bbrv1")
#: what `make mutants` asks for: at least so much of the mutants detected, at most so much of the runs false alarms
LEAST_DETECTED, MOST_FALSE_ALARMS = 0.9, 0.01
_PATCHED_KERNEL = "mutants"
#: cells of a mutant's first looks: few, as most mutants are detected by any of the most telling ones
_ROUNDS = (4, 8, 18)


def corpus():
    """The mutants. Raises UserError."""
    path = folder() / "mutants.json"
    return mutants.from_json(schema.load("mutants", path), path)


def folder():
    """Of the corpus, which is in the checkout only. Raises UserError."""
    found = paths.PACKAGE.parent / "tests" / "mutants"
    if not found.is_dir():
        raise UserError("the mutants are not part of the installed package", "run this in a checkout of the suite")
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """How mutants, or references, are measured. `whole`: in every cell, not just until one violates.

    `zones`: files of further zones to judge by, of whichever algorithms.
    """

    profile: str | None
    trials: int
    first_seed: int
    results: str
    workers: int | None
    whole: bool = False
    zones: tuple[str, ...] = ()


def run(ids, plan, record, target, console):
    """Measure, show the score, `record` it (detected.py), write it to `target` as Markdown.

    Returns the exit status: 0 at least LEAST_DETECTED of the mutants are detected, 1 fewer, 3 errors.
    """
    chosen = mutants.choose(corpus(), ids)
    if record and ids:
        raise UserError("--record keeps the score of all mutants", "name none")
    known = detected.load()
    kept = store.Store(plan.results)
    findings = []
    with _bar(console, len(chosen)) as bar:
        for mutant in chosen:
            findings.append(_look(mutant, plan, kept, known, bar))
            bar.done(mutant.id, findings[-1].outcome, findings[-1].trials)
    scores.show(findings, console)
    if record:
        judging = {zone.id: zone for mutant in chosen for zone in _zones(mutant, plan)}.values()
        console.print(f"recorded: {detected.record(findings, judging)}", soft_wrap=True)
    if target:
        scores.write(findings, target)
    score = mutants.score(findings)
    if score.errors:
        return 3
    return 0 if score.share is not None and score.share >= LEAST_DETECTED else 1


def _look(mutant, plan, kept, known, bar):
    """Measure a mutant until a zone violates; the Finding."""
    bench = _bench(mutant, bar.say)
    zones = _zones(mutant, plan)
    ordered = mutants.order(zones, *known.telling(mutant.id, mutant.algorithm))
    measured = {}
    for part in mutants.rounds(ordered, (len(ordered),) if plan.whole else _ROUNDS):
        measured.update(_measure(bench, kept, mutant.measured, part, plan, bar.trial))
        trials = sum(len(found) for found in measured.values())
        finding = mutants.Finding(mutant=mutant, verdicts=_verdicts(zones, measured), trials=trials)
        if finding.outcome is Outcome.DETECTED:
            break
    return finding


def _verdicts(zones, measured):
    """The verdicts of zones on {(profile, cell): measurements}: the one place that knows how cells are judged."""
    return tuple(
        judge(zone, cell, measured[zone.profile, cell], len(zone.intervals))
        for zone in zones
        for cell in zone.intervals
        if (zone.profile, cell) in measured
    )


def _measure(bench, kept, algorithm, where, plan, on_trial):
    """{(profile, cell): measurements}, from the results file or made now."""
    work = [(algorithm, specs.profile(profile, cell)) for profile, cell in where]
    seeds = engine.seeds(plan.trials, plan.first_seed)
    with engine.Run(bench, kept, work, seeds, plan.workers, on_trial=on_trial) as running:
        return {(setting.profile, setting.cell): found for (_, setting), found in running.as_completed()}


def _zones(mutant, plan):
    """The zones of the algorithm that a mutant claims to be, under its transport's profile or the plan's."""
    transport = manifest.read(_stack(mutant)).transport
    return _zones_of(mutant.algorithm, plan.profile or specs.PROFILES[transport], plan.zones)


@functools.cache
def _zones_of(algorithm, profile, files=()):
    """An algorithm's zones: those of the grid, limited to GRID, those of long transfers, and those of `files`."""
    found = [specs.zone_of(algorithm, kind, profile) for kind in specs.KINDS]
    long = [specs.zone_of(algorithm, kind) for kind in LONG_KINDS]
    further = [zone for zone in map(specs.zone, files) if zone.algorithm == algorithm]
    return [_limited(zone) if zone.profile == profile else zone for zone in (*found, *long, *further)]


def _limited(zone):
    cells = grid.cells(GRID)
    return dataclasses.replace(zone, intervals={c: i for c, i in zone.intervals.items() if c in cells})


def _stack(mutant):
    """Name of an adapter that ships, or path of one beside the corpus."""
    return mutant.stack if mutant.kernel else str(folder() / mutant.stack)


def _bench(mutant, say):
    """The Bench that has this mutant, built now if need be. Raises UserError."""
    choice = engine.Choice(stack=_stack(mutant))
    if mutant.kernel is None:
        adapter.build(choice.stack, progress=lambda done, total, line: say("building its stack"))
        return engine.bench(choice)
    if mutant.kernel == _PATCHED_KERNEL:
        _build_patched_kernel(say)
    kernel = variants.ready(mutant.id, mutant.kernel, mutant.parameters)
    place = engine.Place(kernel=kernel, room=VirtualRoom(kernel))
    return dataclasses.replace(engine.bench(choice), place=lambda algorithm: place)


@functools.cache
def _build_patched_kernel(say):
    patch = folder() / "linux-6.12.patch"
    build.build(
        _PATCHED_KERNEL, patches=[patch], progress=lambda done, total, what: say(f"kernel: {what} {done} of {total}")
    )


def false_alarms(n, plan, console):
    """Count the runs, of `n`, in which a zone violates a reference. Returns the exit status: 0, 1 too many, 3 errors.

    Run by run in turn over REFERENCES, each over the whole grid; each has its own results file in the folder of
    `plan.results`, false-alarms/, so that a run needs to read no other's.
    """
    bench = engine.bench()
    runs = [(REFERENCES[k % len(REFERENCES)], plan.first_seed + plan.trials * (k // len(REFERENCES))) for k in range(n)]
    violated, failed = collections.defaultdict(list), []
    count = collections.Counter(algorithm for algorithm, _ in runs)
    with _bar(console, n) as bar:
        for algorithm, first_seed in runs:
            verdicts = _reference(bench, algorithm, dataclasses.replace(plan, first_seed=first_seed), bar)
            status = overall(verdicts)
            if status in (Status.ERROR, Status.UNSUPPORTED):
                failed.append((algorithm, first_seed, verdicts))
            elif status is Status.VIOLATES:
                violated[algorithm].append((first_seed, [v for v in verdicts if v.status is Status.VIOLATES]))
            bar.done(f"{algorithm}, seeds from {first_seed}", status, plan.trials)
    scores.show_false_alarms(violated, count, failed, console)
    if failed:
        return 3
    return 0 if sum(map(len, violated.values())) <= MOST_FALSE_ALARMS * n else 1


def _reference(bench, algorithm, plan, bar):
    zones = _zones_of(algorithm, plan.profile or bench.profile, plan.zones)
    kept = store.Store(pathlib.Path(plan.results).parent / "false-alarms" / f"{algorithm}-{plan.first_seed}.jsonl")
    return _verdicts(zones, _measure(bench, kept, algorithm, mutants.order(zones), plan, bar.trial))


@contextlib.contextmanager
def _bar(console, total):
    columns = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(20),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("{task.fields[line]}", markup=False),
    )
    with rich.progress.Progress(*columns, console=console, transient=True, refresh_per_second=4) as progress:
        yield _Bar(console, progress, progress.add_task("mutants", total=total, line="starting"), total)


class _Bar:
    """How many of the mutants, or runs, are done, how far the present one is, and how long the rest will take."""

    def __init__(self, console, progress, task, total):
        self._console, self._progress, self._task, self._left = console, progress, task, total
        self._began, self._fresh, self._spent_s, self._done_fresh = time.monotonic(), False, 0.0, 0

    def say(self, line):
        left = f"; about {engine.duration(self._rest_s())} left" if self._done_fresh else ""
        self._progress.update(self._task, line=line + left)

    def trial(self, progress):
        self._fresh = self._fresh or bool(progress.fresh)
        self.say(f"{progress.done} of {progress.total} trials")

    def done(self, name, status, trials):
        """One is done; what came from the results file alone says nothing about time."""
        took_s = time.monotonic() - self._began
        if self._fresh:
            self._spent_s, self._done_fresh = self._spent_s + took_s, self._done_fresh + 1
        self._left -= 1
        self._progress.advance(self._task)
        self._console.print(f"{status:10} {name} ({trials} trials, {engine.duration(took_s)})", soft_wrap=True)
        self._began, self._fresh = time.monotonic(), False

    def _rest_s(self):
        return self._spent_s / self._done_fresh * self._left

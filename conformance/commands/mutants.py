"""`conformance mutants`: does the suite detect implementations that are wrong?

Each mutant (mutants/mutants.json) is measured cell by cell, the most telling ones first, until a zone of its
algorithm violates. Whether it leaves alone those that are right: false_alarms.py.
"""

import contextlib
import dataclasses
import functools
import time

import rich.progress

from conformance.catalogue import documents, mutant_record
from conformance.engine import benches
from conformance.engine.execute import execute
from conformance.engine.plan import CellQuestion, plan
from conformance.kernel import build
from conformance.lab import adapter, kernel_variant, manifest
from conformance.lab.virtual import VirtualRoom
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.studies import mutants
from conformance.model.studies.mutants import Outcome
from conformance.model.verdict import looks
from conformance.reporting.text import scores
from conformance.results import store
from conformance.support import paths, schema
from conformance.support.console import duration

#: what `make mutants` asks for: at least so much of the mutants detected
LEAST_DETECTED = 0.9
_PATCHED_KERNEL = "mutants"
#: cells of a mutant's first looks: few, as most mutants are detected by any of the most telling ones
_ROUNDS = (4, 8, 18)


def corpus():
    """The mutants. Raises UserError."""
    path = folder() / "mutants.json"
    return mutants.from_json(schema.load("mutants", path), path)


def folder():
    """Of the corpus, which is in the checkout only. Raises UserError."""
    found = paths.PACKAGE.parent / "mutants"
    if not found.is_dir():
        raise UserError("the mutants are not part of the installed package", "run this in a checkout of the suite")
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """How mutants, or references, are measured: a cell `trials` times, and while it is unclear up to `max_trials`.

    `whole`: in every cell, not just until one violates. `zones`: files of further zones to judge by, of whichever
    algorithms. `grid`: of zones over a grid, the part to judge by. Raises UserError.
    """

    profile: str | None
    trials: int
    max_trials: int
    first_seed: int
    results: str
    workers: int | None
    whole: bool = False
    zones: tuple[str, ...] = ()
    grid: str = mutant_record.GRID

    def __post_init__(self):
        grids.cells(self.grid)
        looks(self.trials, self.max_trials)


def run(ids, options, record, target, console):
    """Measure, show the score, `record` it (detected.py), write it to `target` as Markdown.

    Returns the exit status: 0 at least LEAST_DETECTED of the mutants are detected, 1 fewer, 3 errors.
    """
    chosen = mutants.choose(corpus(), ids)
    if record and ids:
        raise UserError("--record keeps the score of all mutants", "name none")
    kept = store.Store(options.results)
    findings, did = [], {}
    with progress_bar(console, len(chosen)) as bar:
        for mutant in chosen:
            finding = _look(mutant, options, kept, bar, did)
            findings.append(finding)
            bar.done(mutant.id, finding.outcome, finding.trials)
        if record:
            _try_where_none_is_rejected(chosen, options, kept, bar, did)
    scores.show(findings, console)
    if record:
        console.print(f"recorded: {mutant_record.record(did.values())}, {mutant_record.keep()}", soft_wrap=True)
    if target:
        scores.write(findings, target)
    score = mutants.score(findings)
    if score.errors:
        return 3
    return 0 if score.share is not None and score.share >= LEAST_DETECTED else 1


def _look(mutant, options, kept, bar, did):
    """Measure a mutant until a zone violates; the Finding. `did`: see _keep()."""
    bench = bench_of(mutant, bar.say)
    zones = _zones(mutant, options)
    ordered = mutants.order(zones, *mutant_record.telling(mutant.id, zones))
    measured = {}
    for part in mutants.rounds(ordered, (len(ordered),) if options.whole else _ROUNDS):
        measured.update(measure(bench, kept, mutant.measured, zones, part, options, bar.trial))
        trials = sum(len(found) for found in measured.values())
        finding = mutants.Finding(
            mutant=mutant, verdicts=judged(mutant.measured, zones, options, measured), trials=trials
        )
        if finding.outcome is Outcome.DETECTED:
            break
    _keep(mutant, measured, did)
    return finding


def _keep(mutant, measured, did):
    """Add to `did`, {(mutant, profile, cell): detected.Measured}, what was measured without an error."""
    for (profile, cell), measurements in measured.items():
        if found := mutant_record.measured(mutant.id, measurements):
            did[mutant.id, profile, cell] = found


def _try_where_none_is_rejected(chosen, options, kept, bar, did):
    """Zones that reject no mutant so far, as others told them first: measure there until one rejects one."""
    zones = mutant_record.shipped()
    rejecting = mutant_record.rejected_by(zones, did.values())
    # Where one was measured everywhere in vain, there is least to hope for.
    most = sorted(chosen, key=lambda mutant: -len(rejecting[mutant.id]))
    for zone in zones:
        for mutant in (m for m in most if m.algorithm == zone.algorithm and m.kernel):
            if any(one.violates(zone) for one in did.values()):
                break
            where = [(zone.profile, cell) for cell in zone.intervals]
            bench = bench_of(mutant, bar.say)
            _keep(mutant, measure(bench, kept, mutant.measured, [zone], where, options, bar.trial), did)


def asked(algorithm, zones, options, where=None):
    """Return the Plan of all cells of these zones, of which those of `where`, [(profile, cell)], are measured."""
    questions = [
        CellQuestion(zone=zone, setting=documents.profile(zone.profile, cell), algorithm=algorithm)
        for zone in zones
        for cell in zone.intervals
    ]
    return plan(
        questions,
        trials=options.trials,
        most_trials=options.max_trials,
        first_seed=options.first_seed,
        work=None if where is None else work(algorithm, where),
    )


def judged(algorithm, zones, options, measured):
    """Return the verdicts of zones on {(profile, cell): measurements}, in the order of their cells."""
    whole = asked(algorithm, zones, options)
    return tuple(
        whole.judge(question, {question.setting: measured[question.setting.profile, question.place]}).verdict
        for question in whole.questions
        if (question.setting.profile, question.place) in measured
    )


def measure(bench, kept, algorithm, zones, where, options, on_trial):
    """{(profile, cell): measurements}, from the results file or made now, more of them where a zone cannot tell yet."""
    found = execute(asked(algorithm, zones, options, where), bench, kept, workers=options.workers, on_trial=on_trial)
    return {(answer.setting.profile, answer.setting.cell): answer.measurements for answer in found}


def work(algorithm, where):
    """What an engine.Run is given: [(algorithm, setting)] of [(profile, cell)]."""
    return [(algorithm, documents.profile(profile, cell)) for profile, cell in where]


def _zones(mutant, options):
    """The zones of the algorithm that a mutant claims to be, under its transport's profile or the options'."""
    transport = manifest.read(_stack(mutant)).transport
    return zones_of(mutant.algorithm, options.profile or documents.PROFILES[transport], options)


@functools.cache
def zones_of(algorithm, profile, options):
    """An algorithm's zones by a Plan: those of the grid, limited to its part, those of few cells, and further ones."""
    found = [documents.zone_of(algorithm, kind, profile) for kind in documents.KINDS]
    few = [documents.zone_of(algorithm, kind) for kind in documents.further_kinds(profile)]
    further = [zone for zone in map(documents.zone, options.zones) if zone.algorithm == algorithm]
    return [mutant_record.limited(zone, options.grid) for zone in (*found, *few, *further)]


def _stack(mutant):
    """Name of an adapter that ships, or path of one beside the corpus."""
    return mutant.stack if mutant.kernel else str(folder() / mutant.stack)


def bench_of(mutant, say):
    """The Bench that has this mutant, built now if need be. Raises UserError."""
    choice = benches.Choice(stack=_stack(mutant))
    if mutant.kernel is None:
        adapter.build(choice.stack, progress=lambda done, total, line: say("building its stack"))
        return benches.find(choice)
    if mutant.kernel == _PATCHED_KERNEL:
        _build_patched_kernel(say)
    kernel = kernel_variant.ready(mutant.id, mutant.kernel, mutant.parameters)
    place = benches.Place(kernel=kernel, room=VirtualRoom(kernel))
    return dataclasses.replace(benches.find(choice), place=lambda algorithm: place)


@functools.cache
def _build_patched_kernel(say):
    patch = folder() / "linux-6.12.patch"
    build.build(
        _PATCHED_KERNEL, patches=[patch], progress=lambda done, total, what: say(f"kernel: {what} {done} of {total}")
    )


@contextlib.contextmanager
def progress_bar(console, total):
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
        left = f"; about {duration(self._rest_s())} left" if self._done_fresh else ""
        self._progress.update(self._task, line=line + left)

    def trial(self, progress):
        self._fresh = self._fresh or bool(progress.fresh)
        self.say(f"{progress.done} of {progress.total} trials")

    def done(self, name, status, trials):
        """One is done; what came from the results file alone, before anything was measured, says nothing about time."""
        took_s = time.monotonic() - self._began
        if self._fresh or self._done_fresh:
            self._spent_s, self._done_fresh = self._spent_s + took_s, self._done_fresh + 1
        self._left -= 1
        self._progress.advance(self._task)
        self._console.print(f"{status:10} {name} ({trials} trials, {duration(took_s)})", soft_wrap=True)
        self._began, self._fresh = time.monotonic(), False

    def _rest_s(self):
        return self._spent_s / self._done_fresh * self._left

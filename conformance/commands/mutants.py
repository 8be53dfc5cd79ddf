"""`conformance dev mutants`: test whether the zones detect implementations with known bugs.

Each mutant (mutants/mutants.json) is measured cell by cell, in the most telling cells first, until it violates a zone
of its algorithm. false_alarms.py tests the opposite: how often correct implementations are judged to violate.
"""

import collections
import dataclasses
import functools
import pathlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, ClassVar

from conformance.catalogue import documents, mutant_record, scenarios
from conformance.catalogue.mutant_record import MutantTrials
from conformance.catalogue.questions import zone_questions
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches, unused
from conformance.engine.benches import Bench
from conformance.engine.execute import execute
from conformance.engine.progress import RunProgress
from conformance.kernel import build, source as sources, store as kernels
from conformance.lab import adapter, kernel_variant, manifest
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.judging.question import Key
from conformance.model.judging.session import Answer, Plan, Session, plan
from conformance.model.judging.verdict import Verdict, looks
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point
from conformance.model.studies import mutants
from conformance.model.studies.mutants import Mutant, MutantFinding, MutantOutcome, Where
from conformance.results.store import Store
from conformance.support import paths, schema
from conformance.support.console import count, duration
from conformance.support.notes import Bar, Notes
from conformance.support.record import At, Record

#: what mutants did: {(mutant, profile, cell): what was measured}
Did = dict[tuple[str, str, Point], MutantTrials]
#: the share of the mutants that `make mutants` requires to be detected
LEAST_DETECTED = 0.9
_PATCHED_KERNEL = "mutants"
_BUILD_IT = "docs/bbr-kernels.md says how to build it"
#: how many cells of a mutant are measured in each round: few at first, as most mutants show in any of the most telling
_ROUNDS = (4, 8, 18)


def corpus(name: str = "mutants.json") -> tuple[Mutant, ...]:
    """Return the mutants that zones judge, or those of another file in mutants/. Raise UserError."""
    path = folder() / name
    return mutants.from_json(schema.load("mutants", path), path)


def choose_one(mutant_id: str) -> tuple[Mutant, ...]:
    """Return the one mutant with this id, which may be one that only clauses judge. Raise UserError."""
    return tuple(mutants.choose([*corpus(), *corpus("clauses.json")], [mutant_id]))


def folder() -> pathlib.Path:
    """Return the folder of the mutants, which exists only in a checkout. Raise UserError."""
    home = paths.PACKAGE.parent / "mutants"
    if not home.is_dir():
        raise UserError("the mutants are not part of the installed package", "run this in a checkout of the suite")
    return home


@dataclasses.dataclass(frozen=True, kw_only=True)
class MutantOptions:
    """How mutants, or references, are measured: each cell `trials` times, or up to `max_trials` while inconclusive.

    `whole`: measure every cell, not just until one violates. `zones`: files of further zones to judge by, of any
    algorithm. `grid`: the cells to judge by, for zones over a grid. Raises UserError.
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

    def __post_init__(self) -> None:
        grids.cells(self.grid)
        looks(self.trials, self.max_trials)


class TellingRecord(Record):
    zone: Annotated[str, At("zone_id")]
    cell: Annotated[str, At("place.id")]


class MutantFindingRecord(Record):
    mutant: Annotated[str, At("mutant.id")]
    #: What is wrong with it.
    what: Annotated[str, At("mutant.what")]
    #: "detected", "missed" or "error"
    outcome: str
    trials: int
    #: Places where it violates, the farthest outside first.
    telling: list[TellingRecord]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scored(Result):
    """The findings. `recorded`: files that `--record` wrote."""

    SCHEMA = "mutant-score"
    SHOWN = (
        "detected=score.detected", "missed=score.missed", "errors=score.errors", "least_detected", "absent",
        "mutants=findings",
    )  # fmt: skip
    #: Share of the mutants that must be detected.
    least_detected: ClassVar[float] = LEAST_DETECTED

    findings: Annotated[tuple[MutantFinding, ...], list[MutantFindingRecord]]
    #: Mutants that were not measured because the user has not built their kernel.
    absent: tuple[str, ...] = ()
    recorded: tuple[pathlib.Path, ...] = ()

    @property
    def score(self) -> mutants.Score:
        """How many mutants were detected."""
        return mutants.score(self.findings)

    @property
    def exit_status(self) -> ExitStatus:
        """ERROR if any mutant has an error, DONE if at least LEAST_DETECTED are detected, else VIOLATES."""
        if self.score.errors:
            return ExitStatus.ERROR
        enough = self.score.share is not None and self.score.share >= LEAST_DETECTED
        return ExitStatus.DONE if enough else ExitStatus.VIOLATES


def compute(ids: Sequence[str], options: MutantOptions, record: bool, notes: Notes) -> Scored:
    """Measure the mutants with these ids, or all if none is named; progress goes to `notes`. Raise UserError."""
    chosen = mutants.choose(corpus(), ids)
    if record and ids:
        raise UserError("--record keeps the score of all mutants", "give it without IDS")
    absent = _absent(chosen)
    if ids and absent:
        lacking = absent[0]
        raise UserError(f"mutant {lacking.id} needs the kernel {lacking.kernel}, which is not built here", _BUILD_IT)
    chosen = [mutant for mutant in chosen if mutant not in absent]
    kept, findings, did = Store(options.results), [], Did()
    recorded: tuple[pathlib.Path, ...] = ()
    with notes.bar("measuring", total=len(chosen), unit="mutants") as bar:
        report = Reporter(notes, bar)
        for kernel, n in collections.Counter(mutant.kernel for mutant in absent).items():
            report.note(f"not measured: {count(n, 'mutant')} because kernel {kernel} is not built here ({_BUILD_IT})")
        for mutant in chosen:
            finding = _look(mutant, options, kept, report, did)
            findings.append(finding)
            report.done([(mutant.id, finding.outcome, finding.trials)])
        if record:
            _try_where_none_is_rejected(chosen, options, kept, report, did)
            before = [
                measured for measured in mutant_record.load() if measured.mutant in {mutant.id for mutant in absent}
            ]
            recorded = (mutant_record.record([*before, *did.values()]), mutant_record.keep())
    return Scored(findings=tuple(findings), absent=tuple(mutant.id for mutant in absent), recorded=recorded)


def _absent(chosen: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants whose kernel has to be built by the user, with a patch that is not ours, and is not built."""
    here = {kernel.name for kernel in kernels.kernels()}
    return [mutant for mutant in chosen if mutant.kernel not in (None, _PATCHED_KERNEL, kernels.DEFAULT_NAME, *here)]


def _look(mutant: Mutant, options: MutantOptions, kept: Store, report: "Reporter", did: Did) -> MutantFinding:
    """Measure a mutant until it violates a zone; return the MutantFinding, and add what was measured to `did`."""
    bench = bench_of(mutant, report.say)
    zones = _zones(mutant, options)
    whole = asked(mutant.measured, zones, options)
    for line in unused.lines(whole, bench, kept, named=True):
        report.note(f"{mutant.id}: {line}")
    first, most = mutant_record.telling(mutant.id, zones)
    ordered = mutants.order(zones, [*first, *mutant.first], most)
    answers: list[Answer] = []
    finding = MutantFinding(mutant=mutant, verdicts=(), trials=0)
    for part in mutants.rounds(ordered, (len(ordered),) if options.whole else _ROUNDS):
        answers += measure(bench, kept, mutant.measured, zones, part, options, report.follow)
        trials = sum(len(answer.measurements) for answer in answers)
        finding = MutantFinding(mutant=mutant, verdicts=judged(whole, answers), trials=trials)
        if finding.outcome is MutantOutcome.DETECTED:
            break
    _keep(mutant, answers, did)
    return finding


def _keep(mutant: Mutant, answers: Iterable[Answer], did: Did) -> None:
    """Add the measurements of each cell without errors to `did`."""
    for answer in answers:
        if measured := mutant_record.measured(mutant.id, answer.measurements):
            did[mutant.id, *at(answer)] = measured


def _try_where_none_is_rejected(
    chosen: Sequence[Mutant], options: MutantOptions, kept: Store, report: "Reporter", did: Did
) -> None:
    """Measure more mutants in the cells of each zone that has rejected none so far, until it rejects one.

    Zones without a counted cell are left out: they cannot reject any.
    """
    zones = [zone for zone in mutant_record.shipped() if any(interval.counted for interval in zone.intervals.values())]
    rejecting = mutant_record.rejected_by(zones, did.values())
    # A mutant that no zone rejects was already measured in all of its cells: it is the least likely to be rejected.
    most = sorted(chosen, key=lambda mutant: -len(rejecting[mutant.id]))
    for zone in zones:
        further = [mutant for mutant in most if mutant.algorithm == zone.algorithm and mutant.kernel]
        if not further or mutant_record.rejects_own(zone, did.values()):
            continue
        report.note(f"{zone.id} rejects no mutant yet: measuring more there, because `zones check` requires one")
        where = [(zone.profile, cell) for cell in zone.intervals]
        for mutant in further:
            bench = bench_of(mutant, report.say)
            _keep(mutant, measure(bench, kept, mutant.measured, [zone], where, options, report.follow), did)
            if mutant_record.rejects_own(zone, did.values()):
                break


def asked(
    algorithm: str, zones: Sequence[Zone], options: MutantOptions, where: Collection[Where] | None = None
) -> Plan:
    """Return a Plan that asks about all cells of these zones but measures only `where`, [(profile, cell)], if given."""
    questions = [
        question
        for zone in zones
        for question in zone_questions(
            zone, [scenarios.setting(zone.profile, place) for place in zone.intervals], algorithm
        )
    ]
    return plan(
        questions,
        trials=options.trials,
        most_trials=options.max_trials,
        first_seed=options.first_seed,
        work=None if where is None else work(algorithm, where),
    )


def measure(
    bench: Bench,
    kept: Store,
    algorithm: str,
    zones: Sequence[Zone],
    where: Collection[Where],
    options: MutantOptions,
    on_trial: Callable[[RunProgress], None],
) -> list[Answer]:
    """Return an Answer for each cell, stored or made now, with its verdicts; a cell gets more trials while it, or its
    kind, is inconclusive.
    """
    whole = asked(algorithm, zones, options, where)
    answers = execute(whole, bench, kept, workers=options.workers, on_trial=on_trial)
    return list({answer.key: answer for answer in answers}.values())


def at(answer: Answer) -> Where:
    return answer.setting.profile, answer.setting.point


def judged(whole: Plan, answers: Iterable[Answer]) -> tuple[Verdict, ...]:
    """Return the settled verdicts of Answers, in the order of the plan's zones and their cells. Raise UserError.

    A kind of cells is judged once all of its cells were measured, by the trials that they then have.
    """
    measured = {answer.key: answer for answer in answers}
    events = [judgement for answer in measured.values() for judgement in answer.judged]
    events += whole.of_several({key: answer.measurements for key, answer in measured.items()})
    return tuple(finding.verdict for finding in Session(plan=whole, confirms=False).findings(lambda plan: events))


def work(algorithm: str, where: Collection[Where]) -> list[Key]:
    """Return [(algorithm, setting)] for [(profile, cell)]."""

    return [(algorithm, scenarios.setting(profile, place)) for profile, place in where]


def _zones(mutant: Mutant, options: MutantOptions) -> list[Zone]:
    """Return the zones of the algorithm that a mutant claims to be, under the options' profile or its transport's."""
    transport = manifest.read(_stack(mutant)).transport
    return zones_of(mutant.algorithm, options.profile or documents.PROFILES[transport], options)


@functools.cache
def zones_of(algorithm: str, profile: str, options: MutantOptions) -> list[Zone]:
    """Return an algorithm's zones: those over the grid, those over a few cells or points, and those of `options.zones`.

    Zones over the grid are limited to the cells of `options.grid`, and zones over points of scenarios to the points
    that `pytest -m ALGORITHM` judges.
    """
    zones = [documents.zone_of(algorithm, kind, profile) for kind in documents.KINDS]
    kinds = documents.further_kinds(profile)
    of_algorithm = [zone for kind in kinds for zone in documents.all_zones(kind) if zone.algorithm == algorithm]
    few = [zone for zone in map(documents.by_algorithm, of_algorithm) if zone.intervals]
    further = [zone for zone in map(documents.zone, options.zones) if zone.algorithm == algorithm]
    return [mutant_record.limited(zone, options.grid) for zone in (*zones, *few, *further)]


def _stack(mutant: Mutant) -> str:
    """Return the name of an adapter that ships, or the path of one in the folder of the mutants."""
    return mutant.stack if mutant.kernel else str(folder() / mutant.stack)


def bench_of(mutant: Mutant, say: Callable[[str], None]) -> Bench:
    """Return a Bench with this mutant, which is built now if necessary. Raise UserError."""
    choice = benches.Choice(stack=_stack(mutant))
    if mutant.kernel is None:
        adapter.build(choice.stack, progress=lambda done, total, line: say("building its stack"))
        return benches.find(choice)
    if mutant.kernel == _PATCHED_KERNEL:
        _build_patched_kernel(say)
    kernel = kernel_variant.ready(mutant.id, mutant.kernel, mutant.parameters)
    place = benches.BenchPlace(kernel=kernel, room=benches.room(kernel))
    return dataclasses.replace(benches.find(choice), place=lambda algorithm: place)


def patch_for(version: tuple[int, int]) -> pathlib.Path:
    """Return the mutants' patch for a source of this version: the newest patch not later than it. Raise UserError."""
    patches = {}
    for patch in folder().glob("linux-*.patch"):
        major, minor = patch.stem.removeprefix("linux-").split(".")
        patches[int(major), int(minor)] = patch
    reached = [number for number in patches if number <= version]
    if not reached:
        raise UserError(
            f"mutants/ has no patch for Linux {version[0]}.{version[1]}",
            f"use a source of Linux {'.'.join(map(str, min(patches)))} or later",
        )
    return patches[max(reached)]


@functools.cache
def _build_patched_kernel(say: Callable[[str], None]) -> None:
    located = sources.locate(say=say)
    build.build(
        _PATCHED_KERNEL,
        source=str(located),
        patches=[str(patch_for(sources.version(located)))],
        progress=lambda done, total, what: say(f"kernel: {what} {done} of {total}"),
    )


class Reporter:
    """Shows how many mutants, or runs, are done and how far the current one is; prints a line for each that is done."""

    def __init__(self, notes: Notes, bar: Bar) -> None:
        self._notes, self._bar = notes, bar
        self._began, self._fresh = time.monotonic(), False

    def say(self, line: str) -> None:
        self._bar.say(line)

    def follow(self, progress: RunProgress) -> None:
        self._fresh = self._fresh or bool(progress.fresh)
        self.say(f"{progress.done} of {progress.total} trials")

    def note(self, line: str) -> None:
        self._notes.say(line)

    def done(self, lines: Sequence[tuple[str, str, int]]) -> None:
        """Count mutants or runs that were measured together, [(name, outcome, trials)], as done.

        Each is shown with an equal share of the time. If all results came from files, this time is not used to
        estimate the time left.
        """
        took_s = (time.monotonic() - self._began) / len(lines)
        self._bar.advance(by=len(lines), fresh=self._fresh)
        for name, outcome, trials in lines:
            self._notes.say(f"{outcome:10} {name} ({count(trials, 'trial')}, {duration(took_s)})")
        self._began, self._fresh = time.monotonic(), False

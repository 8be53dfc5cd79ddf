"""`conformance dev mutants --false-alarms`: count how often the suite rejects implementations that are right.

It counts over whole runs of the references, with seeds that nothing else used. Runs that are recorded
(mutants/false-alarms.json) are not made again: hundreds of runs take hours, and may be made in several sittings, on
several machines.
"""

import dataclasses
import functools
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from conformance.commands import mutants
from conformance.commands.mutants import MutantOptions, Reporter
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches, runs
from conformance.engine.benches import Bench
from conformance.engine.work import Looks, Task
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.approach import approach
from conformance.model.judging.question import Key
from conformance.model.judging.session import Plan
from conformance.model.judging.verdict import ALPHA, CONFIDENCE, LOOKS, Status, Verdict, looks, overall
from conformance.model.judging.zone import Margin, Zone
from conformance.model.networks.place import Point
from conformance.model.studies import mutants as mutants_model
from conformance.model.trials.trial import Measurement
from conformance.reporting.text import scores
from conformance.results.store import Store
from conformance.support import files, paths, schema
from conformance.support.console import one_line
from conformance.support.notes import Notes
from conformance.support.record import Record

#: what a run depends on besides its seeds
About = Mapping[str, Any]
#: Linux TCP's algorithms that the default kernel has
REFERENCES = ("cubic", "reno", "bbrv1")
#: largest share of the runs that may be false alarms, which `make mutants` asks for
MOST = 0.01
#: runs of a reference that share guests for their first looks, as calibrating a cell costs as much as two trials
_BLOCK_RUNS = 10
_FAILED = (Status.ERROR, Status.UNSUPPORTED)
#: statuses of a run whose cells are listed in Run.why
_TOLD = (*filter(lambda status: status.against, Status), *_FAILED)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Nearest:
    """The cell of a run whose trials were the least likely under a basis; ties go to the largest `margin_used`.

    `ratio`: the probability of these trials over the one at which a cell violates. `margin_used`: the share of the
    margin that their median takes.
    """

    zone: str
    cell: str
    ratio: float
    margin_used: float

    @property
    def distance(self) -> tuple[float, float]:
        """A sort key, which is smallest for the cell or run that came nearest to a violation."""
        return self.ratio, -self.margin_used


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReferenceRun:
    """A whole run of a reference; `why`: the cells that violate, or what went wrong."""

    algorithm: str
    first_seed: int
    trials: int
    status: Status
    #: The cell that came nearest to a violation. A ratio of 1 or less would have violated; margin_used is the share of
    #: the margin that the median used up, 1 at an end of the zone.
    nearest: Nearest | None = None
    why: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the run says nothing about false alarms."""
        return self.status in _FAILED


class RecordedRuns(Record):
    """What path() holds of an algorithm: runs without its name, and what they depend on besides seeds (_about())."""

    about: dict[str, Any]
    runs: list[dict[str, Any]]


def path() -> pathlib.Path:
    return paths.PACKAGE.parent / "mutants" / "false-alarms.json"


class Kept:
    """The runs that are kept in path(), by algorithm.

    When a run of an algorithm is added, recorded ones that depend on anything else are dropped.
    """

    def __init__(self) -> None:
        """Read the record, which is empty if there is no file. Raises UserError."""
        self._about: dict[str, About] = {}
        self._runs: dict[str, dict[int, ReferenceRun]] = {}
        try:
            held = msgspec.convert(schema.read(path()) if path().exists() else {}, dict[str, RecordedRuns])
            for algorithm, recorded in held.items():
                runs = [{**run, "algorithm": algorithm} for run in recorded.runs]
                self._about[algorithm] = recorded.about
                self._runs[algorithm] = {run.first_seed: run for run in msgspec.convert(runs, list[ReferenceRun])}
        except (msgspec.ValidationError, UserError) as error:
            raise UserError(f"{path()}: not a record of runs: {error}", "delete it, and measure again") from None

    def runs(self, algorithm: str, about: About | None = None) -> dict[int, ReferenceRun]:
        """Return {first seed: its run} of an algorithm; none if its runs depend on another `about`."""
        return self._runs.get(algorithm, {}) if about in (None, self._about.get(algorithm)) else {}

    def kernel(self, algorithm: str) -> str | None:
        """Return the release of the kernel that the runs of an algorithm were made on; None if there are none."""
        release: str | None = self._about.get(algorithm, {}).get("kernel")
        return release

    def add(self, run: ReferenceRun, about: About) -> None:
        """Keep a run and write the file; a run that failed is not kept, so that it is tried again. Raises UserError."""
        if run.failed:
            return
        self._runs[run.algorithm] = {**self.runs(run.algorithm, about), run.first_seed: run}
        self._about[run.algorithm] = dict(about)
        content = {
            algorithm: {"about": self._about[algorithm], "runs": [_plain(kept) for _, kept in sorted(runs.items())]}
            for algorithm, runs in sorted(self._runs.items())
        }
        files.write(path(), json.dumps(content, indent=1) + "\n")


def _plain(run: ReferenceRun) -> dict[str, Any]:
    """Return all fields but the algorithm."""
    return {name: value for name, value in msgspec.to_builtins(run).items() if name != "algorithm"}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FalseAlarms(Result):
    """Whole runs of references. `before`: how many were recorded before; `recorded`: the file that keeps them."""

    SCHEMA = "false-alarms"
    SHOWN = ("runs", "false_alarms", "at_most_with_95_pct_confidence", "most")
    #: Share of the runs that may be false alarms.
    most: ClassVar[float] = MOST

    runs: tuple[ReferenceRun, ...]
    before: int
    recorded: pathlib.Path | None

    @property
    def false_alarms(self) -> int:
        """How many runs violate."""
        return sum(run.status.against for run in self.runs)

    @property
    def at_most_with_95_pct_confidence(self) -> float | None:
        """Upper bound of the share of runs (Clopper-Pearson), or null if no run succeeded. Runs of several references
        with the same seeds meet the same losses, so they count once: as a false alarm if one of them is.
        """
        # Of 200 runs each, CUBIC's and Reno's have trials whose numbers have a rank correlation of 0.67.
        by_seed = grouped((run.first_seed, run.status.against) for run in self.runs if not run.failed)
        return mutants_model.upper_bound(sum(map(any, by_seed.values())), len(by_seed)) if by_seed else None

    @property
    def exit_status(self) -> ExitStatus:
        """DONE if at most MOST of the runs are false alarms, VIOLATES if more are, ERROR if a run failed."""
        if any(run.failed for run in self.runs):
            return ExitStatus.ERROR
        return ExitStatus.DONE if self.false_alarms <= MOST * len(self.runs) else ExitStatus.VIOLATES


def compute(n: int, options: MutantOptions, record: bool, notes: Notes) -> FalseAlarms:
    """Make `n` whole runs of references, to count those that violate a zone. Raises UserError.

    REFERENCES take turns. Each run covers all zones (of the grid, 10 Mbit/s unless the options say more), shares no
    seed with other runs of its reference, and looks again at inconclusive cells as `pytest` does. Each block of runs
    has a results file of its own in the folder false-alarms/ beside `options.results`, so that a run reads no other's.
    With `record`, runs that are recorded are not made again, and new ones are added. `notes` shows progress.
    """
    bench = benches.find()
    kept = Kept() if record else None
    for line in _other_kernels(bench, kept) if kept else ():
        notes.say(line)
    runs: list[ReferenceRun] = []
    before = 0
    with notes.bar("measuring", total=n, unit="runs") as bar:
        report = Reporter(notes, bar)
        for algorithm, first_seeds in _blocks(n, options):
            for together, fresh in _block(bench, algorithm, first_seeds, options, kept, report):
                lines = [
                    (f"{finished.algorithm}, seeds from {finished.first_seed}", finished.status, finished.trials)
                    for finished in together
                ]
                report.done(lines)
                runs += together
                before += 0 if fresh else len(together)
    recorded = path() if kept and path().exists() else None
    return FalseAlarms(runs=tuple(runs), before=before, recorded=recorded)


def _other_kernels(bench: Bench, kept: Kept) -> Iterator[str]:
    """Yield a line for each reference whose recorded runs are of another kernel, so that they are made again."""
    for algorithm in REFERENCES:
        was, is_now = kept.kernel(algorithm), bench.scheme(algorithm).kernel_release
        if was and was != is_now:
            runs_of = f"{len(kept.runs(algorithm))} recorded runs of {algorithm} on Linux {one_line(was)}"
            yield f"guest kernel Linux {is_now}; {runs_of} are not used"


def _blocks(n: int, options: MutantOptions) -> Iterator[tuple[str, list[int]]]:
    """Yield (algorithm, first seeds of its runs) for each block; the `n` runs take turns over REFERENCES."""
    shares = [n // len(REFERENCES) + (at < n % len(REFERENCES)) for at in range(len(REFERENCES))]
    for block in range(0, max(shares), _BLOCK_RUNS):
        for algorithm, share in zip(REFERENCES, shares, strict=True):
            numbers = range(block, min(block + _BLOCK_RUNS, share))
            if numbers:
                yield algorithm, [options.first_seed + options.max_trials * number for number in numbers]


def _block(
    bench: Bench,
    algorithm: str,
    first_seeds: Sequence[int],
    options: MutantOptions,
    kept: Kept | None,
    report: Reporter,
) -> Iterator[tuple[list[ReferenceRun], bool]]:
    """Yield ([ReferenceRun], whether they are newly made) of a block: first the runs in `kept` (a Record, or None)."""
    zones = mutants.zones_of(algorithm, options.profile or bench.profile, options)
    about = _about(bench, algorithm, zones, options) if kept else None
    known = kept.runs(algorithm, about) if kept else {}
    if recorded := [known[seed] for seed in first_seeds if seed in known]:
        yield recorded, False
    results = Store(pathlib.Path(options.results).parent / "false-alarms" / f"{algorithm}-{first_seeds[0]}.jsonl")
    fresh = [seed for seed in first_seeds if seed not in known]
    if not fresh:
        return
    block = []
    for run in _reference_runs(bench, algorithm, fresh, zones, options, results, report):
        if kept and about:
            kept.add(run, about)
        block.append(run)
    yield block, True


def _about(bench: Bench, algorithm: str, zones: Sequence[Zone], options: MutantOptions) -> dict[str, Any]:
    """Return what a run depends on besides its seeds: kernel, looks, digests of what is measured and what judges it."""
    settings = [setting for _, setting in mutants.work(algorithm, mutants_model.order(zones))]
    return {
        "kernel": bench.scheme(algorithm).kernel_release,
        "looks": list(looks(options.trials, options.max_trials)),
        "measured": digests.of_value([bench.trials(algorithm, setting, [1])[0].key for setting in settings]),
        "judged": judging_digest(zones),
    }


def judging_digest(zones: Iterable[Zone]) -> str:
    """Return the digest of all that judges a run: the zones' numbers, without their words, and the rates of errors."""
    judged_by = {
        zone.id: {"metric": zone.metric, "permitted": _numbers(zone.intervals), "own kind": _numbers(zone.own_kind)}
        for zone in zones
    }
    return digests.of_value([judged_by, ALPHA, LOOKS, CONFIDENCE])


def _numbers(intervals: Mapping[Point, Any]) -> dict[str, dict[str, Any]]:
    """Return {place: all fields of its interval}, but not the fields of margins that only words are made of."""
    words = {field.name for field in dataclasses.fields(Margin) if not field.compare}

    def kept(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: value for name, value in fields if name not in words}

    return {place.id: dataclasses.asdict(interval, dict_factory=kept) for place, interval in intervals.items()}


def _reference_runs(
    bench: Bench,
    algorithm: str,
    first_seeds: Sequence[int],
    zones: Sequence[Zone],
    options: MutantOptions,
    results: Store,
    report: Reporter,
) -> Iterator[ReferenceRun]:
    """Yield Runs that share guests; their trials are read from the Store `results`, or added to it."""
    where = mutants_model.order(zones)
    options_of = {seed: dataclasses.replace(options, first_seed=seed) for seed in first_seeds}
    plans = [mutants.asked(algorithm, zones, chosen, where) for chosen in options_of.values()]
    ahead = plans[0].first_looks(first_seeds)
    looks_ahead = Looks(numbers=ahead.looks, then=functools.partial(_further_looks, plans))
    with runs.Run(
        bench, results, ahead.work, ahead.seeds, options.workers, on_trial=report.follow, looks=looks_ahead
    ) as run:
        run.wait()
    for first_seed, chosen in options_of.items():
        whole = mutants.asked(algorithm, zones, chosen)
        answers = mutants.measure(bench, results, algorithm, zones, where, chosen, report.follow)
        measured = {mutants.at(answer): answer.measurements for answer in answers}
        verdicts = mutants.judged(whole, answers)
        status = overall(verdicts)
        yield ReferenceRun(
            algorithm=algorithm,
            first_seed=first_seed,
            trials=sum(map(len, measured.values())),
            status=status,
            nearest=_nearest(zones, verdicts, measured, whole.family),
            why=tuple(scores.words(v) for v in verdicts if v.status is status and status in _TOLD),
        )


def _further_looks(plans: Sequence[Plan], key: Key, measurements: Sequence[Measurement]) -> Iterator[Task]:
    """Yield a task for each run whose first look at a setting is not clear; `measurements` are those of all runs."""
    by_seed = {measurement.trial.seed: measurement for measurement in measurements}
    for plan in plans:
        first = [by_seed[seed] for seed in plan.seeds[: plan.trials]]
        further = tuple(number for number in plan.looks if number > plan.trials)
        if further and not plan.is_conclusive(key, first):
            yield Task(key, plan.seeds, Looks(numbers=further, clear=plan.is_conclusive), before=plan.trials)


def _nearest(
    zones: Sequence[Zone],
    verdicts: Sequence[Verdict],
    measured: Mapping[mutants_model.Where, Sequence[Measurement]],
    family: int,
) -> Nearest | None:
    """Return the cell in which a run came nearest to a violation; None if any verdict is an error or unsupported.

    `family`: how many questions the run asks in all.
    """
    if any(verdict.status in _FAILED for verdict in verdicts):
        return None
    by_id = {zone.id: zone for zone in zones}
    candidates = []
    for verdict in verdicts:
        if verdict.status is Status.NOT_JUDGED or verdict.value is None:
            continue
        zone = by_id[verdict.zone_id]
        trials = measured[zone.profile, verdict.place][: verdict.n]
        ratio = approach(zone, verdict.place, trials, family)
        used = verdict.permitted.margin_used(verdict.value)
        candidates.append(
            Nearest(zone=zone.id, cell=verdict.place.id, ratio=float(f"{ratio:.3g}"), margin_used=float(f"{used:.3g}"))
        )
    return min(candidates, key=lambda nearest: nearest.distance, default=None)

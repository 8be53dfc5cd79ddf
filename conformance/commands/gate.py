"""`conformance gate`, for CI: measure within a budget, judge zone by zone, and compare with known deviations.

The most telling cells come first, so that a budget that ends early has spent its time well. Cells that are not measured
by then are listed and never judged.
"""

import collections
import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from conformance.catalogue import (
    baseline as baselines,
    clause_record,
    clauses as clause_documents,
    documents,
    expectations,
)
from conformance.catalogue.baseline import Baseline
from conformance.catalogue.questions import zone_questions
from conformance.commands import blame, compare, compare_features, compare_sides, gate_order, tracing
from conformance.commands.blame import Violation
from conformance.commands.clause import JudgedClauseRecord, finding_record, questions_about
from conformance.commands.compare_result import Comparison
from conformance.commands.gate_budget import Budget, Spent
from conformance.commands.measuring import source
from conformance.commands.result import Result, printed
from conformance.commands.status import ExitStatus, of_verdicts
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice, Means
from conformance.model.diagnosis.blame import Blame, NotAttributed
from conformance.model.errors import UserError
from conformance.model.judging import expectation, grid as grids, kinds, seeds
from conformance.model.judging.expectation import Expected, Known, Surprise
from conformance.model.judging.failing import Failures, leaves_open
from conformance.model.judging.question import Key, Question
from conformance.model.judging.session import Answer, Event, Finding, Plan, Session, failures, plan
from conformance.model.judging.verdict import ALPHA, Status, ZoneSide, last_look
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Compared, Movement
from conformance.model.trials.trial import Measurement
from conformance.reporting.text import gate as gate_text
from conformance.reporting.tools.export import FalseAlarmRatesRecord, ShiftsRecord
from conformance.support import files, limits, spelling
from conformance.support.console import count, duration
from conformance.support.record import At, Record, extended, filled

#: the share of a budget that is reserved for repeating new violations
_FOR_REPEATS = 0.1
#: the share of what is left of a budget that clauses may take, before the cells
_FOR_CLAUSES = 0.5
#: seconds to find what violations are due to, even if the budget is used up: it takes about so long
_LEAST_BLAME_S = 30.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What a gate is asked to do. `budget` and `shard` are as on the command line, such as 10m and 2/5."""

    algorithms: Sequence[str]
    choice: Choice
    grid: str = grids.FULL
    budget: str | None = None
    shard: str = "1/1"
    trials: int = 5
    first_seed: int = seeds.JUDGED
    #: whether a new violation fails only if trials with fresh seeds violate, too
    confirm: bool = True
    #: most trials of an inconclusive cell; None stands for the default
    most_trials: int | None = None
    #: whether what is not known fails the gate, too: also a violation that was not confirmed
    strict: bool = False
    #: a results file to judge by instead of the zones that ship
    baseline: str | None = None
    #: folder for reports
    target: pathlib.Path | None = None
    keep_traces: pathlib.Path | None = None
    #: GROUP/N of the flow that is traced, None for the first of the judged group
    flow: str | None = None
    #: whether to trace what violates
    why: bool = True
    #: whether to repeat trials of violating cells, to find what the violation is due to
    blame: bool = True
    #: whether to print what fails as GitHub's workflow commands, too
    annotations: bool = False
    #: whether to judge the clauses of documents, too
    clauses: bool = False
    #: whether to compare features, which `why` reads from traces, with the baseline's, too
    features: bool = False

    @property
    def can_look(self) -> bool:
        """Whether `why` can examine violations: it needs zones that ship."""
        return not self.baseline


@dataclasses.dataclass(frozen=True, kw_only=True)
class ZoneResult:
    """A zone's cells of this run: those that were measured in time or cannot be judged, and those that were not.

    `lost`: those of the grid that a baseline measured in vain, so that nothing judges them.
    """

    zone: Zone
    scheme_id: str
    findings: tuple[Finding, ...]
    unmeasured: tuple[Point, ...]
    lost: tuple[Point, ...] = ()

    def count(self) -> collections.Counter[Status]:
        return collections.Counter(finding.verdict.status for finding in self.findings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class GateEvidence:
    """The verdicts that a gate rests on: those at smoke places or, if it was asked for none of these, all.

    Verdicts on places that do not count are left out.
    """

    SHOWN = ("smoke", "asked=chosen", "decided", "unknown_algorithms")

    smoke: bool
    chosen: int
    #: The algorithms that have to be known, and of which no verdict is decided.
    unknown_algorithms: tuple[str, ...] = ()
    #: the zones and places without a clear verdict
    undecided: tuple[tuple[Zone, Point], ...]

    @property
    def decided(self) -> int:
        return self.chosen - len(self.undecided)

    @property
    def enough(self) -> bool:
        """Whether a gate may pass: at least half is decided, and something of each algorithm that has to be known."""
        return self.half and not self.unknown_algorithms

    @property
    def half(self) -> bool:
        """Whether at least half is decided."""
        return 0 < self.chosen <= 2 * self.decided


class GateClauseRecord(JudgedClauseRecord):
    #: Whether clauses/record.json says that the stack violates it.
    known: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """What a gate says of clauses. `unmeasured`: ids of clauses that were not measured in time."""

    SHOWN = ("judged", "not_measured=unmeasured")

    findings: Sequence[Finding]
    unmeasured: tuple[str, ...]

    @property
    def new(self) -> list[Finding]:
        """The violations that are not on record, likelier causes first."""
        return clause_documents.likeliest_first(finding for finding in self.findings if finding.surprise.fails)

    @property
    def nothing(self) -> bool:
        """Whether no clause is decided, although some apply."""
        return bool(self.findings or self.unmeasured) and not any(finding.decided for finding in self.findings)

    @property
    def judged(self) -> list[GateClauseRecord]:
        """The verdicts, and whether each is a violation on record."""
        return [finding_record(finding, GateClauseRecord, known=finding.as_expected) for finding in self.findings]


class VerdictRecord(Record):
    verdict: Annotated[Status, At("status")]
    reason: str
    trials: Annotated[int, At("n")]
    #: Over the trials; null if nothing ran: missing is never zero.
    median: Annotated[float | None, At("value")]
    #: Confidence interval of the median; null if there are too few trials, or some timed out.
    interval: Annotated[list[float] | None, At("known_interval")]


class ExpectationRecord(Record):
    verdict: Known
    #: Where the median is expected; null for either side.
    side: ZoneSide | None
    reason: str
    link: str | None


class GateCellRecord(VerdictRecord):
    cell: str
    #: For a compatible cell: the smallest shifts that would have been detected, as shares of the reference's median;
    #: null otherwise.
    would_tell: ShiftsRecord | None
    #: Transfers that timed out; if there are any, the median of utilization is an upper bound.
    timeouts: int
    permitted: list[float]
    #: What the stack's expected.json says about this cell, or null.
    expected: ExpectationRecord | None
    #: For a new violation, what trials with fresh seeds showed; null if it was not repeated.
    again: VerdictRecord | None
    #: How this cell differs from what was expected; null if it does not. The gate fails for all of these but "not
    #: confirmed".
    surprise: Surprise | None
    #: What the violation is due to (docs/blame.md); null if this was not examined.
    blame: Blame | None
    #: Why it is not known what the violation is due to; null if it is, or if this was not examined.
    not_attributed: str | None


class ZoneRecord(Record):
    zone: str
    metric: str
    profile: str
    #: algorithm/stack/version; for the kernel's TCP, the version is the kernel's release
    scheme: str
    #: Number of cells by verdict.
    count: dict[str, int]
    #: Cells that were not measured in time, and not judged.
    not_measured: list[str]
    #: Cells that are not judged because a trial of the baseline timed out, failed or ended in an error there.
    without_baseline: list[str]
    cells: list[GateCellRecord]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GateResult(Result):
    """All that a gate found. `strict`: see GateOptions."""

    SCHEMA = "gate"
    VERSION = 3
    SHOWN = (
        "status=ending", "strict", "baseline", "false_alarms", "failures", "features=moved_features", "evidence",
        "clauses", "spent", "zones",
    )  # fmt: skip

    judged: tuple[ZoneResult, ...]
    strict: bool
    #: the algorithms each of which has to be known
    needed: Sequence[str] = ()
    #: Whether it judged by zones made from earlier results (`--baseline`), not by those that ship.
    baseline: bool = False
    #: the command that removes from the stack's expected.json what no longer happens
    gone: str = ""
    #: options for `conformance why` to examine violations; None if the gate did that itself, or `why` cannot
    why_options: str | None = None
    #: features compared with the baseline's; None if that was not asked for, or there is no baseline
    features: Comparison | None = None
    #: Verdicts on clauses, as `conformance clause run` reports them (clause-run.json), and whether each is a violation
    #: on record; null without --clauses, unless clauses judge an algorithm first.
    clauses: Clauses | None = None
    #: What `--budget` was spent on, in seconds; null without a budget. processor_s: null if workers made the trials.
    #: needed_s: an estimate for what is undecided; null if too few trials were made.
    spent: Spent | None = None
    #: how many cells share the chance of a false alarm, over all zones and shards
    family: int = 0
    #: what some of the new violations are due to
    blamed: blame.Found = dataclasses.field(default_factory=dict)
    #: all measurements that the result rests on
    measurements: tuple[Measurement, ...] = ()

    @property
    def moved(self) -> list[Compared]:
        """The features that moved from the baseline's, the largest change first."""
        return [] if self.features is None else self.features.of(Movement.MOVED)

    @property
    def moved_features(self) -> dict[str, Any] | None:
        """Features that moved from the baseline's, as `compare` prints them (compare.json); null without --features."""
        return None if self.features is None else printed(self.features)

    @property
    def findings(self) -> list[Finding]:
        return [finding for judged in self.judged for finding in judged.findings]

    @property
    def surprises(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.surprise.fails]

    @property
    def violating(self) -> list[tuple[Zone, Point]]:
        """The zones and places of the violations that fail."""
        return [
            (judged.zone, finding.at or finding.verdict.place)
            for judged in self.judged
            for finding in judged.findings
            if finding.surprise.fails and finding.last.status.against
        ]

    @property
    def unconfirmed(self) -> list[Finding]:
        """The violations that trials with fresh seeds did not show again."""
        return [finding for finding in self.findings if finding.surprise is Surprise.UNCONFIRMED]

    @property
    def perhaps_failing(self) -> list[Finding]:
        """The verdicts that are open because trials failed, and that no entry of the stack's list expects to fail."""
        return [finding for finding in self.findings if leaves_open(finding.last, finding.expected)]

    @property
    def failures(self) -> list[Failures]:
        """Algorithms of which too many trials failed for chance, in all places together."""
        return failures((*self.findings, *(self.clauses.findings if self.clauses else ())))

    @property
    def evidence(self) -> GateEvidence:
        """How many verdicts were asked for and are decided: those at smoke cells or, without any, all that count."""
        return evidence(self.judged, self.needed)

    @property
    def ending(self) -> str:
        """How the gate ended: "passes", "fails", "cannot tell: error" or "cannot tell"."""
        return gate_text.ENDS[self.exit_status]

    @property
    def false_alarms(self) -> FalseAlarmRatesRecord | None:
        """Upper bound on the share of runs with any false alarm, over all zones and shards; null if none was judged."""
        return FalseAlarmRatesRecord(at_most=ALPHA, cells=self.family) if self.findings else None

    @property
    def zones(self) -> list[ZoneRecord]:
        """The verdicts, zone by zone."""
        return [
            ZoneRecord(
                zone=judged.zone.id, metric=judged.zone.metric, profile=judged.zone.profile, scheme=judged.scheme_id,
                count={str(status): n for status, n in judged.count().items()},
                not_measured=[cell.id for cell in judged.unmeasured],
                without_baseline=[cell.id for cell in judged.lost],
                cells=[self._cell(finding) for finding in sorted(judged.findings, key=lambda f: f.verdict.place)],
            )
            for judged in self.judged
        ]  # fmt: skip

    def _cell(self, finding: Finding) -> GateCellRecord:
        verdict, cause = finding.verdict, self.blamed.get(finding.shown_at)
        return extended(
            GateCellRecord, verdict, VerdictRecord, cell=verdict.place.id,
            would_tell=filled(ShiftsRecord | None, verdict.detectable), timeouts=finding.timeouts,
            permitted=[verdict.permitted.low, verdict.permitted.high],
            expected=filled(ExpectationRecord | None, finding.expected),
            again=filled(VerdictRecord | None, finding.again),
            surprise=None if finding.surprise is Surprise.NONE else finding.surprise,
            blame=cause if isinstance(cause, Blame) else None,
            not_attributed=cause.why_not if isinstance(cause, NotAttributed) else None,
        )  # fmt: skip

    @property
    def exit_status(self) -> ExitStatus:
        """The exit status. Even if it is not strict, a gate does not pass without enough evidence, nor while transfers
        that broke off leave a verdict open.
        """
        clauses = self.clauses or Clauses(findings=(), unmeasured=())
        others = [f for f in (*self.findings, *clauses.findings) if not f.as_expected]
        if self.surprises or self.moved or clauses.new or self.failures:
            return ExitStatus.VIOLATES
        if any(f.status is Status.ERROR for f in others):
            return ExitStatus.ERROR
        known = of_verdicts({f.status for f in others}) is ExitStatus.DONE and not any(f.unconfirmed for f in others)
        known = known and not clauses.unmeasured and not any(judged.unmeasured or judged.lost for judged in self.judged)
        known = known and (self.features is None or self.features.exit_status is ExitStatus.DONE)
        enough = self.evidence.enough and not clauses.nothing and not self.perhaps_failing
        return ExitStatus.DONE if enough and (known or not self.strict) else ExitStatus.UNKNOWN


def compute(options: GateOptions, means: Means) -> GateResult:
    """Measure and judge a stack. Raises UserError."""
    budget = Budget(options.budget)
    notes = means.notes
    if options.target:
        _check_target(options.target, options, means)
        gate_text.clear(options.target)  # however this run ends, no earlier verdict passes for its own
    bench = benches.find(options.choice)
    known = () if options.baseline else expectations.of(bench)
    before = _baseline(options, bench)
    planned, zones = _plan(options, bench, known, before)
    if options.keep_traces:
        files.check_writable(options.keep_traces, "name another folder with --keep-traces")
    if before and options.baseline:
        every_zone = list(itertools.chain.from_iterable(zones.values()))
        for line in before.notes(options.baseline, every_zone, bench.scheme, bench.lab_digest):
            notes.say(line)
    most = planned.looks[-1]
    each = f"{options.trials} to {most} trials" if most > options.trials else count(most, "trial")
    notes.say(
        f"gate: {bench.adapter.name}, {', '.join(zones)}: {count(len(planned.work), 'cell')}, {each} each"
        + (f", {duration(budget.wall_s)}" if budget.wall_s else "")
    )
    features = options.features and gate_order.shares(options.shard)[1] == 1  # all shards would trace the same
    compared = _features(options, bench, tuple(zones), budget.wall_s, means) if features else None
    clauses = None
    about, ids = (tuple(zones), ()) if options.clauses else _first(options, bench, zones)
    if about:
        clauses = _clauses(options, bench, about, ids, most, budget.share_s(_FOR_CLAUSES), means)

    measured: dict[bool, dict[Key, Sequence[Measurement]]] = {False: {}, True: {}}
    session = Session(plan=planned, known=known, confirms=options.confirm)

    def measure(plan: Plan) -> Iterator[Event]:
        if plan.repeats:
            notes.say(f"{count(len(plan.questions), 'new violation')}: measuring again with fresh seeds")
        left_s = budget.left_s(_FOR_REPEATS if options.confirm and not plan.repeats else 0.0)
        follow = (lambda progress: None) if plan.repeats else budget.follow
        for event in source(bench, means, left_s=lambda: left_s, on_trial=follow)(plan):
            if isinstance(event, Answer):
                measured[plan.repeats][event.key] = event.measurements
            yield event

    findings = session.findings(measure)
    schemes = {algorithm: bench.scheme(algorithm).id for algorithm in zones}
    results = tuple(by_zone(planned, findings, itertools.chain(*zones.values()), schemes))
    if before:
        lost = [_lost(before, of.zone, options.grid, bench.profile) for of in results]
        results = tuple(dataclasses.replace(of, lost=places) for of, places in zip(results, lost, strict=True))
    open_ = {(zone.id, place) for zone, place in evidence(results).undecided}
    needed_s = budget.needed_s(
        {key for question in planned.questions if (question.id, question.place) in open_ for key in question.keys}
    )
    spent = budget.spent(means.workers or limits.workers(), needed_s, here=means.executor is None)
    blamed: blame.Found = {}
    if options.blame and not options.baseline:
        left_s = budget.left_s()
        for_blame_s = None if left_s is None else max(left_s, _LEAST_BLAME_S)
        violations = _violations(results, lambda finding: finding.surprise is Surprise.NEW)
        blamed = blame.of_violations(violations, options.choice, notes, means.workers, for_blame_s)
    return GateResult(
        judged=results,
        blamed=blamed,
        family=planned.family,
        strict=options.strict,
        needed=_needed(options, planned, zones, bench, before),
        baseline=bool(options.baseline),
        gone=expectation.gone_command(options.choice.stack, str(means.results), options.choice.options("stack")),
        why_options=options.choice.options() if options.can_look and not options.why else None,
        features=compared,
        clauses=clauses,
        spent=spent,
        measurements=tuple(itertools.chain.from_iterable([*measured[False].values(), *measured[True].values()])),
    )


def _baseline(options: GateOptions, bench: Bench) -> Baseline | None:
    """Return the baseline that was asked for, if one was. Raises UserError."""
    if options.baseline == "":
        raise UserError("--baseline is empty", "name a results file, or leave it out")
    return baselines.read(options.baseline, bench.adapter.name, bench.profile) if options.baseline else None


def _lost(before: Baseline, zone: Zone, grid: str, profile: str) -> tuple[Point, ...]:
    """Return the places of a grid that a zone lacks because the baseline measured them in vain."""
    lost = before.lost_of(zone)
    if grid != grids.SMOKE:
        return grids.within(grid, lost)
    alike = [of for _, of in documents.judging(profile) if (of.algorithm, of.profile) == (zone.algorithm, zone.profile)]
    return tuple(place for place in lost if any(place in of.smoke for of in alike))


def _needed(
    options: GateOptions, planned: Plan, algorithms: Collection[str], bench: Bench, before: Baseline | None
) -> list[str]:
    """Return the algorithms each of which has to be known: those that were named or, without names, that are listed.

    Of these, a shard or a grid may ask nothing, and a kernel that is not built says nothing about the stack. A baseline
    may have lost all cells of one.
    """
    judged = {algorithm for algorithm, _ in planned.work}
    if options.algorithms:
        whole = gate_order.shares(options.shard)[1] == 1
        return [algorithm for algorithm in algorithms if whole or algorithm in judged]
    lost = [algorithm for algorithm, _ in before.lost if algorithm not in algorithms] if before else []
    listed = [algorithm for algorithm in algorithms if algorithm in judged and bench.scheme(algorithm).kernel_digest]
    return [*listed, *sorted(set(lost))]


def _first(options: GateOptions, bench: Bench, algorithms: Iterable[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return (algorithms, ids of clauses) of those that clauses judge before zones; none where cells are named."""
    if options.baseline or options.grid not in (grids.FULL, grids.SMOKE):
        return (), ()
    smoke = clause_documents.smoke()
    firsts = [
        (algorithm, clause.id)
        for clause, algorithm in clause_documents.firsts(bench.adapter.manifest.transport, algorithms)
        if options.grid != grids.SMOKE or clause.id in smoke
    ]
    return list(dict.fromkeys(a for a, _ in firsts)), list(dict.fromkeys(name for _, name in firsts))


def _check_target(target: pathlib.Path, options: GateOptions, means: Means) -> None:
    """Check that reports can be written to this folder and overwrite none of their sources. Raises UserError."""
    copy = (target / "results.jsonl").resolve()
    for name, given in (("--results", means.results), ("--baseline", options.baseline)):
        if given and pathlib.Path(given).resolve() == copy:
            raise UserError(f"--out {target} would replace the file of {name} {given}", files.OTHER_FOLDER)
    files.check_writable(target, files.OTHER_FOLDER)


def _features(
    options: GateOptions, bench: Bench, algorithms: Sequence[str], budget_s: float | None, means: Means
) -> Comparison | None:
    """Compare features with the baseline's, in half of the budget; without a baseline, only record them.

    Features come before cells: their cost is known, and a full tier uses up whatever time there is.
    """
    why_not = {algorithm: why for algorithm in algorithms if (why := tracing.why_not(bench, algorithm))}
    for algorithm, why in why_not.items():
        means.notes.warn(f"{algorithm} is not traced: {why}")
    algorithms = [algorithm for algorithm in algorithms if algorithm not in why_not]
    if not algorithms:
        return None
    chosen = compare.CompareOptions(
        algorithms=algorithms, choice=options.choice, grid=compare.NO_CELLS,
        budget_s=None if budget_s is None else budget_s / 2, first_seed=options.first_seed,
    )  # fmt: skip
    here = dataclasses.replace(means, executor=None)
    if options.baseline:
        base = compare_sides.baseline(options.baseline, bench.adapter.name, algorithms)
        return compare.of_sides(base, compare_sides.Stack(given=options.choice.stack, bench=bench), chosen, here)
    for algorithm in algorithms:
        compare_features.record(bench, algorithm, here, chosen.budget_s, chosen.first_seed)
    means.notes.say("features are kept beside the results; to compare them, give --baseline")
    return None


def _plan(
    options: GateOptions, bench: Bench, known: Sequence[Expected], before: Baseline | None
) -> tuple[Plan, dict[str, list[Zone]]]:
    """Return the plan, and {algorithm: the zones that it is judged by}. Raises UserError."""
    shard = gate_order.shares(options.shard)
    shipped = [zone for _, zone in documents.judging(bench.profile)]
    zones = _zones(options, bench, shipped, before)
    flat = list(itertools.chain.from_iterable(zones.values()))
    if options.grid != grids.SMOKE:
        grids.check(options.grid, flat, besides=[grids.SMOKE])
    ordered = gate_order.order(zones, shipped, options.grid)
    of_shard = gate_order.share(ordered.work, *shard)
    questions = _questions(flat, of_shard)
    judgeable = {key for question in questions if question.rule.judgeable for key in question.keys}
    work = [key for key in of_shard if key in judgeable]
    if not work:
        named = f"no zone of {', '.join(zones)} judges cells of {options.grid} in shard {options.shard}"
        raise UserError(named, "choose another --grid")
    most = last_look(options.trials, options.most_trials)
    planned = plan(
        questions, trials=options.trials, most_trials=most, first_seed=options.first_seed, work=work,
        beside=_questions(flat, ordered.work), known=expectation.violating(known, questions),
        urgent=ordered.urgent if options.budget else (),
    )  # fmt: skip
    planned.refuse_blind()
    return planned, zones


def _zones(options: GateOptions, bench: Bench, shipped: list[Zone], before: Baseline | None) -> dict[str, list[Zone]]:
    """Return {algorithm: its Zones}, by default of all algorithms that the stack offers and that have zones.

    By default, a baseline asks for all that it has, whether or not the stack still offers it. Raises UserError if an
    algorithm has no zone.
    """
    there = [zone for _, zone in before.zones] if before else shipped
    known = sorted({zone.algorithm for zone in there})
    offered = known if before else bench.adapter.manifest.offered()
    wanted = options.algorithms or [algorithm for algorithm in offered if algorithm in known]
    if not wanted:
        raise UserError(f"{bench.adapter.name} lists no algorithm that a zone judges", "name the algorithms")
    for algorithm in wanted:
        if algorithm not in known:
            raise UserError(
                f"no {'baseline' if before else 'zone'} for algorithm {algorithm!r}",
                spelling.mend(algorithm, known, f"choose one of {', '.join(known)}"),
            )
    return {algorithm: [zone for zone in there if zone.algorithm == algorithm] for algorithm in dict.fromkeys(wanted)}


def _questions(zones: Iterable[Zone], work: Sequence[Key]) -> list[Question]:
    """Return the questions of all zones about this work, zone by zone."""
    return [
        question
        for zone in zones
        for question in zone_questions(zone, [setting for algorithm, setting in work if algorithm == zone.algorithm])
    ]


def evidence(results: Sequence[ZoneResult], needed: Iterable[str] = ()) -> GateEvidence:
    """Return the GateEvidence in these zones. `needed`: the algorithms that need a decided verdict."""
    smoke = {(r.zone.algorithm, r.zone.profile, place) for r in results for place in _smoke(r.zone)}
    every = [(r.zone, place, False) for r in results for place in r.unmeasured]
    every += [
        (r.zone, f.verdict.place, f.decided)
        for r in results
        for f in r.findings
        if f.verdict.status is not Status.NOT_JUDGED
    ]
    at_smoke = [suspect for suspect in every if (suspect[0].algorithm, suspect[0].profile, suspect[1]) in smoke]
    chosen = at_smoke or every
    undecided = tuple((zone, place) for zone, place, decided in chosen if not decided)
    known = {zone.algorithm for zone, _, decided in every if decided}
    unknown = tuple(algorithm for algorithm in needed if algorithm not in known)
    return GateEvidence(smoke=bool(at_smoke), chosen=len(chosen), undecided=undecided, unknown_algorithms=unknown)


def _smoke(zone: Zone) -> Iterable[Point]:
    """Return the places of a zone's smoke verdicts: its smoke places or, if it judges kinds of cells, their kinds."""
    return [rule.place for rule in kinds.rules(zone, zone.smoke)] if zone.by_kind else zone.smoke


def failing(results: Iterable[ZoneResult]) -> list[Violation]:
    """Return the violations that fail a gate, each with its values."""
    return _violations(results, lambda finding: finding.surprise.fails and finding.last.status is Status.VIOLATES)


def _violations(results: Iterable[ZoneResult], of: Callable[[Finding], bool]) -> list[Violation]:
    return [
        Violation(zone=result.zone, place=finding.at, values=finding.values)
        for result in results
        for finding in result.findings
        if finding.at is not None and of(finding)
    ]


def by_zone(
    plan: Plan, findings: Iterable[Finding], zones: Iterable[Zone], schemes: Mapping[str, str]
) -> Iterator[ZoneResult]:
    """Yield a ZoneResult for each of these zones that a Plan asks about. `schemes`: {algorithm: scheme's id}."""
    by_name = {finding.name: finding for finding in findings}
    for zone in zones:
        questions = [question for question in plan.questions if question.id == zone.id]
        if questions:
            yield ZoneResult(
                zone=zone,
                scheme_id=schemes[zone.algorithm],
                findings=tuple(by_name[question.name] for question in questions if question.name in by_name),
                unmeasured=tuple(question.place for question in questions if question.name not in by_name),
            )


def _clauses(
    options: GateOptions, bench: Bench, algorithms: Sequence[str], what: Sequence[str], most_trials: int,
    left_s: Callable[[float], float | None], means: Means,
) -> Clauses:  # fmt: skip
    """Judge the clauses about these algorithms. Raises UserError.

    `what`: ids of clauses; all, if there are none. `left_s` returns the seconds left, if a part of the budget is kept,
    or None.
    """
    every = questions_about(bench, {algorithm: algorithm for algorithm in algorithms}, what)
    work = gate_order.share(list(dict.fromkeys(question.key for question in every)), *gate_order.shares(options.shard))
    questions = [question for question in every if question.key in work]
    planned = plan(
        questions, trials=options.trials, most_trials=most_trials, first_seed=options.first_seed, beside=every
    )
    means.notes.say(f"{count(len(questions), 'clause')} in {count(len(work), 'network')}")
    session = Session(plan=planned, known=clause_record.expected(bench.adapter.name, bench.adapter.manifest.path))

    def measure(plan: Plan) -> Iterable[Event]:
        kept = 0.0 if plan.repeats else _FOR_REPEATS
        here = dataclasses.replace(means, executor=None)
        return source(bench, here, new=session.is_new, left_s=lambda: left_s(kept))(plan)

    findings = session.findings(measure)
    measured = {finding.name for finding in findings}
    return Clauses(findings=findings, unmeasured=tuple(q.id for q in questions if q.name not in measured))

"""`conformance dev bugs run`: find out which bugs that stacks really had the suite catches, and whether it names them.

For each entry of the catalogue (catalogue/bugs.py), the commands that a user would type are run on both builds, with
nothing that the catalogue says, in order of what they cost: the clauses of the smoke tier, all clauses, `compare`, and,
if clauses tell nothing, the zones' smoke cells.
"""

import collections
import dataclasses
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from conformance.catalogue import bugs, clauses
from conformance.catalogue.bugs import Bug, Build, EntryRun, Tally, Tier
from conformance.commands import clause, compare, gate
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.kernel import store as kernels
from conformance.lab import adapter
from conformance.model.clauses import changes
from conformance.model.errors import UserError
from conformance.model.judging import grid, seeds
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status
from conformance.model.studies.comparison import Movement, Quantity
from conformance.reporting.text import compare as compare_text
from conformance.support.notes import Notes

#: what tells the builds apart, the first sentence, how many trials that took, and how many places there was no time for
Said = tuple[list[str], str, int, int]

_K = TypeVar("_K")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BugsOptions:
    """How to run entries. `trees`: {what the catalogue calls a tree: its folder}. `budget_s`: of each comparison.

    `until_named`: end an entry, unless it is a sham, with the first command that names the mechanism.
    `clauses`, `grid`: judge by these clauses and cells alone, for a quick look, which is not recorded.
    """

    trees: dict[str, str]
    budget_s: float | None
    again: bool = False
    until_named: bool = False
    clauses: tuple[str, ...] = ()
    grid: str = grid.SMOKE

    @property
    def recorded(self) -> bool:
        return not self.clauses and self.grid == grid.SMOKE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Result):
    """What came of the entries."""

    SCHEMA = "bugs-run"
    SHOWN = ("runs", "not_run=absent", "caught", "named", "missed", "aside", "moved")

    bugs: tuple[Bug, ...]
    runs: tuple[EntryRun, ...]
    #: Entries that were not run, and why.
    absent: dict[str, str]
    recorded: pathlib.Path | None = None

    @property
    def tally(self) -> Tally:
        return Tally.from_runs(self.bugs, {each.id: each for each in self.runs})

    @property
    def caught(self) -> int:
        return len(self.tally.of(caught=True))

    @property
    def named(self) -> int:
        return self.tally.named

    @property
    def missed(self) -> int:
        return len(self.tally.of(caught=False))

    @property
    def aside(self) -> list[str]:
        """Bugs of which it is proved that they do not show: nothing told the builds apart."""
        return [bug.id for bug, _ in self.tally.aside]

    @property
    def moved(self) -> list[str]:
        """Shams that the judgements told apart, although they do not differ in congestion control."""
        return self.tally.moved

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if an entry was missed or a sham moved, UNKNOWN if none was run, else DONE."""
        if not self.runs:
            return ExitStatus.UNKNOWN
        return ExitStatus.VIOLATES if self.missed or self.moved else ExitStatus.DONE


def run(ids: Sequence[str], options: BugsOptions, means: Means) -> Ran:
    """Run these entries, or all whose builds are there, and record each when it is done. Raises UserError."""
    chosen = bugs.chosen(ids)
    names = {build.tree for bug in bugs.entries() for build in (bug.buggy, bug.fixed)}
    for name in options.trees:
        if name not in names:
            raise UserError(f"--source {name}: no entry has a build of this name", "bugs/entries lists them")
    done, absent, path = [], {}, None
    before = {} if options.again else bugs.runs()
    for bug in chosen:
        try:
            choices = _choices(bug, options.trees, means.notes)
            sides = [benches.find(choice) for choice in choices]
            schemes = [side.scheme(bug.algorithm) for side in sides]
            builds = [
                (scheme.id, scheme.stack_digest if choice.kernel is None else scheme.kernel_digest)
                for choice, scheme in zip(choices, schemes, strict=True)
            ]
            known = before.get(bug.id)
            if known is None or known.builds != builds:
                known = EntryRun(bug.id, builds, sides[0].lab_digest, list(_judged(bug, choices, options, means)))
                path = bugs.record([known]) if options.recorded else None
        except UserError as error:
            absent[bug.id] = str(error)
            means.notes.warn(f"{bug.id} is not run: {error}")
            continue
        done.append(known)
    return Ran(bugs=chosen, runs=tuple(done), absent=absent, recorded=path)


def _choices(bug: Bug, trees: dict[str, str], notes: Notes) -> tuple[Choice, Choice]:
    """Return the Choices of the buggy and the fixed build, which are built now if necessary. Raises UserError."""
    if bug.unavailable:
        raise UserError(bug.unavailable)
    buggy, fixed = (
        Choice(stack=bug.stack, source=_sources(bug, build, trees), kernel=build.kernel)
        for build in (bug.buggy, bug.fixed)
    )
    for choice in (buggy, fixed):
        if choice.kernel is not None:
            kernels.find(choice.kernel)
        notes.say(f"{bug.id}: building {bug.stack} {' '.join(choice.source)}".rstrip())
        adapter.build(bug.stack, given=choice.source)
    return buggy, fixed


def _sources(bug: Bug, build: Build, trees: dict[str, str]) -> tuple[str, ...]:
    if build.tree is None:
        return tuple(f"{name}={version}" for name, version in build.versions.items())
    if build.tree not in trees:
        raise UserError(f"its tree {build.tree} is not given", f"build it, and give --source {build.tree}=PATH")
    return (f"{bug.part}={trees[build.tree]}",)


def _judged(bug: Bug, choices: tuple[Choice, Choice], options: BugsOptions, means: Means) -> Iterator[Tier]:
    """Yield what each command says. Zones are for bugs that clauses do not catch, and for shams. Raises UserError."""
    caught = False
    for judge in (*([_smoke] if _smoke_clauses(bug, options) else []), _clauses, _compare, _zones):
        if judge is _zones and caught and not bug.sham:
            return
        began_s = time.monotonic()
        means.notes.say(f"{bug.id}: {judge.__name__[1:]}")
        by, first, trials, unmeasured = judge(bug, choices, options, means)
        tier = Tier(
            command=judge.__name__[1:],  # type: ignore[arg-type]
            caught=bool(by), by=by, first=first, named=bool(by) and names_mechanism(bug, by[0]), trials=trials,
            minutes=round((time.monotonic() - began_s) / 60, 1), unmeasured=unmeasured,
        )  # fmt: skip
        means.notes.say(f"{bug.id}: {tier.command}: {'caught' if by else 'nothing'}: {first}")
        yield tier
        caught |= tier.caught and tier.command in bugs.ABSOLUTE
        if options.until_named and tier.named and not bug.sham:
            return


def names_mechanism(bug: Bug, what: str) -> bool:
    """Return whether a feature, clause or zone names the mechanism of a bug.

    It does if the entry says so of it, or, of a clause, of what the clause points at: whoever wrote the entry need not
    have known each clause.
    """
    called = (clause for clause in clauses.all_clauses() if clause.id == what)
    points_at = (changes.label_of_clause(clause, bug.algorithm) for clause in called)
    return not {what, *points_at}.isdisjoint(bug.named_by)


def _side(choice: Choice) -> str:
    return choice.stack if choice.kernel is None else f"{choice.stack}@{choice.kernel}"


def _compare(bug: Bug, choices: tuple[Choice, Choice], options: BugsOptions, means: Means) -> Said:
    """Compare the fixed build with the buggy one, which is the change that a user would look at."""
    buggy, fixed = choices
    comparison = compare.compute(
        _side(fixed), _side(buggy),
        compare.CompareOptions(
            algorithms=[bug.algorithm], choice=dataclasses.replace(buggy, kernel=None), base_source=fixed.source,
            grid=options.grid, budget_s=options.budget_s,
        ),
        means,
    )  # fmt: skip
    places: collections.Counter[tuple[str, str]] = collections.Counter()
    for compared in comparison.compared:
        place = compared.quantity.profile, compared.quantity.place.id
        places[place] = max(places[place], sum(compared.n))
    moved = [_called(c.quantity, bug) for c in comparison.of(Movement.MOVED)]
    first = next(compare_text.sentences(comparison), compare_text.summary(comparison))
    return list(dict.fromkeys(moved)), first, places.total(), len(comparison.late)


def _called(quantity: Quantity, bug: Bug) -> str:
    """Return what a quantity points at, or its own name if that is what names the bug, or all that there is."""
    return quantity.name if quantity.name in bug.named_by else quantity.label or quantity.name


def _smoke_clauses(bug: Bug, options: BugsOptions) -> tuple[str, ...]:
    """Return the clauses of the smoke tier that are about the algorithm; none if others are asked for."""
    smoke = () if options.clauses else clauses.smoke()
    return tuple(sorted(name for name in smoke if clauses.find(name).judged_of((bug.algorithm,))))


def _smoke(bug: Bug, choices: tuple[Choice, Choice], options: BugsOptions, means: Means) -> Said:
    """Judge by the clauses of the smoke tier."""
    return _clauses(bug, choices, dataclasses.replace(options, clauses=_smoke_clauses(bug, options)), means)


def _clauses(bug: Bug, choices: tuple[Choice, Choice], options: BugsOptions, means: Means) -> Said:
    """Judge the buggy build by all clauses, and the fixed one by those that speak against the buggy one.

    What speaks against both at first is not repeated, as it tells nothing.
    """

    def judge(choice: Choice, ids: tuple[str, ...], confirms: bool = False) -> tuple[int, dict[str, Finding]]:
        ran = clause.run(
            ids or options.clauses, [bug.algorithm], choice, means, mutant=None, trials=5, first_seed=seeds.JUDGED,
            most_trials=None, record=False, confirms=confirms, beside=options.clauses,
        )  # fmt: skip
        if all(finding.confirmed.status is Status.ERROR for finding in ran.findings):
            raise UserError(f"no trial of a build comes to its end: {ran.findings[0].confirmed.reason}")
        most: collections.Counter[str] = collections.Counter()
        for finding in ran.findings:
            network = clauses.rule(finding).where
            most[network] = max(most[network], finding.confirmed.n)
        return most.total(), {of.verdict.zone_id: of for of in clauses.likeliest_first(ran.findings)}

    trials, against = _apart(judge, choices)
    if against:
        more, again = judge(choices[0], tuple(against), confirms=True)
        trials, against = trials + more, _against(again)
    if not against:
        return [], "the clauses say the same of both builds", trials, 0
    first = next(iter(against.values()))
    rule = clauses.rule(first)
    headline = rule.headline(first.scheme, first.confirmed).partition("\n")[0]
    return list(against), f"{headline}: {rule.clause.text}", trials, 0


def _zones(bug: Bug, choices: tuple[Choice, Choice], options: BugsOptions, means: Means) -> Said:
    """Judge both builds by the smoke cells of the algorithm's zones."""

    def judge(choice: Choice, _: object) -> tuple[int, dict[tuple[str, str], Finding]]:
        judged = gate.compute(
            gate.GateOptions(
                algorithms=[bug.algorithm], choice=choice, grid=options.grid, why=False, blame=False
            ),
            means,
        )  # fmt: skip
        return len(judged.measurements), {(of.verdict.zone_id, of.verdict.place.id): of for of in judged.findings}

    trials, against = _apart(judge, choices)
    if not against:
        return [], "the zones say the same of both builds", trials, 0
    (zone, place), first = next(iter(against.items()))
    return list(dict.fromkeys(name for name, _ in against)), f"{zone} at {place}: {first.verdict.reason}", trials, 0


def _apart(
    judge: Callable[[Choice, tuple[_K, ...]], tuple[int, dict[_K, Finding]]], choices: tuple[Choice, Choice]
) -> tuple[int, dict[_K, Finding]]:
    """Return the number of trials, and what speaks against the buggy build and surely not against the fixed one.

    `judge(choice, names)` returns both of one build. `names`: what spoke against the buggy build; none for that itself.
    """
    buggy, fixed = choices
    trials, findings = judge(buggy, ())
    against = _against(findings)
    if not against:
        return trials, against
    more, also = judge(fixed, tuple(against))
    return trials + more, {name: of for name, of in against.items() if name in also and _cleared(also[name])}


def _against(findings: dict[_K, Finding]) -> dict[_K, Finding]:
    return {name: finding for name, finding in findings.items() if finding.confirmed.status.against}


def _cleared(finding: Finding) -> bool:
    """Return whether a build does nothing wrong, as far as all of its trials tell: it passes, or its median is inside
    what is permitted, which zones call compatible, or no trial shows what is judged.

    What else is open may be a violation that was missed by chance, of both builds.
    """
    verdict = finding.confirmed
    is_known = verdict.known_interval is not None and verdict.p is None
    inside = is_known and all(value in verdict.permitted for value in verdict.values)
    return verdict.status.passes or inside or (verdict.hidden and verdict.value is None)

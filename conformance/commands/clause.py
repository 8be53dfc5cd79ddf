"""`conformance clause`: list and show clauses of RFCs and drafts, and judge stacks by them."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

from conformance.catalogue import clause_record, clauses, likely_faults
from conformance.catalogue.clause_record import ClauseEntry
from conformance.commands import mutants
from conformance.commands.measuring import source
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_verdicts
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice, Means
from conformance.model.clauses.document import Clause, Specification
from conformance.model.errors import UserError
from conformance.model.judging.question import Question
from conformance.model.judging.session import Finding, Session, plan
from conformance.model.judging.verdict import Sample, Status, last_look
from conformance.model.trials.trial import Scheme
from conformance.support import spelling
from conformance.support.record import At, Record, Text, extended

_R = TypeVar("_R", bound=Record)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClauseList(Result):
    """The clauses that ship, document by document."""

    SCHEMA = "clause-list"

    specifications: tuple[Specification, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ShownClause(Result):
    """One clause."""

    SCHEMA = "clause-show"
    SHOWN = (
        "clause", "algorithms=clause.algorithms", "transports=clause.transports", "network=clause.network.words",
        "observable=clause.observable.name", "permitted=clause.permitted", "why=clause.bound.why",
        "trials=clause.trials", "invisible=clause.invisible", "setting",
    )  # fmt: skip

    clause: Clause

    @property
    def setting(self) -> dict[str, Any]:
        """As in result lines (measurement.json)."""
        return clauses.setting(self.clause.network).to_json()


class ClauseFindingRecord(Record):
    clause: Annotated[str, At("verdict.zone_id")]
    scheme: str
    verdict: Annotated[Status, At("confirmed.status")]
    reason: Annotated[str, At("confirmed.reason")]
    value: Annotated[float | None, At("confirmed.value")]
    #: With few values, its ends are null.
    interval: Annotated[list[float | None] | None, At("confirmed.interval")]
    p: Annotated[float | None, At("confirmed.p")]
    trials: Annotated[int, At("confirmed.n")]
    #: How many values the verdict rests on.
    values: Annotated[int, At("confirmed.samples")]
    seen: Annotated[list[Sample], At("confirmed.evidence")]


class JudgedClauseRecord(ClauseFindingRecord):
    source: str
    permitted: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClauseVerdicts(Result):
    """The verdicts on all clauses that were asked for, in order. `recorded`: the file that keeps them, if any."""

    SCHEMA = "clause-run"
    SHOWN = ("results", "clauses")

    findings: Sequence[Finding]
    results: str
    recorded: pathlib.Path | None = None

    @property
    def clauses(self) -> list[JudgedClauseRecord]:
        """The verdicts, each with what the document asks for."""
        return [finding_record(finding, JudgedClauseRecord) for finding in self.findings]

    @property
    def against(self) -> list[Finding]:
        """What speaks against the stack, likelier causes first."""
        return clauses.likeliest_first(finding for finding in self.findings if finding.confirmed.status.against)

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if any clause is violated, else ERROR or UNKNOWN if something is not known, else DONE."""
        return of_verdicts(finding.confirmed.status for finding in self.findings)


def finding_record(finding: Finding, kind: type[_R], **fields: Any) -> _R:
    """Return a record of a finding about a clause."""
    clause = clauses.rule(finding).clause
    return extended(kind, finding, ClauseFindingRecord, source=clause.source, permitted=clause.permitted, **fields)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tabled(Result):
    """The recorded verdicts on the clauses of some specifications."""

    SCHEMA = "clause-table"
    SHOWN = ("record",)

    specifications: tuple[Specification, ...]
    #: The verdicts on these specifications' clauses.
    record: Sequence[ClauseEntry]


def table(names: Sequence[str]) -> Tabled:
    """Return the recorded verdicts on the clauses of these specifications, by default of all. Raises UserError."""
    specifications = list_all(names).specifications
    ids = {clause.id for specification in specifications for clause in specification.clauses}
    return Tabled(
        specifications=specifications, record=[entry for entry in clause_record.load() if entry.clause in ids]
    )


def list_all(names: Sequence[str]) -> ClauseList:
    """List the clauses of these specifications, by default of all. Raises UserError if one is unknown."""
    every = clauses.specifications()
    known = {specification.name: specification for specification in every}
    for name in names:
        if name not in known:
            mend = spelling.mend(name, known, f"choose one of {', '.join(known)}")
            raise UserError(f"there are no clauses of {name!r}", mend)
    return ClauseList(specifications=tuple(known[name] for name in names) if names else every)


def show(clause_id: str) -> ShownClause:
    """Show one clause. Raises UserError if it is unknown."""
    return ShownClause(clause=clauses.find(clause_id))


def run(
    what: Sequence[str], algorithms: Sequence[str], choice: Choice, means: Means, *, mutant: str | None, trials: int,
    first_seed: int, most_trials: int | None, record: bool, confirms: bool = True, beside: Sequence[str] | None = None,
) -> ClauseVerdicts:  # fmt: skip
    """Judge a stack by clauses, which are given by id or by specification. Raises UserError.

    `mutant`: judge this mutant of the corpus instead of a stack. `record`: keep the verdicts in clauses/record.json.
    `confirms`: repeat violations. `beside`: the clauses that share the chance of a false alarm, given as `what` is; by
    default, those alone that are judged.
    """
    who, bench = choice.stack, None
    if mutant is not None:
        if choice != Choice():
            raise UserError(
                "--mutant fixes what is measured, and where", "leave out options that choose a stack or kernel"
            )
        (wrong,) = mutants.choose_one(mutant)
        bench, who = mutants.bench_of(wrong, lambda line: None), f"mutant {wrong.id}"
        algorithms, called = algorithms or [wrong.algorithm], {wrong.algorithm: wrong.measured}
    else:
        bench = benches.find(choice)
        called = {algorithm: algorithm for algorithm in bench.adapter.manifest.offered()}
    questions = questions_about(bench, called, what, algorithms)
    if not questions:
        raise UserError(
            f"none of these clauses applies to what {who} offers",
            "`conformance clause show CLAUSE` says which algorithms it applies to",
        )
    planned = plan(
        questions, trials=trials, most_trials=last_look(trials, most_trials), first_seed=first_seed,
        work=[question.key for question in questions if question.rule.judgeable],
        beside=() if beside is None else questions_about(bench, called, beside, algorithms),
    )  # fmt: skip
    planned.refuse_blind()
    session = Session(plan=planned, confirms=confirms)
    findings = session.findings(source(bench, means, new=session.is_new))
    entries = [clause_record.entry(finding, who) for finding in findings if record and finding.scheme]
    recorded = clause_record.record(entries) if record else None
    return ClauseVerdicts(findings=findings, results=str(means.results), recorded=recorded)


def _chosen(what: Sequence[str]) -> list[Clause]:
    """Return the clauses with these ids or of these specifications, in order; by default all. Raises UserError."""
    names = clauses.markers()
    by_id: dict[str, Clause] = {}
    for word in what or list(names):
        named = [c for c in clauses.all_clauses() if word in c.markers] if word in names else [clauses.find(word)]
        by_id |= {clause.id: clause for clause in named}
    return list(by_id.values())


def questions_about(
    bench: Bench, called: Mapping[str, str], what: Sequence[str] = (), named: Sequence[str] = ()
) -> list[Question]:
    """Return the questions of clauses about the algorithms of a stack to which they apply. Raises UserError.

    `called`: {algorithm: what the adapter calls it} of those that the adapter has. `what`: ids or specifications; by
    default, all clauses. If algorithms are `named`, only these are asked about, and also where they are controls.
    """
    return [
        clauses.question(clause, bench.adapter.manifest, algorithm, called[algorithm])
        for clause in _chosen(what)
        if bench.adapter.manifest.transport in clause.transports
        for algorithm in clause.judged_of(called, named)
    ]


#: the most lines of likely faults
_MOST_FAULTS = 3


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FailingClauses:
    """The clauses that a scheme fails, likelier causes first: `failed` of `judged`, recorded of `version`, if any."""

    SHOWN = ("failed", "judged", "version", "command", "faults")

    scheme: str
    #: Their ids.
    failed: Annotated[tuple[Clause, ...], list[Text]]
    #: How many have a clear verdict.
    judged: int
    #: The version that was judged; null if none was.
    version: str | None
    #: The command that judges this build.
    command: str
    #: The likeliest faults, if the algorithm is BBRv3: a line for each chapter of the draft.
    faults: tuple[str, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether the verdicts are of this very version."""
        return self.version is not None and self.scheme.endswith(f"/{self.version}")


def failing(scheme: Scheme, choice: Choice) -> FailingClauses:
    """Return the clauses that a scheme fails. Raises UserError."""
    record = clause_record.judged(scheme.stack, scheme.algorithm)
    failed = [clauses.find(entry.clause) for entry in record if entry.verdict.against]
    failed.sort(key=lambda clause: clause.precedence)
    first = clauses.first_for(scheme.algorithm)
    measured = clause_record.measured(scheme.stack, scheme.algorithm, newest=True)
    return FailingClauses(
        scheme=scheme.id, failed=tuple(failed),
        judged=len(record), version=record[-1].scheme.split("/")[2] if record else None,
        command=f"conformance clause run --algorithm {scheme.algorithm}{choice.options()}",
        faults=tuple(map(str, likely_faults.by_chapter(measured)[:_MOST_FAULTS])) if first else (),
    )  # fmt: skip

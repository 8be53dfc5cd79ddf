"""`conformance clause`: list and show clauses of RFCs and drafts, and judge stacks by them."""

import dataclasses
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance.catalogue import clause_record, clauses
from conformance.commands import mutants
from conformance.commands.measuring import confirmed
from conformance.commands.result import Document, Done, document
from conformance.commands.status import ExitStatus, of_verdicts
from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.engine.plan import Plan, plan
from conformance.engine.questions import ClauseQuestion
from conformance.model.clauses.document import Clause, Specification
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status, last_look
from conformance.support import spelling
from conformance.support.notes import Notes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Listed(Done):
    """The clauses that ship, document by document."""

    specifications: tuple[Specification, ...]

    def to_json(self) -> Document:
        """Return a document of schemas/clause-list.json."""
        return document(
            "clause-list", self.exit_status,
            specifications=[
                {
                    "name": one.name, "title": one.title, "url": one.url, "clauses": [_about(c) for c in one.clauses],
                    "not_visible": [dataclasses.asdict(c) for c in one.not_visible],
                }
                for one in self.specifications
            ],
        )  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Done):
    """One clause."""

    clause: Clause

    def to_json(self) -> Document:
        """Return a document of schemas/clause-show.json."""
        clause = self.clause
        return document(
            "clause-show", self.exit_status, clause=_about(clause), algorithms=list(clause.algorithms),
            transports=list(clause.transports), network=clause.network.words, observable=clause.observable.name,
            permitted=clause.bound.words(clause.observable.digits), why=clause.bound.why, trials=clause.trials,
            invisible=clause.invisible, setting=clauses.setting(clause.network).to_json(),
        )  # fmt: skip


def _about(clause: Clause) -> dict[str, Any]:
    return {
        "id": clause.id, "source": clause.source, "level": clause.level, "text": clause.text,
        "also": [f"{name} {section}" for name, section in clause.also],
    }  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JudgedClause:
    """The verdict on one clause for one scheme."""

    clause: Clause
    scheme: str
    algorithm: str
    verdict: ClauseVerdict

    @property
    def violates(self) -> bool:
        """Whether the stack does what the clause forbids."""
        return self.verdict.status is Status.VIOLATES

    def to_json(self) -> dict[str, Any]:
        """Return its part of a document of schemas/clause-run.json."""
        v = self.verdict
        return {
            "clause": self.clause.id, "source": self.clause.source, "scheme": self.scheme, "verdict": str(v.status),
            "reason": v.reason, "value": v.value,
            # With few values, the interval has infinite ends.
            "interval": v.interval and [end if math.isfinite(end) else None for end in v.interval], "p": v.p,
            "permitted": self.clause.bound.words(self.clause.observable.digits), "trials": v.trials, "values": v.n,
            "seen": [dataclasses.asdict(one) for one in v.seen],
        }  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """The verdicts on all clauses that were asked for, in order. `recorded`: the file that keeps them, if any."""

    judged: tuple[JudgedClause, ...]
    results: str
    recorded: pathlib.Path | None = None

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES if any clause is violated, else ERROR or UNKNOWN if something is not known, else DONE."""
        return of_verdicts(one.verdict.status for one in self.judged)

    def to_json(self) -> Document:
        """Return a document of schemas/clause-run.json."""
        return document(
            "clause-run", self.exit_status, results=self.results, clauses=[one.to_json() for one in self.judged]
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tabled(Done):
    """The recorded verdicts on the clauses of some specifications."""

    specifications: tuple[Specification, ...]
    record: Sequence[clause_record.Entry]

    def to_json(self) -> Document:
        """Return a document of schemas/clause-table.json."""
        own = {clause.id for one in self.specifications for clause in one.clauses}
        return document(
            "clause-table", self.exit_status, record=[dict(one) for one in self.record if one["clause"] in own]
        )


def table(names: Sequence[str]) -> Tabled:
    """Return the recorded verdicts on the clauses of these specifications, by default of all. Raises UserError."""
    return Tabled(specifications=list_all(names).specifications, record=clause_record.load())


def list_all(names: Sequence[str]) -> Listed:
    """List the clauses of these specifications, by default of all. Raises UserError if one is unknown."""
    every = clauses.specifications()
    known = {one.name: one for one in every}
    for name in names:
        if name not in known:
            mend = spelling.mend(name, known, f"choose one of {', '.join(known)}")
            raise UserError(f"there are no clauses of {name!r}", mend)
    return Listed(specifications=tuple(known[name] for name in names) if names else every)


def show(clause_id: str) -> Shown:
    """Show one clause. Raises UserError if it is unknown."""
    return Shown(clause=clauses.find(clause_id))


def run(
    what: Sequence[str], algorithms: Sequence[str], choice: Choice, *, mutant: str | None, trials: int, first_seed: int,
    most_trials: int | None, results: str, workers: int | None, record: bool, notes: Notes,
) -> Ran:  # fmt: skip
    """Judge a stack by clauses, which are given by id or by specification. Raises UserError.

    `mutant`: judge this mutant of the corpus instead of a stack. `record`: keep the verdicts in clauses/record.json.
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
    asked = plan(
        questions, trials=trials, most_trials=last_look(trials, most_trials), first_seed=first_seed,
        work=[question.key for question in questions],
    )  # fmt: skip
    asked.refuse_blind()
    judged = judged_clauses(asked, bench, results, workers, notes)
    recorded = (
        clause_record.record(who, [clause_record.entry(j.clause, j.scheme, j.verdict) for j in judged])
        if record
        else None
    )
    return Ran(judged=judged, results=results, recorded=recorded)


def _chosen(what: Sequence[str]) -> list[Clause]:
    """Return the clauses with these ids or of these specifications, in order; by default all. Raises UserError."""
    names = clauses.markers()
    found: dict[str, Clause] = {}
    for word in what or list(names):
        own = [c for c in clauses.all_clauses() if word in c.markers] if word in names else [clauses.find(word)]
        found |= {clause.id: clause for clause in own}
    return list(found.values())


def questions_about(
    bench: Bench, called: Mapping[str, str], what: Sequence[str] = (), named: Sequence[str] = ()
) -> list[ClauseQuestion]:
    """Return the questions of clauses about the algorithms of a stack to which they apply. Raises UserError.

    `called`: {algorithm: what the adapter calls it} of those that the adapter has. `what`: ids or specifications; by
    default, all clauses. If algorithms are `named`, only these are asked about, and also where they are controls.
    """
    return [
        ClauseQuestion(clause=clause, setting=clauses.setting(clause.network), algorithm=called[algorithm], twice=True)
        for clause in _chosen(what)
        if bench.adapter.manifest.transport in clause.transports
        for algorithm in clause.judged_of(called, named)
    ]


def judged_clauses(
    asked: Plan, bench: Bench, results: str, workers: int | None, notes: Notes,
    left_s: Callable[[], float | None] = lambda: None,
) -> tuple[JudgedClause, ...]:  # fmt: skip
    """Measure, judge all questions together, and repeat each violation with fresh seeds. Raises UserError.

    `left_s` returns the seconds left; clauses that are not measured by then are left out.
    """
    _, judged = confirmed(asked, bench, results, workers, notes, lambda one: one.status is Status.VIOLATES, left_s)
    found = []
    for question in asked.questions:
        if question in judged:
            verdict = judged[question].verdict
            assert isinstance(question, ClauseQuestion) and isinstance(verdict, ClauseVerdict)
            scheme, clause = bench.scheme(question.algorithm).id, question.clause
            found.append(JudgedClause(clause=clause, scheme=scheme, algorithm=question.algorithm, verdict=verdict))
    return tuple(found)

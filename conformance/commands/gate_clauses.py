"""A gate's clauses: judge those of RFCs and drafts that apply, and tell new violations from those on record."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated

from conformance.catalogue import clause_record
from conformance.commands import gate_order
from conformance.commands.clause import JudgedClause, JudgedClauseRecord, judged_clauses, questions_about
from conformance.commands.status import ExitStatus, of_verdicts, worst
from conformance.engine.benches import Bench
from conformance.model.judging.session import plan
from conformance.support.console import count
from conformance.support.notes import Notes
from conformance.support.record import At, Record, extended


class GateClauseRecord(JudgedClauseRecord):
    #: Whether clauses/record.json says that the stack violates it.
    known: bool


class ClausesRecord(Record):
    judged: Annotated[list[GateClauseRecord], At("with_known")]
    not_measured: Annotated[list[str], At("unmeasured")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """The verdicts on clauses. `known`: those that violate as clauses/record.json says of the stack.

    `unmeasured`: ids of clauses that were not measured in time.
    """

    judged: tuple[JudgedClause, ...]
    known: tuple[JudgedClause, ...]
    unmeasured: tuple[str, ...]

    @property
    def new(self) -> list[JudgedClause]:
        """The violations that are not on record."""
        return [
            judged_clause for judged_clause in self.judged if judged_clause.violates and judged_clause not in self.known
        ]

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES for a new violation, ERROR for an error, UNKNOWN if anything is not known, else DONE."""
        statuses = [
            of_verdicts([judged_clause.verdict.status])
            for judged_clause in self.judged
            if judged_clause not in self.known
        ]
        return worst([*statuses, *([ExitStatus.UNKNOWN] if self.unmeasured else [])])

    @property
    def nothing(self) -> bool:
        """Whether no clause is decided, although some apply."""
        decided = any(judged_clause.verdict.status.passes or judged_clause.violates for judged_clause in self.judged)
        return bool(self.judged or self.unmeasured) and not decided

    @property
    def with_known(self) -> list[GateClauseRecord]:
        """The verdicts, and whether each is a violation on record."""
        return [
            extended(GateClauseRecord, judged_clause, JudgedClauseRecord, known=judged_clause in self.known)
            for judged_clause in self.judged
        ]


def judge(
    bench: Bench, algorithms: Sequence[str], what: Sequence[str], shard: tuple[int, int], notes: Notes,
    left_s: Callable[[], float | None], *, trials: int, most_trials: int, first_seed: int, results: str,
    workers: int | None,
) -> Clauses:  # fmt: skip
    """Judge the clauses about these algorithms; `left_s` returns the seconds left, or None. Raises UserError.

    `what`: ids of clauses; all, if there are none.
    """
    every = questions_about(bench, {algorithm: algorithm for algorithm in algorithms}, what)
    work = gate_order.share(list(dict.fromkeys(question.key for question in every)), *shard)
    questions = [question for question in every if question.key in work]
    planned = plan(questions, trials=trials, most_trials=most_trials, first_seed=first_seed, beside=every)
    notes.say(f"{count(len(questions), 'clause')} in {count(len(work), 'network')}")
    judged = judged_clauses(planned, bench, results, workers, notes, left_s)
    there = [(judged_clause.clause.id, judged_clause.algorithm) for judged_clause in judged]
    on_record = {
        (entry["clause"], entry["scheme"].partition("/")[0], entry["verdict"])
        for entry in clause_record.load()
        if entry["who"] == bench.adapter.name
    }
    return Clauses(
        judged=judged,
        known=tuple(
            clause
            for clause in judged
            if clause.violates and (clause.clause.id, clause.algorithm, clause.verdict.status) in on_record
        ),
        unmeasured=tuple(question.id for question in questions if (question.id, question.algorithm) not in there),
    )

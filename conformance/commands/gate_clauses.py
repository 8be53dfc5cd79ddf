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
from conformance.model.judging.verdict import Status
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
        return [one for one in self.judged if one.violates and one not in self.known]

    @property
    def exit_status(self) -> ExitStatus:
        """VIOLATES for a new violation, ERROR for an error, UNKNOWN if anything is not known, else DONE."""
        statuses = [of_verdicts([one.verdict.status]) for one in self.judged if one not in self.known]
        return worst([*statuses, *([ExitStatus.UNKNOWN] if self.unmeasured else [])])

    @property
    def nothing(self) -> bool:
        """Whether no clause is decided, although some apply."""
        decided = any(one.verdict.status.passes or one.violates for one in self.judged)
        return bool(self.judged or self.unmeasured) and not decided

    @property
    def with_known(self) -> list[GateClauseRecord]:
        """The verdicts, and whether each is a violation on record."""
        return [extended(GateClauseRecord, one, JudgedClauseRecord, known=one in self.known) for one in self.judged]


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
    own = [question for question in every if question.key in work]
    asked = plan(own, trials=trials, most_trials=most_trials, first_seed=first_seed, beside=every)
    notes.say(f"{count(len(own), 'clause')} in {count(len(work), 'network')}")
    judged = judged_clauses(asked, bench, results, workers, notes, left_s)
    there = [(one.clause.id, one.algorithm) for one in judged]
    on_record = {
        (one["clause"], one["scheme"].partition("/")[0])
        for one in clause_record.load()
        if one["who"] == bench.adapter.name and one["verdict"] == Status.VIOLATES
    }
    return Clauses(
        judged=judged,
        known=tuple(one for one in judged if one.violates and (one.clause.id, one.algorithm) in on_record),
        unmeasured=tuple(question.id for question in own if (question.id, question.algorithm) not in there),
    )

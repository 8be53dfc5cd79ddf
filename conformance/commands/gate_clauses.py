"""A gate's clauses: judge those of RFCs and drafts that apply, and tell new violations from those on record."""

import dataclasses
from collections.abc import Callable, Sequence

from conformance.commands import gate_order
from conformance.commands.clause import JudgedClauseRecord, finding_record, questions_about
from conformance.commands.measuring import source
from conformance.engine.benches import Bench
from conformance.model.judging.expectation import Expected
from conformance.model.judging.session import Finding, Session, plan
from conformance.support.console import count
from conformance.support.notes import Notes


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
        """The violations that are not on record."""
        return [finding for finding in self.findings if finding.surprise.fails]

    @property
    def nothing(self) -> bool:
        """Whether no clause is decided, although some apply."""
        return bool(self.findings or self.unmeasured) and not any(finding.decided for finding in self.findings)

    @property
    def judged(self) -> list[GateClauseRecord]:
        """The verdicts, and whether each is a violation on record."""
        return [finding_record(finding, GateClauseRecord, known=finding.as_expected) for finding in self.findings]


def judge(
    bench: Bench, algorithms: Sequence[str], what: Sequence[str], known: Sequence[Expected], shard: tuple[int, int],
    notes: Notes, left_s: Callable[[], float | None], *, trials: int, most_trials: int, first_seed: int, results: str,
    workers: int | None,
) -> Clauses:  # fmt: skip
    """Judge the clauses about these algorithms; `left_s` returns the seconds left, or None. Raises UserError.

    `what`: ids of clauses; all, if there are none. `known`: what the stack is known to do.
    """
    every = questions_about(bench, {algorithm: algorithm for algorithm in algorithms}, what)
    work = gate_order.share(list(dict.fromkeys(question.key for question in every)), *shard)
    questions = [question for question in every if question.key in work]
    planned = plan(questions, trials=trials, most_trials=most_trials, first_seed=first_seed, beside=every)
    notes.say(f"{count(len(questions), 'clause')} in {count(len(work), 'network')}")
    session = Session(plan=planned, known=known)
    findings = session.findings(source(bench, results, workers, notes, new=session.is_new, left_s=left_s))
    measured = {finding.name for finding in findings}
    return Clauses(findings=findings, unmeasured=tuple(q.id for q in questions if q.name not in measured))

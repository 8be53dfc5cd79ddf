"""Plan what a pytest session measures, and measure it in the background, ahead of the tests."""

from collections.abc import Iterable, Sequence

from conformance.catalogue import expectations
from conformance.engine import benches, unused
from conformance.engine.benches import Bench
from conformance.engine.execute import Execution
from conformance.model.errors import UserError
from conformance.model.judging import expectation, session as judging
from conformance.model.judging.expectation import Expected
from conformance.model.judging.question import Question
from conformance.model.judging.session import Judged, Plan, plan
from conformance.model.judging.verdict import last_look
from conformance.results.store import Store
from conformance.suite.cases import baseline_of
from conformance.suite.options import Options, chosen


def plan_of(
    questions: Iterable[Question], option: Options, planned: Iterable[Question] = (), known: Sequence[Expected] = ()
) -> Plan:
    """Return the plan of a session's tests. `planned`: the questions of their family, of which the tests may be only a
    part.

    `known`: what the stack is known to do. Raise UserError for numbers of trials or workers that no plan can have.
    """
    if option.workers is not None and option.workers < 1:
        raise UserError(f"--workers {option.workers}", "it must be 1 or more")
    wanted = list(questions)
    return plan(
        wanted,
        trials=option.trials,
        most_trials=last_look(option.trials, option.max_trials),
        first_seed=option.first_seed,
        beside=planned,
        known=expectation.violating(known, wanted),
    )


def kernel_notes(plan: Plan, option: Options, bench: Bench, store: Store) -> list[str]:
    """Return lines about results and baselines of other kernels and labs. Raise UserError for a baseline that cannot be
    used.
    """
    wanted = {question.id for question in plan.questions}
    before = baseline_of(option)
    zones = [zone for _, zone in before.zones if zone.id in wanted] if before else []
    notes = before.notes(option.baseline, zones, bench.scheme, bench.lab_digest) if before else ()
    return [*notes, *unused.lines(plan, bench, store)]


class PytestSession:
    """The plan of a session, its execution, and what the stack is known to do. `notes`: lines to print before the first
    test.

    `of_xdist`: this process is one of pytest-xdist's workers. A worker makes only trials that it is asked for. The
    process that started it has already refused mistakes.
    """

    def __init__(
        self, option: Options, questions: Iterable[Question], planned: Iterable[Question], of_xdist: bool
    ) -> None:
        """Raise UserError for every mistake that can be found before anything is measured."""
        bench = benches.find(chosen(option))
        store = Store(option.results)
        known = () if option.baseline else expectations.of(bench)
        self.plan = plan_of(questions, option, planned, known)
        self.notes: list[str] = []
        if not of_xdist:
            self.plan.refuse_blind()
            self.notes = kernel_notes(self.plan, option, bench, store)
        self.session = judging.Session(plan=self.plan, known=known, confirms=option.confirm)
        workers = option.workers or (1 if of_xdist else None)
        self._execution = Execution(
            self.plan, bench, store, workers=workers, ahead=not of_xdist, new=self.session.is_new
        )

    def ask(self, question: Question) -> Judged:
        """Wait for the answer to a test's question, if it can be judged at all. Raise UserError."""
        return self._execution.ask(question) if question.rule.judgeable else self.plan.judge(question, {})

    def repeat(self, judged: Judged) -> Judged | None:
        """Ask the question of a new violation again, with fresh seeds; return None for any other verdict. Raise
        UserError.
        """
        return self._execution.repeat(judged) if self.session.is_new(judged) else None

    @property
    def measures_ahead(self) -> bool:
        """Whether trials are made in the background, before tests ask for them."""
        return self._execution.progress is not None

    def remaining_s(self) -> float | None:
        """Return the seconds until everything that is measured ahead is complete; None if that is not known."""
        progress = self._execution.progress
        return None if progress is None else progress.remaining_s()

    def close(self) -> None:
        self._execution.close()

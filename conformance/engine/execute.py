"""Execute a plan: measure what the store lacks, judge each setting when it is complete, and yield the answers.

Further looks at questions and repeats of new violations are tasks that follow while guests run. Whether a question
about several settings needs another look is known only when all of them are measured; a new violation is repeated with
fresh seeds. Both are usually known while guests for these settings still run, or other work is left, so these guests do
the tasks. Otherwise, each task would start guests of its own at the end, which takes longer than its trials.
"""

import collections
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self

from conformance.engine.benches import Bench
from conformance.engine.progress import RunProgress
from conformance.engine.runs import Run
from conformance.engine.work import Looks, Task
from conformance.engine.workers import Executor
from conformance.model.errors import UserError
from conformance.model.judging.question import Key, Question
from conformance.model.judging.session import Answer, Judged, Plan
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement
from conformance.results.store import Store


class Execution:
    """A plan under way. Use it as a context manager: at its end guests are killed, and measurements are kept.

    `ahead`: measure the whole plan in the background, in its order, before anything is asked; otherwise, measure only
    what is asked for. `workers`: how many guests run at a time; None for one a core. `executor` makes an Executor whose
    workers make the trials. `on_trial` is called with the RunProgress after each trial. `new` tells whether a verdict
    is a new violation. The settings of a new violation are measured once more, with fresh seeds, as soon as it is
    judged; repeat() waits for that.
    """

    def __init__(
        self,
        plan: Plan,
        bench: Bench,
        store: Store,
        *,
        workers: int | None = None,
        executor: Callable[[], Executor] | None = None,
        on_trial: Callable[[RunProgress], None] = lambda progress: None,
        ahead: bool = True,
        new: Callable[[Judged], bool] = lambda judged: False,
    ) -> None:
        self.plan = plan
        self._bench, self._store, self._workers = bench, store, workers
        self._executor, self._on_trial = executor, on_trial
        self._found: dict[Key, Sequence[Measurement]] = {}
        self._follow_ups = FollowUps(plan, new)
        self._looks = Looks(numbers=plan.looks, usual=plan.trials, clear=plan.is_conclusive, then=self._follow_ups.then)
        self._run = self._start(plan.work, self._looks) if ahead else None

    @property
    def progress(self) -> RunProgress | None:
        """How far the plan is; None if only what is asked for is measured."""
        return self._run.progress if self._run is not None else None

    def answers(self, budget_s: float | None = None) -> Iterator[Answer]:
        """Yield an Answer for each piece of the plan's work as it is completed, and another with all of its trials if
        a question about several settings had more of them made. Raise UserError.

        After `budget_s` seconds, yield only what was completed by then, and the partial measurements of pieces that
        were judged and are still inconclusive.
        """
        assert self._run is not None, "an execution that measures only what is asked for has no order of its own"
        ends_s = None if budget_s is None else time.monotonic() + budget_s
        for key, measurements in self._run.as_completed(budget_s):
            yield self._answer(key, measurements)
        # for looks and repeats that follow from the last answers
        self._run.wait(None if ends_s is None else max(ends_s - time.monotonic(), 0.0))
        for key, measurements in self._follow_ups.done().items():
            yield self._answer(key, measurements)

    def _answer(self, key: Key, measurements: Sequence[Measurement]) -> Answer:
        judged = self.plan.judged(key, measurements)
        return Answer(algorithm=key[0], setting=key[1], measurements=measurements, judged=judged)

    def ask(self, question: Question) -> Judged:
        """Wait for the measurements that a question rests on, make more while it is unclear, and judge it.

        Raise UserError.
        """
        further = dict.fromkeys(question.settings, self.plan.looks[0])
        while True:
            judged = self.plan.judge(question, self._measured(question, further))
            further = self.plan.next_look(judged)
            if not further:
                return judged

    def repeat(self, judged: Judged) -> Judged:
        """Ask the question of a violation again, alone, with fresh seeds. Raise UserError."""
        again = self.plan.repeating([judged.question])
        measurements = self._follow_ups.repeats(again.work)
        with Execution(
            again, self._bench, self._store, workers=self._workers, executor=self._executor, ahead=False
        ) as execution:
            execution._found.update(measurements)
            return execution.ask(judged.question)

    def _measured(self, question: Question, least: Mapping[Setting, int]) -> dict[Setting, Sequence[Measurement]]:
        """Return the measurements of each setting in order of seed; for settings in `least`, at least so many."""
        keys = question.keys
        missing = [key for key in keys if key not in self._found]
        if self._run is not None:
            self._found.update((key, self._run.result(*key)) for key in missing)
        else:
            self._measure(missing, self._looks)
        numbers = {(question.algorithm, setting): number for setting, number in least.items()}
        if self._look_further(numbers):
            if self._run is not None:
                # Looks for other questions may be making these trials.
                self._run.wait()
            few = self._look_further(numbers)
            for number in sorted(set(few.values())):
                self._measure([key for key in few if few[key] == number], Looks(numbers=(number,)))
        return {key[1]: self._found[key] for key in keys}

    def _look_further(self, numbers: Mapping[Key, int]) -> dict[Key, int]:
        """Add the results of further looks at these keys; return the keys that still have too few measurements."""
        self._found.update(self._follow_ups.further(self._few(numbers)))
        return self._few(numbers)

    def _few(self, numbers: Mapping[Key, int]) -> dict[Key, int]:
        return {key: number for key, number in numbers.items() if len(self._found[key]) < number}

    def _start(self, work: Sequence[Key], looks: Looks) -> Run:
        return Run(
            self._bench,
            self._store,
            work,
            self.plan.seeds,
            self._workers,
            on_trial=self._on_trial,
            looks=looks,
            executor=self._executor,
            urgent=self.plan.urgent,
        )

    def _measure(self, keys: Sequence[Key], looks: Looks) -> None:
        if not keys:
            return
        with self._start(keys, looks) as run:
            run.wait()
            self._found.update((key, run.result(*key)) for key in keys)

    def close(self) -> None:
        """End the execution at once."""
        if self._run is not None:
            self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def execute(
    plan: Plan,
    bench: Bench,
    store: Store,
    *,
    workers: int | None = None,
    executor: Callable[[], Executor] | None = None,
    on_trial: Callable[[RunProgress], None] = lambda progress: None,
    budget_s: float | None = None,
    new: Callable[[Judged], bool] = lambda judged: False,
) -> Iterator[Answer]:
    """Yield the Answers of a plan as they are completed; see Execution. Raise UserError."""
    with Execution(plan, bench, store, workers=workers, executor=executor, on_trial=on_trial, new=new) as execution:
        yield from execution.answers(budget_s)


class FollowUps:
    """Makes the tasks that follow from measurements of a plan; `new` tells whether a verdict is a new violation.

    It is thread-safe. A question is judged only while none of its settings is being measured, so no key has two tasks
    with the plan's seeds at a time.
    """

    def __init__(self, plan: Plan, new: Callable[[Judged], bool]) -> None:
        self._plan, self._new = plan, new
        self._resting_on: dict[Key, list[Question]] = collections.defaultdict(list)
        for question in plan.questions:
            for key in question.keys:
                self._resting_on[key].append(question)
        self._measured: dict[Key, Sequence[Measurement]] = {}
        #: keys whose further look is under way
        self._under_way: set[Key] = set()
        self._looks: dict[Key, list[Task]] = collections.defaultdict(list)
        self._repeats: dict[Key, Task] = {}
        self._lock = threading.Lock()

    def then(self, key: Key, measurements: Sequence[Measurement]) -> Iterable[Task]:
        """Note the measurements of a key with the plan's seeds; return the tasks that follow from them."""
        with self._lock:
            self._measured[key] = measurements
            self._under_way.discard(key)
            judged = [
                judgement for question in self._resting_on[key] if (judgement := self._judge(question)) is not None
            ]
            # If a question earlier in this list starts a look at settings of a later one, the latter waits for its end.
            looks = [task for judged in judged for task in self._next_look(judged)]
            return [*looks, *self._repeated(judged.question for judged in judged if self._new(judged))]

    def _judge(self, question: Question) -> Judged | None:
        """Judge a question by its measurements; return None while some are missing or being made."""
        if not all(key in self._measured and key not in self._under_way for key in question.keys):
            return None
        try:
            return self._plan.judge(question, {key[1]: self._measured[key] for key in question.keys})
        except UserError:  # raised again when this question is asked
            return None

    def _next_look(self, judged: Judged) -> Iterable[Task]:
        """Yield a task for each key of which the question's next look needs more trials; none if it is settled.

        A question about one key has its further looks within that key's own task.
        """
        question = judged.question
        if len(question.settings) == 1 or self._under_way.intersection(question.keys):
            return
        for setting, number in self._plan.next_look(judged).items():
            key = (question.algorithm, setting)
            if (before := len(self._measured[key])) < number:
                task = Task(key, self._plan.seeds, Looks(numbers=(number,), then=self.then), before=before)
                self._looks[key].append(task)
                self._under_way.add(key)
                yield task

    def _repeated(self, questions: Iterable[Question]) -> Iterable[Task]:
        again = self._plan.repeating(questions)
        looks = Looks(numbers=again.looks, usual=again.trials, clear=again.is_conclusive)
        tasks = {key: Task(key, again.seeds, looks) for key in again.work if key not in self._repeats}
        self._repeats |= tasks
        return tasks.values()

    def further(self, numbers: Mapping[Key, int]) -> dict[Key, Sequence[Measurement]]:
        """Wait for the tasks, if any, that look at this many trials of each key, or more; return their measurements.

        Raise UserError.
        """
        with self._lock:
            tasks = {
                key: next((task for task in self._looks[key] if task.trials >= number), None)
                for key, number in numbers.items()
            }
        return _results(tasks)

    def done(self) -> dict[Key, Sequence[Measurement]]:
        """Return the measurements of each key's last further look that is complete by now. Raise UserError."""
        with self._lock:
            futures = {key: [task.future for task in tasks if task.future.done()] for key, tasks in self._looks.items()}
        return {key: of[-1].result() for key, of in futures.items() if of}

    def repeats(self, keys: Iterable[Key]) -> dict[Key, Sequence[Measurement]]:
        """Wait for the tasks that repeat these keys, if there are any; return their measurements. Raise UserError."""
        return _results({key: self._repeats.get(key) for key in keys})


def _results(tasks: dict[Key, Task | None]) -> dict[Key, Sequence[Measurement]]:
    return {key: task.future.result() for key, task in tasks.items() if task is not None}

"""Make tasks that follow from measurements while guests run: further looks at questions, repeats of new violations.

Whether a question about several settings needs another look is known only when all of them are measured; a new
violation is repeated with fresh seeds. Both are usually known while guests for these settings still run, or other work
is left, so these guests do the tasks. Otherwise, each task would start guests of its own at the end, which takes longer
than its trials.
"""

import collections
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from conformance.engine.work import Looks, Task
from conformance.model.errors import UserError
from conformance.model.judging.question import Key, Question
from conformance.model.judging.session import Judged, Plan
from conformance.model.trials.trial import Measurement


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

    def repeats(self, keys: Iterable[Key]) -> dict[Key, Sequence[Measurement]]:
        """Wait for the tasks that repeat these keys, if there are any; return their measurements. Raise UserError."""
        return _results({key: self._repeats.get(key) for key in keys})


def _results(tasks: dict[Key, Task | None]) -> dict[Key, Sequence[Measurement]]:
    return {key: task.future.result() for key, task in tasks.items() if task is not None}

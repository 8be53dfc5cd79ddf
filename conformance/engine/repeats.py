"""Repeats: what is new is measured with fresh seeds as soon as it is judged, in the guests that are there already."""

import collections
import threading
from collections.abc import Callable, Iterable, Sequence

from conformance.engine.plan import Judged, Key, Plan, Question
from conformance.engine.work import Looks, Task
from conformance.model.errors import UserError
from conformance.model.trial import Measurement


class Repeats:
    """The tasks that repeat questions of a plan: those whose verdicts are `new`. Threads may share it.

    A question is looked at when the last of its settings is measured; so nobody is measuring these any more.
    """

    def __init__(self, plan: Plan, new: Callable[[Judged], bool]) -> None:
        self._plan, self._new = plan, new
        self._resting_on: dict[Key, list[Question]] = collections.defaultdict(list)
        for question in plan.questions:
            for setting in question.settings:
                self._resting_on[question.algorithm, setting].append(question)
        self._measured: dict[Key, Sequence[Measurement]] = {}
        self._tasks: dict[Key, Task] = {}
        self._lock = threading.Lock()

    def then(self, key: Key, measurements: Sequence[Measurement]) -> Iterable[Task]:
        """Return the tasks that come of what was measured of a key; it may be the last that a question waits for."""
        with self._lock:
            self._measured[key] = measurements
            again = self._plan.repeating(filter(self._is_new, self._resting_on[key]))
            looks = Looks(numbers=again.looks, clear=again.is_conclusive)
            tasks = {key: Task(key, again.seeds, looks) for key in again.work if key not in self._tasks}
            self._tasks |= tasks
        return tasks.values()

    def _is_new(self, question: Question) -> bool:
        keys = [(question.algorithm, setting) for setting in question.settings]
        if not all(key in self._measured for key in keys):
            return False
        try:
            judged = self._plan.judge(question, {key[1]: self._measured[key] for key in keys})
        except UserError:  # for whoever asks this question, and nobody else
            return False
        return self._new(judged)

    def results(self, keys: Iterable[Key]) -> dict[Key, Sequence[Measurement]]:
        """Wait for what repeats these keys, as far as a task does. Raise UserError."""
        return {key: self._tasks[key].future.result() for key in keys if key in self._tasks}

"""Repeats: new violations are measured again, with fresh seeds, as soon as they are judged, in guests that run."""

import collections
import threading
from collections.abc import Callable, Iterable, Sequence

from conformance.engine.plan import Judged, Key, Plan, Question
from conformance.engine.work import Looks, Task
from conformance.model.errors import UserError
from conformance.model.trial import Measurement


class Repeats:
    """Makes the tasks that repeat questions of a plan: those whose verdicts are `new`. Threads may share it.

    A question is judged when the last of its settings is measured, so no thread still measures one of them.
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
        """Note what was measured of a key, and return the tasks that repeat what is now judged as new."""
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
        except UserError:  # raised again when this question is asked
            return False
        return self._new(judged)

    def results(self, keys: Iterable[Key]) -> dict[Key, Sequence[Measurement]]:
        """Wait for the tasks that repeat these keys, if any; return what they measured. Raise UserError."""
        return {key: self._tasks[key].future.result() for key in keys if key in self._tasks}

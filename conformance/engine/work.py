"""The work of a run, shared out to its threads: cells that can share a guest stand in one group."""

import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from conformance.engine.questions import Key
from conformance.model.trial import Measurement, Trial


def _always_clear(key: Key, measurements: Sequence[Measurement]) -> bool:
    return True


def _nothing_more(key: Key, measurements: Sequence[Measurement]) -> "Iterable[Task]":
    return ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """When a setting has been measured often enough: after `numbers` of trials, rising, ask `clear(key, measurements)`.

    The last number is the most: nothing is asked any more. `then(key, measurements)` gives the tasks that follow from
    what was measured, such as repeats of a violation. A run does them next, in the guests that it has.
    """

    numbers: tuple[int, ...]
    clear: Callable[[Key, Sequence[Measurement]], bool] = _always_clear
    then: "Callable[[Key, Sequence[Measurement]], Iterable[Task]]" = _nothing_more


@dataclasses.dataclass(eq=False, slots=True)
class Task:
    """A cell to be measured: with so many `trials` of its seeds, of which so many were asked for `before`.

    `found`: {seed: Measurement}. `unclear`: what the last look saw, where that was not clear. `release` gives up the
    claim to it, which a run has from when it first takes the task.
    """

    key: Key
    seeds: Sequence[int]
    looks: Looks
    trials: int = dataclasses.field(init=False)
    before: int = 0
    found: dict[int, Measurement] = dataclasses.field(default_factory=dict)
    unclear: Sequence[Measurement] | None = None
    release: Callable[[], None] | None = None
    future: Future[Sequence[Measurement]] = dataclasses.field(default_factory=Future)

    def __post_init__(self) -> None:
        self.trials = self.looks.numbers[0]

    def has(self, trial: Trial) -> bool:
        """Say whether a trial of this task's group is one of its own: another task may be about the same setting."""
        return trial.setting == self.key[1] and trial.seed in self.seeds


@dataclasses.dataclass(eq=False, slots=True)
class Group:
    """Tasks that can share a guest, in order, and how many threads work on them."""

    waiting: deque[Task] = dataclasses.field(default_factory=deque)
    threads: int = 0

    @property
    def trials(self) -> int:
        """Return how many trials are waiting."""
        return sum(task.trials - task.before for task in self.waiting)


class Work:
    """Groups of tasks. Each thread joins one, takes tasks until none is left, and joins another.

    `worth_joining`: how many trials must wait in a group for a thread to join those that work on it already.
    """

    def __init__(self, worth_joining: int) -> None:
        self._groups: dict[tuple[str, str], Group] = {}
        self._worth_joining = worth_joining
        self._lock = threading.Lock()

    def _group(self, task: Task) -> Group:
        algorithm, setting = task.key
        return self._groups.setdefault((algorithm, setting.guest_digest), Group())

    def join(self) -> Group | None:
        """Return the group that a thread without work serves best, until it leaves; None where there is none.

        That is the first that nobody works on, and has enough trials to be worth a guest; or else the one where most
        trials wait for each thread; or else any that nobody works on. So the few trials that follow from others come
        last, together.
        """
        with self._lock:
            waiting = [group for group in self._groups.values() if group.waiting]
            alone = [group for group in waiting if not group.threads]
            most = max(waiting, key=lambda group: group.trials / max(group.threads, 1), default=None)
            found = next((group for group in alone if group.trials >= self._worth_joining), None)
            if found is None and most is not None and most.trials >= self._worth_joining:
                found = most
            if found is None:
                found = next(iter(alone), None)
            if found is not None:
                found.threads += 1
            return found

    def leave(self, group: Group) -> None:
        """Say that a thread works on this group no more."""
        with self._lock:
            group.threads -= 1

    def take(self, group: Group) -> Task | None:
        """Return the next task of a group; None where none is waiting."""
        with self._lock:
            return group.waiting.popleft() if group.waiting else None

    def put(self, task: Task) -> None:
        """Let a task be taken, after all others of its group."""
        with self._lock:
            self._group(task).waiting.append(task)

    def put_first(self, task: Task) -> None:
        """Let a task be taken before all others of its group."""
        with self._lock:
            self._group(task).waiting.appendleft(task)

    def waiting(self) -> int:
        """Return how many tasks wait to be taken."""
        with self._lock:
            return sum(len(group.waiting) for group in self._groups.values())

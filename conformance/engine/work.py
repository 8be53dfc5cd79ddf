"""The work of a run, shared among its threads: tasks, in groups of cells that can share a guest."""

import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

from conformance.model.judging.question import Key
from conformance.model.trials.trial import Measurement, Trial

#: part of its usual trials that a setting gets besides, on average, if it may get more after a look: from none, where
#: all settings are clear, to the 0.85 of Reno's zones `heatmap`
_AFTER_LOOKS = 0.3
#: the same of clauses, with repeats of violations: settings of `rfc9438`, `rfc9002`, `bbr_draft` got 7.1 to 8.8 trials
_AFTER_GLANCES = 0.6


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """When a setting has enough trials: after each of the rising `numbers` of trials, call `clear(key, measurements)`.

    After the last number, `clear` is not called, and no more trials are made. `then(key, measurements)` returns the
    tasks that follow from the measurements, such as repeats of a violation. A run does them next, in guests that are
    already running. `usual`: how many trials most settings need, if not the first number.
    """

    numbers: tuple[int, ...]
    usual: int = 0
    clear: Callable[[Key, Sequence[Measurement]], bool] = lambda key, measurements: True
    then: "Callable[[Key, Sequence[Measurement]], Iterable[Task]]" = lambda key, measurements: ()


@dataclasses.dataclass(eq=False, slots=True)
class Task:
    """A cell to be measured with the first `trials` of its seeds, of which `before` were asked for by earlier looks.

    `urgent`: see Work. `found`: {seed: Measurement}. `unclear`: the measurements of the last look, if it was not clear.
    `release` gives up the run's claim to the cell, which the run makes when it first takes the task.
    """

    key: Key
    seeds: Sequence[int]
    looks: Looks
    urgent: bool = False
    trials: int = dataclasses.field(init=False)
    before: int = 0
    measured: dict[int, Measurement] = dataclasses.field(default_factory=dict)
    unclear: Sequence[Measurement] | None = None
    release: Callable[[], None] | None = None
    future: Future[Sequence[Measurement]] = dataclasses.field(default_factory=Future)

    def __post_init__(self) -> None:
        self.trials = self.looks.numbers[0]

    @property
    def further(self) -> float:
        """How many trials it will need after its present look, on average."""
        if self.trials >= self.looks.numbers[-1]:
            return 0.0
        usual = max(self.looks.usual, self.trials)
        share = _AFTER_GLANCES if self.looks.usual > self.looks.numbers[0] else _AFTER_LOOKS
        return usual - self.trials + share * (usual - self.before)

    def has(self, trial: Trial) -> bool:
        """Return whether a trial of this task's group is its own: another task may be about the same setting."""
        return trial.setting == self.key[1] and trial.seed in self.seeds


@dataclasses.dataclass(eq=False, slots=True)
class TaskGroup:
    """Tasks that can share a guest, in order, and how many threads work on them."""

    waiting: deque[Task] = dataclasses.field(default_factory=deque)
    threads: int = 0

    @property
    def trials(self) -> int:
        """How many trials are waiting."""
        return sum(task.trials - task.before for task in self.waiting)

    @property
    def urgent_trials(self) -> int:
        """How many trials of urgent tasks are waiting."""
        return sum(task.trials - task.before for task in self.waiting if task.urgent)


class Work:
    """Groups of tasks. Each thread joins one, takes tasks until none is left, and joins another.

    `worth_joining`: how many trials must wait in a group before a thread joins others that already work on it. Urgent
    tasks come before all others, even if that takes more guests: time may run out, and a thread may wait for a core so
    long that another one would do everything else meanwhile.
    """

    def __init__(self, worth_joining: int) -> None:
        self._groups: dict[tuple[str, str], TaskGroup] = {}
        self._worth_joining = worth_joining
        self._lock = threading.Lock()

    def _group(self, task: Task) -> TaskGroup:
        algorithm, setting = task.key
        return self._groups.setdefault((algorithm, setting.guest_digest), TaskGroup())

    def join(self) -> TaskGroup | None:
        """Return the group that an idle thread should work on until it calls leave(); None if there is none.

        That is the first urgent group; otherwise the first group without a thread that has enough trials to be worth a
        guest; otherwise the group with the most trials for each thread, if it has enough; otherwise any group without a
        thread. So the few trials that follow from others come last, together.
        """
        with self._lock:
            waiting = [group for group in self._groups.values() if group.waiting]
            alone = [group for group in waiting if not group.threads]
            most = max(waiting, key=lambda group: group.trials / max(group.threads, 1), default=None)
            next_group = self._urgent() or next((group for group in alone if group.trials >= self._worth_joining), None)
            if next_group is None and most is not None and most.trials >= self._worth_joining:
                next_group = most
            if next_group is None:
                next_group = next(iter(alone), None)
            if next_group is not None:
                next_group.threads += 1
            return next_group

    def _urgent(self) -> TaskGroup | None:
        """Return the first group with urgent tasks that has no thread, or enough trials for another one."""
        urgent = ((group, group.urgent_trials) for group in self._groups.values())
        worth = (group for group, trials in urgent if trials >= (self._worth_joining if group.threads else 1))
        return next(worth, None)

    def leave(self, group: TaskGroup) -> None:
        """Note that a thread no longer works on this group."""
        with self._lock:
            group.threads -= 1

    def take(self, group: TaskGroup) -> Task | None:
        """Return the next task of a group; None if none is waiting, or the thread should join an urgent group."""
        with self._lock:
            elsewhere = not group.urgent_trials and self._urgent()
            return group.waiting.popleft() if group.waiting and not elsewhere else None

    def put(self, task: Task) -> None:
        """Add a task behind all others of its group."""
        with self._lock:
            self._group(task).waiting.append(task)

    def put_first(self, task: Task) -> None:
        """Add a task in front of all others of its group."""
        with self._lock:
            self._group(task).waiting.appendleft(task)

    def waiting(self) -> int:
        """Return how many tasks are waiting to be taken."""
        with self._lock:
            return sum(len(group.waiting) for group in self._groups.values())

"""Runs: measure what the store lacks, in the background, and hand back measurements setting by setting.

Nothing here knows pytest or terminals. Rooms do the work; threads wait for them.
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

from conformance.engine.benches import Bench
from conformance.engine.plan import check_trials
from conformance.engine.progress import FIXED_BYTES, Progress
from conformance.engine.questions import Key
from conformance.engine.work import Group, Looks, Task, Work
from conformance.engine.workers import Executor, Executors, Room
from conformance.lab.room import Batches
from conformance.model.errors import UserError
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome, Trial
from conformance.results.claims import claim
from conformance.results.store import Store
from conformance.support import limits

#: Cells that a room gets at a time where it cannot be fed one by one: few enough that what dies costs little, many
#: enough that its start does not count.
_CELLS_AT_A_TIME = 10
#: so many trials take about as long as the start of the guest that would help with them
_WORTH_A_START = 8
#: between two looks whether there is something to do again
_POLL_S = 0.2


def seeds(trials: int, first: int = 1) -> range:
    """Return the seeds of so many trials. Raise UserError for a number that no cell can have."""
    check_trials(trials)
    return range(first, first + trials)


class Run:
    """Measures (algorithm, setting) pairs in the background; `result()` waits for one.

    Each is measured with all `seeds`, or, with `looks`, with as many of them as it takes; the tasks that `looks.then`
    gives for it are done next. What the store holds is there at once: no guest is waited for. Cells of one algorithm
    and profile share guests, one on each core, which are fed them in the order given until none is left. What another
    run with the same results file is measuring is waited for, and not measured again. `executor`, a function that makes
    an Executor, has workers make the trials, `workers` handfuls of cells at a time. `close()` ends it at once: guests
    are killed, what was measured is kept.
    """

    def __init__(
        self,
        bench: Bench,
        store: Store,
        work: Iterable[Key],
        seeds: Sequence[int],
        workers: int | None = None,
        *,
        on_trial: Callable[[Progress], None] = lambda progress: None,
        looks: Looks | None = None,
        executor: Callable[[], Executor] | None = None,
    ) -> None:
        self._remote = Executors(executor) if executor else None
        self._bench = bench.elsewhere(Room(bench.choice, self._remote)) if self._remote else bench
        self._store, self._on_trial = store, on_trial
        self._cancelled = threading.Event()
        # In real time trials would disturb each other.
        self._threads = 1 if bench.lab == "host" else workers or limits.workers()
        self._by_handfuls = bool(executor) or bench.lab == "host"
        self.progress = Progress(self._threads, FIXED_BYTES[bench.adapter.manifest.transport])
        looks = looks or Looks(numbers=(len(seeds),))
        # The same trials may be judged by several zones.
        self._asked = {key: Task(key, seeds, looks) for key in dict.fromkeys(work)}
        #: those that were asked for, and what came of them
        self._tasks: list[Task] = []
        self._work = Work(1 if executor else _WORTH_A_START)
        #: what other runs are measuring
        self._elsewhere: list[Task] = []
        self._lock = threading.Lock()
        for task in self._asked.values():
            self._take_on(task, self._work.put)
        self._executor = concurrent.futures.ThreadPoolExecutor(self._threads, thread_name_prefix="trial")
        for _ in range(min(self._threads, self._work.waiting())):
            self._executor.submit(self._serve)

    def result(self, algorithm: str, setting: Setting) -> Sequence[Measurement]:
        """Wait for the measurements of a pair, in order of seed. Raise UserError."""
        return self._asked[algorithm, setting].future.result()

    def as_completed(self, timeout_s: float | None = None) -> Iterator[tuple[Key, Sequence[Measurement]]]:
        """Yield ((algorithm, setting), measurements) as they are completed. Raise UserError.

        After `timeout_s`, yield those that were completed while others were used, and the partial measurements of keys
        that are still inconclusive.
        """
        by_future = {task.future: task for task in self._asked.values()}
        try:
            for future in concurrent.futures.as_completed(list(by_future), timeout_s):
                yield by_future.pop(future).key, future.result()
        except concurrent.futures.TimeoutError:
            for future, task in by_future.items():
                if future.done():
                    yield task.key, future.result()
                elif task.unclear is not None:
                    yield task.key, task.unclear

    def wait(self) -> None:
        """Wait until all is measured, or has failed."""
        # What comes of a task is there before its future is done.
        for task in self._tasks:
            concurrent.futures.wait([task.future])

    def close(self) -> None:
        self._cancelled.set()
        if self._remote:
            self._remote.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for task in self._tasks:
            # What waited for more trials is nobody's now: the next run of this process may ask for it.
            self._give_up_claim(task)
            if not task.future.done():
                task.future.set_exception(_interrupted())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_on(self, task: Task, put: Callable[[Task], None]) -> None:
        """Complete a task where the store holds all that it takes; else `put` it where threads find it."""
        self._tasks.append(task)
        self.progress.expect([task.key], task.trials - task.before)
        for number in task.looks.numbers:
            found = stored(self._store, self._bench.trials(*task.key, task.seeds[:number]))
            if len(found) < number:
                break
            if self._settle_if_conclusive(task, list(found.values()), put):
                self.progress.expect([task.key], number - task.trials)
                for measurement in itertools.islice(found.values(), task.before, None):
                    self.progress.one_more(measurement, False)
                return
        put(task)

    def _settle_if_conclusive(
        self, task: Task, measurements: Sequence[Measurement], put: Callable[[Task], None]
    ) -> bool:
        """Complete a task where a look at so many measurements of it is the last; say whether it is.

        What comes of it is taken on first: else others would find everything done.
        """
        if len(measurements) < task.looks.numbers[-1] and not task.looks.clear(task.key, measurements):
            task.unclear = measurements
            return False
        for further in task.looks.then(task.key, measurements):
            self._take_on(further, put)
        task.future.set_result(measurements)
        return True

    def _serve(self) -> None:
        """Work on one group after the other, until all is settled."""
        while not self._cancelled.is_set():
            if group := self._work.join():
                try:
                    self._work_on(group)
                finally:
                    self._work.leave(group)
            elif all(task.future.done() for task in self._tasks):
                return
            else:
                self._look_elsewhere()
                self._cancelled.wait(_POLL_S)

    def _work_on(self, group: Group) -> None:
        """Measure tasks of a group until none is waiting; what goes wrong is raised where they are awaited."""
        mine: list[Task] = []
        try:
            for measurement in self._make(self._batches(group, mine)):
                self._store.add(measurement)
                of_it = next(task for task in mine if task.has(measurement.trial))
                self._note(of_it, measurement, True)
                self._settle_if_measured(mine, of_it)
            if mine:
                raise _interrupted()
        except BaseException as error:
            # An error that comes before any task was taken would come again with each of them.
            while not mine and (task := self._work.take(group)):
                mine.append(task)
            for task in mine:
                task.future.set_exception(error)
                self._give_up_claim(task)

    def _batches(self, group: Group, mine: list[Task]) -> Batches:
        """Yield the trials that tasks of a group still need, as a room takes them, and note the tasks in `mine`."""
        handful = 0
        while not self._cancelled.is_set():
            if self._by_handfuls and handful >= self._most_at_a_time():
                yield []
                handful = 0
            if task := self._work.take(group):
                if trials := self._begin(task, mine):
                    handful += 1
                    yield trials
            elif mine:
                # What is under way may be unclear, and come back.
                yield []
                handful = 0
            else:
                return

    def _most_at_a_time(self) -> int:
        """Return how many cells to hand over at a time: many first, one at the end.

        (Guided self-scheduling, Polychronopoulos and Kuck 1987.) With equal handfuls of ten, one worker would work
        alone for the last minutes of a full grid.
        """
        return max(1, min(_CELLS_AT_A_TIME, self._work.waiting() // (3 * self._threads)))

    def _begin(self, task: Task, mine: list[Task]) -> list[Trial]:
        """Return the trials that the store lacks for the next look of a task; none where there is nothing to do."""
        # From here on, what goes wrong is the task's, and is raised where it is awaited.
        mine.append(task)
        if task.release is None and not self._claim(task):
            mine.remove(task)
            self.progress.wait_for_others(1)
            with self._lock:
                self._elsewhere.append(task)
            return []
        trials = self._bench.trials(*task.key, task.seeds[: task.trials])
        known = stored(self._store, trials)
        for measurement in known.values():
            self._note(task, measurement, False)
        task.found = known
        self._settle_if_measured(mine, task)
        return [trial for trial in trials if trial.seed not in known]

    def _settle_if_measured(self, mine: list[Task], task: Task) -> None:
        """Look at a task that has all trials of its look: it is settled, or comes back for more."""
        if len(task.found) < task.trials:
            return
        found = [task.found[seed] for seed in task.seeds[: task.trials]]
        settled = self._settle_if_conclusive(task, found, self._work.put_first)
        mine.remove(task)
        if settled:
            self._give_up_claim(task)
            return
        task.before = task.trials
        task.trials = next(number for number in task.looks.numbers if number > task.trials)
        self.progress.expect([task.key], task.trials - task.before)
        self._work.put_first(task)

    def _note(self, task: Task, measurement: Measurement, fresh: bool) -> None:
        """Take in a measurement; count it unless it was counted at an earlier look."""
        task.found[measurement.trial.seed] = measurement
        if measurement.trial.seed not in task.seeds[: task.before]:
            self.progress.one_more(measurement, fresh)
            self._on_trial(self.progress)

    def _claim(self, task: Task) -> bool:
        """Claim a task for this run; say whether no other run has it."""
        with contextlib.ExitStack() as claims:
            key = self._bench.trials(*task.key, task.seeds[:1])[0].key
            if not claims.enter_context(claim(self._store.path, key)):
                return False
            task.release = claims.pop_all().close
        return True

    @staticmethod
    def _give_up_claim(task: Task) -> None:
        if task.release is not None:
            task.release()

    def _look_elsewhere(self) -> None:
        """Take on what another run has finished with; what it has measured is in the store by then."""
        with self._lock:
            tasks, self._elsewhere = self._elsewhere, []
        for task in tasks:
            try:
                claimed = self._claim(task)
            except UserError as error:
                self.progress.wait_for_others(-1)
                task.future.set_exception(error)
                continue
            if claimed:
                self.progress.wait_for_others(-1)
                self._work.put_first(task)
            else:
                with self._lock:
                    self._elsewhere.append(task)
        if tasks:
            self._on_trial(self.progress)

    def _make(self, batches: Batches) -> Iterator[Measurement]:
        """Yield the measurements of batches that share their algorithm, from the room that it has."""
        batches = iter(batches)
        for first in batches:
            if first:
                algorithm = first[0].scheme.algorithm
                place = self._bench.place(algorithm)
                why = self._bench.adapter.why_not(algorithm) or place.why_not
                together = itertools.chain([first], batches)
                if not why and place.room is not None:
                    yield from place.room.run(self._bench.adapter, together, self._cancelled)
                    return
                for trial in itertools.chain.from_iterable(together):
                    yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why)


def _interrupted() -> UserError:
    return UserError("interrupted", "run the same command again to resume")


def stored(store: Store, trials: Iterable[Trial]) -> dict[int, Measurement]:
    """Return {seed: Measurement} of those trials that the store holds."""
    found = {trial.seed: (trial, store.find(trial)) for trial in trials}
    # Measured under another name of the same kernel, perhaps: digests decide, not names.
    return {seed: dataclasses.replace(known, trial=trial) for seed, (trial, known) in found.items() if known}

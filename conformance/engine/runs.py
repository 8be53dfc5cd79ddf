"""Runs: measure what the store lacks, in background threads, and return the measurements of each setting.

Nothing here knows pytest or terminals. Rooms do the work, and the threads wait for them.

Where the stack under test failed, another is tried: does it get through the same networks, with the same seeds? For TCP
that is the kernel's, for a kernel's TCP that of the default kernel, for QUIC the first of QUIC that is built. The same
client fetches from it, unless that is one of the stack's own programs. It has the same algorithm if it offers that.
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Self

from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.engine.progress import FIXED_BYTES, RunProgress
from conformance.engine.work import Looks, Task, TaskGroup, Work
from conformance.engine.workers import Executor, Executors, WorkerRoom
from conformance.kernel import store as kernels
from conformance.lab import adapter as adapters, manifest
from conformance.lab.room import Batches
from conformance.model.errors import UserError
from conformance.model.judging.question import Key
from conformance.model.judging.session import check_trials
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import KERNEL_STACK, Control, Measurement, Outcome, Trial, family_of, is_in_kernel
from conformance.results.claims import claim
from conformance.results.store import Store
from conformance.support import limits

#: what `setup.sh quic` and the README build comes first
QUIC = ("quinn", "aioquic", "ngtcp2-1.11", "quic-go")
#: the algorithms to fall back to
_USUAL = ("cubic", "reno")
#: how many trials that failed wait for their controls, and are lost if the run is interrupted
_MOST_FAILED = 10
#: outcomes that say what became of a control: of others, the emulator or the adapter is the reason
_TELLING = (Outcome.OK, Outcome.TIMEOUT, Outcome.FAILED)


def beside(bench: Bench) -> Bench | None:
    """Return the bench of the stack to try where this bench's fails; None if there is none on this machine."""
    adapter = bench.adapter
    is_tcp = adapter.manifest.transport == "tcp"
    client = adapters.COMMON if adapter.client is None else str(adapter.client.manifest.path)
    if is_in_kernel(adapter.name):
        with contextlib.suppress(UserError):
            return benches.find(Choice(stack=KERNEL_STACK, client=client, kernel=kernels.DEFAULT_NAME))
        return None
    for stack in (KERNEL_STACK,) if is_tcp else QUIC:
        try:
            if family_of(stack) == family_of(adapter.name) or not (is_tcp or adapters.is_built(manifest.read(stack))):
                continue
            return benches.find(Choice(stack=stack, client=client, kernel=bench.choice.kernel))
        except UserError:
            continue
    return None


class Controls:
    """Tries the stack beside a bench's, which it looks up when it is first needed. `elsewhere`: see Run's executor."""

    def __init__(self, bench: Bench, elsewhere: Callable[[Bench], Bench] = lambda bench: bench) -> None:
        self._bench, self._elsewhere = bench, elsewhere
        self._beside: Bench | None = None
        self._looked = False
        self._lock = threading.Lock()

    def tried(
        self, failed: Measurement, seeds: Iterable[int], known: Iterable[Measurement], cancelled: threading.Event
    ) -> Measurement:
        """Return a failed trial's measurement with what becomes of the control with these seeds in the same setting.

        `known`: measurements in the same setting, whose controls need not be tried again.
        """
        bench, trial = self._found(), failed.trial
        if bench is None or (algorithm := _algorithm(bench, trial.scheme.algorithm)) is None:
            return failed
        scheme = bench.scheme(algorithm)
        if trial.scheme.in_kernel and scheme.kernel_digest == trial.scheme.kernel_digest:
            return failed  # the stack beside it is the same
        outcomes: dict[int, Outcome] = {}
        for earlier in known:
            if earlier.control is not None and earlier.control.scheme == scheme.id:
                outcomes |= earlier.control.trials
        missing = [seed for seed in dict.fromkeys((trial.seed, *seeds)) if seed not in outcomes]
        outcomes |= self._outcomes(bench, algorithm, trial.setting, missing, cancelled)
        # A control that was cut short would stay so: what is kept with one is not made again.
        if trial.seed not in outcomes or cancelled.is_set():
            return failed
        return dataclasses.replace(failed, control=Control(scheme=scheme.id, trials=dict(sorted(outcomes.items()))))

    def _found(self) -> Bench | None:
        with self._lock:
            if not self._looked:
                other = beside(self._bench)
                self._beside, self._looked = other and self._elsewhere(other), True
            return self._beside

    def _outcomes(
        self, bench: Bench, algorithm: str, setting: Setting, seeds: Collection[int], cancelled: threading.Event
    ) -> Mapping[int, Outcome]:
        room = bench.place(algorithm).room
        if not seeds or room is None:
            return {}
        # Packets need not be kept; a trial is the same without.
        trials: list[Trial] = bench.trials(algorithm, dataclasses.replace(setting, packets=False), seeds)
        measurements = room.run(bench.adapter, [trials], cancelled)
        ended = {m.trial.seed: Outcome.OK if m.never_came else m.outcome for m in measurements}
        return {seed: outcome for seed, outcome in ended.items() if outcome in _TELLING}


def _algorithm(bench: Bench, wanted: str) -> str | None:
    """Return the algorithm that a control uses; None if it can use none."""
    kernel = bench.choice.kernel
    return next(
        (
            name
            for name in (wanted, *_USUAL)
            if name in bench.adapter.manifest.offered()
            and kernel in (None, bench.adapter.kernel(name) or kernel)
            and not (bench.adapter.why_not(name) or bench.place(name).why_not)
        ),
        None,
    )


#: how many cells a room that cannot be fed one by one gets at a time: so few that little is lost if a worker dies, so
#: many that its start-up time does not matter
_CELLS_AT_A_TIME = 10
#: {transport: the number of trials that take longer than the start of another guest to help with them}
_WORTH_A_START = {"tcp": 8, "udp": 3}
#: how often an idle thread looks for new work, in s
_POLL_S = 0.2


def seeds(trials: int, first: int = 1) -> range:
    """Return the seeds of `trials` trials, from `first` on. Raise UserError if no cell can have so many."""
    check_trials(trials)
    return range(first, first + trials)


class Run:
    """Measures (algorithm, setting) pairs in the background; `result()` waits for the measurements of one.

    Each pair is measured with all `seeds` or, if `looks` are given, with as many of them as these require; the tasks
    that `looks.then` returns for it are done next. Measurements in the store are available at once, without a guest.
    Cells of one algorithm and profile share guests, one on each core, which are fed cells in the given order until none
    is left. A pair that another run with the same results file is measuring is waited for, not measured again. With
    `executor`, a function that makes an Executor, workers make the trials, `workers` handfuls of cells at a time. The
    pairs in `urgent` come before all others (Work). `close()` ends the run at once: guests are killed, and measurements
    are kept.
    """

    def __init__(
        self,
        bench: Bench,
        store: Store,
        work: Iterable[Key],
        seeds: Sequence[int],
        workers: int | None = None,
        *,
        on_trial: Callable[[RunProgress], None] = lambda progress: None,
        looks: Looks | None = None,
        executor: Callable[[], Executor] | None = None,
        urgent: Collection[Key] = (),
    ) -> None:
        self._remote = Executors(executor) if executor else None
        self._bench = self._elsewhere_too(bench)
        self._controls = Controls(bench, self._elsewhere_too)
        self._store, self._on_trial = store, on_trial
        self._cancelled = threading.Event()
        self._threads = workers or limits.workers()
        self._by_handfuls = bool(executor)
        transport = bench.adapter.manifest.transport
        self.progress = RunProgress(self._threads, FIXED_BYTES[transport])
        looks = looks or Looks(numbers=(len(seeds),))
        # Several zones may judge the same trials, so a key may be given more than once.
        self._asked = {key: Task(key, seeds, looks, key in urgent) for key in dict.fromkeys(work)}
        #: the tasks that were asked for, and those that follow from them
        self._tasks: list[Task] = []
        self._work = Work(1 if executor else _WORTH_A_START[transport])
        #: tasks whose cells other runs are measuring
        self._elsewhere: list[Task] = []
        self._lock = threading.Lock()
        for task in self._asked.values():
            self._take_on(task, self._work.put)
        self._executor = concurrent.futures.ThreadPoolExecutor(self._threads, thread_name_prefix="trial")
        for _ in range(min(self._threads, self._work.waiting())):
            self._executor.submit(self._serve)

    def _elsewhere_too(self, bench: Bench) -> Bench:
        """Return a bench whose trials are made by this run's workers, if it has any."""
        return bench.elsewhere(WorkerRoom(bench.choice, self._remote)) if self._remote else bench

    def result(self, algorithm: str, setting: Setting) -> Sequence[Measurement]:
        """Wait for the measurements of a pair, in order of seed. Raise UserError."""
        return self._asked[algorithm, setting].future.result()

    def as_completed(self, timeout_s: float | None = None) -> Iterator[tuple[Key, Sequence[Measurement]]]:
        """Yield ((algorithm, setting), measurements) as they are completed. Raise UserError.

        After `timeout_s`, yield only what was completed by then, and the partial measurements of keys that are still
        inconclusive.
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

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until everything is measured or has failed, or so long."""
        ends_s = None if timeout_s is None else time.monotonic() + timeout_s
        # The tasks that follow from a task are in the list before its future is done.
        for task in self._tasks:
            concurrent.futures.wait([task.future], None if ends_s is None else max(ends_s - time.monotonic(), 0.0))

    def close(self) -> None:
        self._cancelled.set()
        if self._remote:
            self._remote.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for task in self._tasks:
            # The next run of this process may ask for tasks that were waiting for more trials.
            self._give_up_claim(task)
            if not task.future.done():
                task.future.set_exception(_interrupted())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_on(self, task: Task, put: Callable[[Task], None]) -> None:
        """Complete a task if the store holds all trials that it needs; otherwise `put` it where threads find it."""
        self._tasks.append(task)
        self.progress.expect([task.key], task.trials - task.before, task.further)
        for number in task.looks.numbers:
            measurements = stored(self._store, self._bench.trials(*task.key, task.seeds[:number]))
            if len(measurements) < number:
                break
            if self._settle_if_conclusive(task, list(measurements.values()), put):
                self.progress.expect([task.key], number - task.trials)
                for measurement in itertools.islice(measurements.values(), task.before, None):
                    self.progress.one_more(measurement, False)
                return
        put(task)

    def _settle_if_conclusive(
        self, task: Task, measurements: Sequence[Measurement], put: Callable[[Task], None]
    ) -> bool:
        """Complete a task if no look after these measurements is needed; return whether it was completed.

        Tasks that follow from it are taken on first: otherwise, other threads would find everything done.
        """
        if len(measurements) < task.looks.numbers[-1] and not task.looks.clear(task.key, measurements):
            task.unclear = measurements
            return False
        for further in task.looks.then(task.key, measurements):
            self._take_on(further, put)
        task.future.set_result(measurements)
        return True

    def _serve(self) -> None:
        """Work on one group after the other, until all tasks are done."""
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

    def _work_on(self, group: TaskGroup) -> None:
        """Measure tasks of a group until none is waiting; errors are raised where the tasks' results are awaited."""
        mine: list[Task] = []
        failed: list[Measurement] = []
        try:
            for measurement in self._make(self._batches(group, mine, failed)):
                if measurement.outcome is Outcome.FAILED:
                    failed.append(measurement)
                else:
                    self._keep(mine, measurement)
            # Another guest for the control gets this one's core.
            while failed and not self._cancelled.is_set():
                self._keep(mine, self._beside_control(_of(mine, failed[0]), failed.pop(0)))
            if mine:
                raise _interrupted()
        except BaseException as error:
            # If an error comes before any task was taken, each task would meet it again: all of them fail.
            while not mine and (task := self._work.take(group)):
                mine.append(task)
            for task in mine:
                task.future.set_exception(error)
                self._give_up_claim(task)

    def _beside_control(self, task: Task, failed: Measurement) -> Measurement:
        """Return the measurement of a trial that failed with what becomes of the control in the look's trials."""
        return self._controls.tried(failed, task.seeds[: task.trials], task.measured.values(), self._cancelled)

    def _keep(self, mine: list[Task], measurement: Measurement) -> None:
        """Store a measurement, and settle its task if that is measured."""
        self._store.add(measurement)
        task = _of(mine, measurement)
        self._note(task, measurement, True)
        self._settle_if_measured(mine, task)

    def _batches(self, group: TaskGroup, mine: list[Task], failed: Sequence[Measurement]) -> Batches:
        """Yield the trials that tasks of a group still need, whenever the room takes more; add the tasks to `mine`.

        No more are yielded when enough trials have `failed`: these are kept only with what becomes of the control.
        """
        handful = 0
        while len(failed) < _MOST_FAILED and not self._cancelled.is_set():
            if self._by_handfuls and handful >= self._most_at_a_time():
                yield []
                handful = 0
            if task := self._work.take(group):
                if trials := self._begin(task, mine):
                    handful += 1
                    yield trials
            elif mine:
                # A task under way may be unclear after its look, and come back for more trials.
                yield []
                handful = 0
            else:
                return

    def _most_at_a_time(self) -> int:
        """Return how many cells to hand over at a time: many first, one at the end.

        This is guided self-scheduling (Polychronopoulos and Kuck 1987). With equal handfuls of ten, one worker would
        work alone for the last minutes of a full grid.
        """
        return max(1, min(_CELLS_AT_A_TIME, self._work.waiting() // (3 * self._threads)))

    def _begin(self, task: Task, mine: list[Task]) -> list[Trial]:
        """Return the trials that the store lacks for the next look of a task; none if there is nothing to do."""
        # From here on, an error belongs to this task, and is raised where its result is awaited.
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
        task.measured = known
        self._settle_if_measured(mine, task)
        return [trial for trial in trials if trial.seed not in known]

    def _settle_if_measured(self, mine: list[Task], task: Task) -> None:
        """Settle a task that has all trials of its look, or put it back for more trials."""
        if len(task.measured) < task.trials:
            return
        measurements = [task.measured[seed] for seed in task.seeds[: task.trials]]
        settled = self._settle_if_conclusive(task, measurements, self._work.put_first)
        mine.remove(task)
        if settled:
            self._give_up_claim(task)
            return
        task.before = task.trials
        task.trials = next(number for number in task.looks.numbers if number > task.trials)
        self.progress.expect([task.key], task.trials - task.before, task.further)
        self._work.put_first(task)

    def _note(self, task: Task, measurement: Measurement, fresh: bool) -> None:
        """Add a measurement to its task; count it unless it was counted at an earlier look."""
        task.measured[measurement.trial.seed] = measurement
        if measurement.trial.seed not in task.seeds[: task.before]:
            self.progress.one_more(measurement, fresh)
            self._on_trial(self.progress)

    def _claim(self, task: Task) -> bool:
        """Claim a task for this run; return whether that worked, as no other run has claimed it."""
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
        """Take on tasks whose claims other runs have given up; their measurements are in the store by then."""
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
        """Yield the measurements of batches of one algorithm, made in its room; UNSUPPORTED if it cannot be run."""
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


def _of(tasks: Iterable[Task], measurement: Measurement) -> Task:
    return next(task for task in tasks if task.has(measurement.trial))


def _interrupted() -> UserError:
    return UserError("interrupted", "run the same command again to resume")


def stored(store: Store, trials: Iterable[Trial]) -> dict[int, Measurement]:
    """Return {seed: Measurement} for those trials that the store holds."""
    by_seed = {trial.seed: (trial, store.find(trial) or _without_packets(store, trial)) for trial in trials}
    # A stored trial may name the same kernel differently: digests decide, not names.
    return {seed: dataclasses.replace(known, trial=trial) for seed, (trial, known) in by_seed.items() if known}


def _without_packets(store: Store, trial: Trial) -> Measurement | None:
    """Return a trial that the store holds with its packets, and store it without them: it is the same transfer.

    Other detail is measured in a profile's trials that keep packets, so these are left alone.
    """
    if trial.setting.packets or trial.setting.of_profile:
        return None
    kept = store.find(dataclasses.replace(trial, setting=dataclasses.replace(trial.setting, packets=True)))
    if kept is None or kept.outcome is not Outcome.OK:
        return None
    measurement = dataclasses.replace(kept, trial=trial, packets=None)
    store.add(measurement)
    return measurement

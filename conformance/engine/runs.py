"""Runs: measure what the store lacks, in the background, and hand back measurements setting by setting.

Nothing here knows pytest or terminals. Rooms do the work; threads wait for them.
"""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from typing import Self

from conformance.engine.benches import Bench
from conformance.engine.plan import Key, check_trials
from conformance.engine.workers import Executors, Room
from conformance.model.errors import UserError
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome, Trial
from conformance.results.claims import claim
from conformance.results.store import Store
from conformance.support.console import count, duration
from conformance.support.pace import Pace

#: few enough that a killed guest costs little, many enough that its start does not count
_CELLS_A_GUEST = 10
#: between two looks whether another run has finished what it claimed
_CLAIM_POLL_S = 0.2


def seeds(trials: int, first: int = 1) -> range:
    """Return the seeds of so many trials. Raise UserError for a number that no cell can have."""
    check_trials(trials)
    return range(first, first + trials)


def _always_clear(key: Key, measurements: Sequence[Measurement]) -> bool:
    return True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """When a setting has been measured often enough: after `numbers` of trials, rising, ask `clear(key, measurements)`.

    The last number is the most: nothing is asked any more.
    """

    numbers: tuple[int, ...]
    clear: Callable[[Key, Sequence[Measurement]], bool] = _always_clear


class Progress:
    """How many trials are done, and how long the rest will take at the pace so far."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.fresh, self.errors = total, 0, 0, 0
        #: settings that another run is measuring
        self.elsewhere = 0
        self._pace = Pace()
        self._lock = threading.Lock()

    def one_more(self, measurement: Measurement, fresh: bool) -> None:
        with self._lock:
            self.done += 1
            self.fresh += fresh
            self.errors += measurement.outcome is Outcome.ERROR
            if fresh:
                self._pace.reached(self.fresh)

    def more(self, trials: int) -> None:
        with self._lock:
            self.total += trials

    def wait_for_others(self, change: int) -> None:
        with self._lock:
            self.elsewhere += change

    def remaining_s(self) -> float | None:
        """Return seconds, or None while too few trials were made for a guess."""
        return self._pace.remaining_s(self.total - self.done)

    def line(self) -> str:
        left = self.remaining_s()
        eta = "" if left is None or self.done == self.total else f", about {duration(left)} left"
        errors = f", {self.errors} errors" if self.errors else ""
        others = f"; another run is measuring {count(self.elsewhere, 'cell')} of these" if self.elsewhere else ""
        return f"{self.done} of {self.total} trials{errors}{eta}{others}"


class Run:
    """Measures (algorithm, setting) pairs in the background, in the order given; `result()` waits for one.

    Each with all `seeds`, or, with `looks`, with as many of them as it takes. What the store holds is there at once: no
    guest is waited for. Cells of one algorithm and profile share guests, up to `_CELLS_A_GUEST` each. What another run
    with the same results file is measuring is waited for, and not measured again. `executor`, a function that makes a
    concurrent.futures.Executor, has workers make the trials, `workers` batches of them at a time. `close()` ends it at
    once: guests are killed, what was measured is kept.
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
        # The same trials may be judged by several zones.
        keys = list(dict.fromkeys(work))
        self._remote = Executors(executor) if executor else None
        self._bench = bench.elsewhere(Room(bench.choice, self._remote)) if self._remote else bench
        self._store, self._seeds, self._on_trial = store, seeds, on_trial
        self._looks = looks or Looks(numbers=(len(seeds),))
        self._cancelled = threading.Event()
        self.progress = Progress(len(keys) * self._looks.numbers[0])
        # In real time trials would disturb each other.
        threads = 1 if bench.lab == "host" else workers or len(os.sched_getaffinity(0))
        self._executor = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="trial")
        self._futures: dict[Key, Future[Sequence[Measurement]]] = {key: Future() for key in keys}
        #: of those that were not clear at their last look, what it saw
        self._unclear: dict[Key, Sequence[Measurement]] = {}
        for batch in _share([key for key in keys if not self._complete_from_store(key)], threads):
            self._executor.submit(self._measure, batch)

    def result(self, algorithm: str, setting: Setting) -> Sequence[Measurement]:
        """Wait for the measurements of a pair, in order of seed. Raise UserError."""
        return self._futures[algorithm, setting].result()

    def as_completed(self, timeout_s: float | None = None) -> Iterator[tuple[Key, Sequence[Measurement]]]:
        """Yield ((algorithm, setting), measurements) as they are completed. Raise UserError.

        After `timeout_s`, yield only the partial measurements of keys that are still inconclusive.
        """
        by_future = {future: key for key, future in self._futures.items()}
        try:
            for future in concurrent.futures.as_completed(list(by_future), timeout_s):
                yield by_future.pop(future), future.result()
        except concurrent.futures.TimeoutError:
            yield from ((key, self._unclear[key]) for key in by_future.values() if key in self._unclear)

    def wait(self) -> None:
        """Wait until all is measured, or has failed."""
        concurrent.futures.wait(self._futures.values())

    def close(self) -> None:
        self._cancelled.set()
        if self._remote:
            self._remote.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for future in self._futures.values():
            if not future.done():
                future.set_exception(_interrupted())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _complete_from_store(self, key: Key) -> bool:
        """Complete a pair where the store holds all that it takes; say whether it does."""
        for number in self._looks.numbers:
            found = stored(self._store, self._bench.trials(*key, self._seeds[:number]))
            if len(found) < number:
                break
            if self._settle_if_conclusive(key, list(found.values())):
                self.progress.more(number - self._looks.numbers[0])
                for measurement in found.values():
                    self.progress.one_more(measurement, False)
                return True
        return False

    def _settle_if_conclusive(self, key: Key, measurements: Sequence[Measurement]) -> bool:
        """Complete a pair where a look at so many measurements of it is the last; say whether it is."""
        if len(measurements) < self._looks.numbers[-1] and not self._looks.clear(key, measurements):
            self._unclear[key] = measurements
            return False
        self._futures[key].set_result(measurements)
        return True

    def _measure(self, keys: Sequence[Key]) -> None:
        """Measure those of the pairs that no other run is measuring; come back to the others when all else is begun."""
        with self._settling(keys), contextlib.ExitStack() as claims:
            claimed = {key: claims.enter_context(self._claim(key)) for key in keys}
            for key in (key for key in keys if not claimed[key]):
                self.progress.wait_for_others(1)
                with contextlib.suppress(RuntimeError):  # it is being closed
                    self._executor.submit(self._measure_after_another, key)
            self._take_looks([key for key in keys if claimed[key]])

    def _measure_after_another(self, key: Key) -> None:
        """Wait until another run has measured a pair, and measure what is missing then."""
        with self._settling([key]):
            while not self._cancelled.wait(_CLAIM_POLL_S):
                self._on_trial(self.progress)
                with self._claim(key) as is_mine:
                    if is_mine:
                        self.progress.wait_for_others(-1)
                        self._take_looks([key])
                        return

    def _claim(self, key: Key) -> contextlib.AbstractContextManager[bool]:
        return claim(self._store.path, self._bench.trials(*key, self._seeds[:1])[0].key)

    @contextlib.contextmanager
    def _settling(self, keys: Iterable[Key]) -> Iterator[None]:
        """Give what goes wrong in the block to whoever waits for these pairs."""
        try:
            yield
        except BaseException as error:
            for key in keys:
                if not self._futures[key].done():
                    self._futures[key].set_exception(error)

    def _take_looks(self, keys: Sequence[Key]) -> None:
        before = 0
        for number in self._looks.numbers:
            if not keys:
                return
            if before:
                self.progress.more(len(keys) * (number - before))
            keys = self._look(keys, self._seeds[:number], self._seeds[:before])
            before = number

    def _look(self, keys: Sequence[Key], seeds: Sequence[int], seen: Sequence[int]) -> list[Key]:
        """Measure with these seeds, all but `seen` for the first time; return the pairs that are not clear."""

        def note(measurement: Measurement, fresh: bool) -> None:
            if measurement.trial.seed not in seen:
                self.progress.one_more(measurement, fresh)
                self._on_trial(self.progress)

        batches = [self._bench.trials(*key, seeds) for key in keys]
        found = measure(self._bench, self._store, batches, self._cancelled, note)
        return [
            key
            for key, measurements in zip(keys, found, strict=False)
            if not self._settle_if_conclusive(key, measurements)
        ]


def _interrupted() -> UserError:
    return UserError("interrupted", "run the same command again to resume")


def _share(work: Sequence[Key], workers: int) -> Iterator[list[Key]]:
    """Split the work into lists for one guest each, alike but for the cell, in order.

    Long lists first, single cells at the end (guided self-scheduling, Polychronopoulos and Kuck 1987): with equal
    lists of ten, one core would work alone for the last minutes of a full grid.
    """
    rest = len(work)
    for _, alike in itertools.groupby(work, lambda key: (key[0], key[1].profile_digest)):
        group = list(alike)
        at = 0
        while at < len(group):
            size = max(1, min(_CELLS_A_GUEST, rest // (3 * workers), len(group) - at))
            yield group[at : at + size]
            at += size
            rest -= size


def stored(store: Store, trials: Iterable[Trial]) -> dict[int, Measurement]:
    """Return {seed: Measurement} of those trials that the store holds."""
    found = {trial.seed: (trial, store.find(trial)) for trial in trials}
    # Measured under another name of the same kernel, perhaps: digests decide, not names.
    return {seed: dataclasses.replace(known, trial=trial) for seed, (trial, known) in found.items() if known}


def _ignore(measurement: Measurement, fresh: bool) -> None:
    pass


def measure(
    bench: Bench,
    store: Store,
    batches: Sequence[Sequence[Trial]],
    cancelled: threading.Event | None = None,
    on_trial: Callable[[Measurement, bool], None] = _ignore,
) -> Iterator[list[Measurement]]:
    """Yield the measurements of each batch (the trials of one cell), from the store or made now and added to it.

    `on_trial` is told each measurement, and whether it was made now.
    """
    cancelled = cancelled or threading.Event()
    found = [stored(store, trials) for trials in batches]
    for known in itertools.chain.from_iterable(by_seed.values() for by_seed in found):
        on_trial(known, False)
    missing = [[t for t in trials if t.seed not in known] for trials, known in zip(batches, found, strict=True)]
    owners = {trials[0].setting: at for at, trials in enumerate(batches)}
    at = 0
    for measurement in _make(bench, [trials for trials in missing if trials], cancelled):
        store.add(measurement)
        on_trial(measurement, True)
        found[owners[measurement.trial.setting]][measurement.trial.seed] = measurement
        while at < len(batches) and len(found[at]) == len(batches[at]):
            yield [found[at][trial.seed] for trial in batches[at]]
            at += 1
    for rest in range(at, len(batches)):
        if len(found[rest]) < len(batches[rest]):
            raise _interrupted()
        yield [found[rest][trial.seed] for trial in batches[rest]]


def _make(bench: Bench, batches: list[list[Trial]], cancelled: threading.Event) -> Iterator[Measurement]:
    if not batches:
        return
    algorithm = batches[0][0].scheme.algorithm
    place = bench.place(algorithm)
    why = bench.adapter.why_not(algorithm) or place.why_not
    if not why and place.room is not None:
        yield from place.room.run(bench.adapter, batches, cancelled)
        return
    for trials in batches:
        for trial in trials:
            yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why)

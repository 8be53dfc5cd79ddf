"""Runs: measure what the store lacks, in the background, and hand back measurements setting by setting.

Nothing here knows pytest or terminals. Rooms do the work; threads wait for them.
"""

import collections.abc
import concurrent.futures
import dataclasses
import itertools
import os
import threading
import time

from conformance.engine.workers import Executors, Room
from conformance.model.errors import UserError
from conformance.model.trial import Measurement, Outcome
from conformance.model.verdict import MOST_TRIALS, Status
from conformance.support.console import duration

#: few enough that a killed guest costs little, many enough that its start does not count
_CELLS_A_GUEST = 10


def seeds(trials, first=1):
    if not 1 <= trials <= MOST_TRIALS:
        raise UserError(f"--trials {trials}", f"it must be from 1 to {MOST_TRIALS}")
    return range(first, first + trials)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Looks:
    """When a cell has been measured often enough: after `numbers` of trials, rising, ask `clear(key, measurements)`.

    The last number is the budget: nothing is asked any more.
    """

    numbers: tuple[int, ...]
    clear: collections.abc.Callable = lambda key, measurements: True

    @classmethod
    def until_clear(cls, numbers, verdicts):
        """Until none of `verdicts(key, measurements)` is inconclusive."""

        def clear(key, measurements):
            return all(verdict.status is not Status.INCONCLUSIVE for verdict in verdicts(key, measurements))

        return cls(numbers=numbers, clear=clear)


class Run:
    """Measures (algorithm, setting) pairs in the background, in the order given; `result()` waits for one.

    Each with all `seeds`, or, with `looks`, with as many of them as it takes. What the store holds is there at once: no
    guest is waited for. Cells of one algorithm and profile share guests, up to `_CELLS_A_GUEST` each. `executor`, a
    function that makes a concurrent.futures.Executor, has workers make the trials, `workers` batches of them at a time.
    `close()` ends it at once: guests are killed, what was measured is kept.
    """

    def __init__(
        self, bench, store, work, seeds, workers=None, on_trial=lambda progress: None, looks=None, executor=None
    ):  # fmt: skip
        # The same trials may be judged by several zones.
        work = list(dict.fromkeys(work))
        self._remote = Executors(executor) if executor else None
        self._bench = bench.elsewhere(Room(bench.choice, self._remote)) if executor else bench
        self._store, self._on_trial = store, on_trial
        self._looks = looks or Looks(numbers=(len(seeds),))
        self._cancelled = threading.Event()
        self.progress = Progress(len(work) * self._looks.numbers[0])
        # In real time trials would disturb each other.
        workers = 1 if bench.lab == "host" else workers or len(os.sched_getaffinity(0))
        self._executor = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="trial")
        self._futures = {key: concurrent.futures.Future() for key in work}
        #: of those that were not clear at their last look, what it saw
        self._unclear = {}
        for keys in _share([key for key in work if not self._is_stored(key, seeds)], workers):
            self._executor.submit(self._measure, keys, seeds)

    def result(self, algorithm, setting):
        """The measurements, in order of seed. Raises UserError."""
        return self._futures[algorithm, setting].result()

    def as_completed(self, timeout_s=None):
        """((algorithm, setting), measurements) as they are completed. Raises UserError.

        After `timeout_s` no more, but of what was looked at and is not clear, what was seen.
        """
        by_future = {future: key for key, future in self._futures.items()}
        try:
            for future in concurrent.futures.as_completed(list(by_future), timeout_s):
                yield by_future.pop(future), future.result()
        except concurrent.futures.TimeoutError:
            yield from ((key, self._unclear[key]) for key in by_future.values() if key in self._unclear)

    def wait(self):
        """Until all is measured, or has failed."""
        concurrent.futures.wait(self._futures.values())

    def close(self):
        self._cancelled.set()
        if self._remote:
            self._remote.close()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for future in self._futures.values():
            if not future.done():
                future.set_exception(_interrupted())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _is_stored(self, key, seeds):
        """Whether the store holds all that it takes of a pair, which then is done."""
        for number in self._looks.numbers:
            found = stored(self._store, self._bench.trials(*key, seeds[:number]))
            if len(found) < number:
                break
            if self._is_done(key, list(found.values())):
                self.progress.more(number - self._looks.numbers[0])
                for measurement in found.values():
                    self.progress.one_more(measurement, False)
                return True
        return False

    def _is_done(self, key, measurements):
        """Whether a look at so many measurements of a pair is the last; its result is there then."""
        if len(measurements) < self._looks.numbers[-1] and not self._looks.clear(key, measurements):
            self._unclear[key] = measurements
            return False
        self._futures[key].set_result(measurements)
        return True

    def _measure(self, keys, seeds):
        try:
            before = 0
            for number in self._looks.numbers:
                if before and keys:
                    self.progress.more(len(keys) * (number - before))
                keys = self._look(keys, seeds[:number], seeds[:before]) if keys else ()
                before = number
        except BaseException as error:
            for key in keys:
                if not self._futures[key].done():
                    self._futures[key].set_exception(error)

    def _look(self, keys, seeds, seen):
        """Measure with these seeds, all but `seen` for the first time; returns the keys that are not clear."""

        def count(measurement, fresh):
            if measurement.trial.seed not in seen:
                self.progress.one_more(measurement, fresh)
                self._on_trial(self.progress)

        batches = [self._bench.trials(*key, seeds) for key in keys]
        found = measure(self._bench, self._store, batches, self._cancelled, count)
        return [key for key, measurements in zip(keys, found, strict=False) if not self._is_done(key, measurements)]


def _interrupted():
    return UserError("interrupted", "run the same command again to resume")


def _share(work, workers):
    """Split the work into lists for one guest each, alike but for the cell, in order.

    Long lists first, single cells at the end (guided self-scheduling, Polychronopoulos and Kuck 1987): with equal
    lists of ten, one core would work alone for the last minutes of a full grid.
    """
    rest = len(work)
    for _, group in itertools.groupby(work, lambda key: (key[0], key[1].profile_digest)):
        group = list(group)
        at = 0
        while at < len(group):
            size = max(1, min(_CELLS_A_GUEST, rest // (3 * workers), len(group) - at))
            yield group[at : at + size]
            at += size
            rest -= size


def stored(store, trials):
    """{seed: Measurement} of those trials that the store holds."""
    found = {trial.seed: (trial, store.find(trial)) for trial in trials}
    # Measured under another name of the same kernel, perhaps: digests decide, not names.
    return {seed: dataclasses.replace(known, trial=trial) for seed, (trial, known) in found.items() if known}


def measure(bench, store, batches, cancelled=None, on_trial=lambda measurement, fresh: None):
    """Yield the measurements of each batch (the trials of one cell), from the store or made now and added to it."""
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


def _make(bench, batches, cancelled):
    if not batches:
        return
    algorithm = batches[0][0].scheme.algorithm
    place = bench.place(algorithm)
    why = bench.adapter.why_not(algorithm) or place.why_not
    if not why:
        yield from place.room.run(bench.adapter, batches, cancelled)
        return
    for trials in batches:
        for trial in trials:
            yield Measurement(trial=trial, outcome=Outcome.UNSUPPORTED, message=why)


class Progress:
    """How many trials are done, and how long the rest will take at the pace so far."""

    def __init__(self, total):
        self.total, self.done, self.fresh, self.errors = total, 0, 0, 0
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def one_more(self, measurement, fresh):
        with self._lock:
            self.done += 1
            self.fresh += fresh
            self.errors += measurement.outcome is Outcome.ERROR

    def more(self, trials):
        with self._lock:
            self.total += trials

    def remaining_s(self):
        """Seconds, or None before the first fresh trial is done."""
        if not self.fresh:
            return None
        return (time.monotonic() - self._began) / self.fresh * (self.total - self.done)

    def line(self):
        left = self.remaining_s()
        eta = "" if left is None or self.done == self.total else f", about {duration(left)} left"
        errors = f", {self.errors} errors" if self.errors else ""
        return f"{self.done} of {self.total} trials{errors}{eta}"

"""The engine: plan the trials of a scheme, run what the store lacks, hand back measurements cell by cell.

It knows neither pytest nor terminals. Rooms do the work; threads wait for them.
"""

import collections.abc
import concurrent.futures
import dataclasses
import functools
import itertools
import os
import shlex
import threading
import time

from conformance import remote, specs
from conformance.kernel import store as kernels
from conformance.lab import adapter as adapters
from conformance.lab import version
from conformance.model.errors import UserError
from conformance.model.trial import Measurement, Outcome, Scheme, Trial
from conformance.model.verdict import MOST_TRIALS, Status

#: few enough that a killed guest costs little, many enough that its start does not count
_CELLS_A_GUEST = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Choice:
    """What a user chooses to test, by names that are not looked up yet.

    `kernel` None is the one that an algorithm asks for; `client`: see adapter.load(); `interop_rootfs`, a folder,
    stands in the place of `stack`.
    """

    stack: str = "linux-tcp"
    client: str = adapters.COMMON
    interop_rootfs: str | None = None
    kernel: str | None = None
    lab: str = "virtual"

    def options(self, *without):
        """What is not as usual, as options of a command line, each with a space before it; `without` these fields."""
        given = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in without and getattr(self, field.name) != field.default
        }
        return "".join(f" --{name.replace('_', '-')} {shlex.quote(value)}" for name, value in given.items())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Room and kernel that an algorithm's trials are run in; no room, and why not, where the kernel is not built."""

    kernel: kernels.Kernel
    room: object
    why_not: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """Stack, lab and kernel that trials are run with, and the `choice` they were found by.

    `place` finds the Place of an algorithm.
    """

    adapter: adapters.Adapter
    lab: str
    place: collections.abc.Callable
    lab_digest: str
    choice: Choice

    @property
    def profile(self):
        """Name of the profile that this stack is judged under."""
        return specs.PROFILES[self.adapter.manifest.transport]

    def scheme(self, algorithm):
        kernel = self.place(algorithm).kernel
        return Scheme(
            algorithm=algorithm,
            stack=self.adapter.name,
            stack_version=self.adapter.version,
            stack_digest=self.adapter.digest,
            kernel=kernel.name,
            kernel_release=kernel.release,
            kernel_digest=kernel.digest,
        )

    def on(self, executors):
        """The same bench, but for workers that make the trials. Raises UserError."""
        if self.lab != "virtual":
            raise UserError(f"workers do not share the {self.lab} lab", "leave --lab or --executor out")

        def place(algorithm):
            here = self.place(algorithm)
            return here if here.room is None else dataclasses.replace(here, room=remote.Room(self.choice, executors))

        return dataclasses.replace(self, place=place)

    def trials(self, algorithm, setting, seeds):
        scheme = self.scheme(algorithm)
        return [
            Trial(setting=setting, scheme=scheme, seed=seed, room=self.lab, lab_digest=self.lab_digest)
            for seed in seeds
        ]


def bench(choice=Choice()):
    """Find the stack, the room and the kernel of a Choice.

    Raises UserError where one is missing; a kernel that only some algorithm asks for makes that unsupported.
    """
    if choice.interop_rootfs:
        adapter = adapters.load_interop(choice.interop_rootfs)
    else:
        adapter = adapters.load(choice.stack, choice.client)
        if adapter.manifest.rootfs:
            raise UserError(f"stack {adapter.name} runs other root file systems", "name one with --interop-rootfs")
    lab, kernel = choice.lab, choice.kernel
    if lab == "virtual":
        from conformance.lab.virtual import VirtualRoom

        usual = kernels.usual(user_space=adapter.manifest.transport == "udp")
        kernels.find(kernel or usual)

        @functools.cache
        def place(algorithm):
            name = kernel or adapter.kernel(algorithm) or usual
            try:
                found = kernels.find(name)
            except UserError as error:
                return Place(kernel=kernels.missing(name), room=None, why_not=str(error))
            return Place(kernel=found, room=VirtualRoom(found))

    elif lab == "host":
        from conformance.lab.host import HostRoom, this_kernel

        here = Place(kernel=this_kernel(), room=HostRoom())

        def place(algorithm):
            return here

    else:
        raise UserError(f"lab {lab!r} is not known", "choose virtual or host")
    return Bench(adapter=adapter, lab=lab, place=place, lab_digest=version.lab_version(), choice=choice)


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
        self._remote = remote.Executors(executor) if executor else None
        self._bench = bench.on(self._remote) if executor else bench
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


def duration(seconds):
    """A length of time for people: 45 s, 3 min 20 s, 2 h 05 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"

"""The engine: plan the trials of a scheme, run what the store lacks, hand back measurements cell by cell.

It knows neither pytest nor terminals. Rooms do the work; threads wait for them.
"""

import concurrent.futures
import dataclasses
import os
import threading
import time

from conformance import specs
from conformance.kernel import store as kernels
from conformance.lab import adapter as adapters
from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.trial import Measurement, Outcome, Scheme, Trial


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bench:
    """Stack, room and kernel that trials are run with."""

    adapter: adapters.Adapter
    room: object
    kernel: kernels.Kernel
    lab_digest: str

    def scheme(self, algorithm):
        return Scheme(
            algorithm=algorithm,
            stack=self.adapter.name,
            stack_version=self.adapter.version,
            stack_digest=self.adapter.digest,
            kernel=self.kernel.name,
            kernel_release=self.kernel.release,
            kernel_digest=self.kernel.digest,
        )

    def trials(self, algorithm, setting, seeds):
        scheme = self.scheme(algorithm)
        return [
            Trial(setting=setting, scheme=scheme, seed=seed, room=self.room.name, lab_digest=self.lab_digest)
            for seed in seeds
        ]


def bench(stack="linux-tcp", lab="virtual", kernel=kernels.DEFAULT_NAME):
    """Find stack, kernel and room; raises UserError where one is missing."""
    adapter = adapters.load(stack)
    if lab == "virtual":
        from conformance.lab.virtual import VirtualRoom

        found = kernels.find(kernel)
        room = VirtualRoom(found)
    elif lab == "host":
        from conformance.lab.host import HostRoom, this_kernel

        found = this_kernel()
        room = HostRoom()
    else:
        raise UserError(f"lab {lab!r} is not known", "choose virtual or host")
    return Bench(adapter=adapter, room=room, kernel=found, lab_digest=job.lab_digest())


def seeds(trials, first=1):
    if not 1 <= trials <= 10_000:
        raise UserError(f"--trials {trials}", "it must be from 1 to 10000")
    return range(first, first + trials)


class Run:
    """Measures cells in the background, in the order given; `result(cell)` waits for one.

    `close()` ends it at once: guests are killed, what was measured is in the store.
    """

    def __init__(self, bench, store, algorithm, settings, seeds, workers=None):
        self._bench, self._store = bench, store
        self._cancelled = threading.Event()
        self._progress = Progress(len(settings) * len(seeds))
        workers = workers or len(os.sched_getaffinity(0))
        self._executor = concurrent.futures.ThreadPoolExecutor(workers, thread_name_prefix="trial")
        self._futures = {
            setting.cell: self._executor.submit(self._measure, bench.trials(algorithm, setting, seeds))
            for setting in settings
        }

    @property
    def progress(self):
        return self._progress

    def result(self, cell, timeout=None):
        """The cell's measurements in order of seed. Raises UserError, and TimeoutError where `timeout` is given."""
        return self._futures[cell].result(timeout)

    def as_completed(self):
        """(cell, measurements) as cells are completed."""
        by_future = {future: cell for cell, future in self._futures.items()}
        for future in concurrent.futures.as_completed(by_future):
            yield by_future[future], future.result()

    def close(self):
        self._cancelled.set()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _measure(self, trials):
        return measure(self._bench, self._store, trials, self._cancelled, self._progress.one_more)


def measure(bench, store, trials, cancelled=None, on_trial=lambda measurement, fresh: None):
    """Measurements of these trials of one cell, from the store or made now and added to it."""
    cancelled = cancelled or threading.Event()
    found = {}
    missing = []
    for trial in trials:
        known = store.find(trial)
        if known is not None:
            found[trial.seed] = known
            on_trial(known, False)
        else:
            missing.append(trial)
    if missing:
        for measurement in _make(bench, missing, cancelled):
            store.add(measurement)
            found[measurement.trial.seed] = measurement
            on_trial(measurement, True)
    if cancelled.is_set() and len(found) < len(trials):
        raise UserError("interrupted", "run the same command again to resume")
    return [found[trial.seed] for trial in trials]


def _make(bench, trials, cancelled):
    algorithm = trials[0].scheme.algorithm
    if not bench.adapter.offers(algorithm):
        for trial in trials:
            yield Measurement(
                trial=trial, outcome=Outcome.UNSUPPORTED, message=f"{bench.adapter.name} does not offer {algorithm}"
            )
        return
    yield from bench.room.run(bench.adapter, trials, cancelled)


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


def settings(profile, cells, **overrides):
    return [specs.profile(profile, cell, **overrides) for cell in cells]

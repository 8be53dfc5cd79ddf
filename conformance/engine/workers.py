"""Make trials on workers: in other processes or on other machines, through any Executor.

To the engine, this is a room like any other. A request goes out as text, with names and trials, and measurements come
back as text. So only one function of ours has to be picklable, and a worker finds stack and kernel itself. It makes the
trials only if its stack, kernel and lab version have the digests that were asked for.
"""

import concurrent.futures
import dataclasses
import functools
import importlib
import json
import pathlib
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Protocol, cast

from conformance.engine import benches
from conformance.engine.benches import Bench, Choice
from conformance.lab.adapter import Adapter
from conformance.lab.room import Batches, handfuls
from conformance.model.errors import UserError
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: how often a request is tried before it is given up: it may be what kills its workers
_MOST_TRIES = 3
_POLL_S = 0.2


class Executor(Protocol):
    """Makes calls elsewhere: a concurrent.futures.Executor, or a scheduler's object with the same interface."""

    def submit(self, call: Callable[[str], str], argument: str, /) -> Future[str]:
        """Begin `call(argument)`, and return its Future, which concurrent.futures.wait() takes."""
        ...

    def shutdown(self, wait: bool = True) -> None:
        """Accept no more calls; return at once unless `wait`."""


def factory(text: str) -> Callable[[], Executor]:
    """Return the function named by `module:function`, importing from the working directory, too. Raise UserError."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise UserError(f"--executor {text!r} is not of the form module:function")
    here = str(pathlib.Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        named = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module does
        why = f"--executor {text}: {type(error).__name__}: {error}"
        raise UserError(why, "name a module that Python can find, and a function in it") from None
    if not callable(named):
        raise UserError(f"--executor {text}: {name} is not a function")
    return cast("Callable[[], Executor]", named)


class Executors:
    """Makes an Executor when one is needed, and a new one when it breaks, as a process pool does if a process dies."""

    def __init__(self, make: Callable[[], Executor]) -> None:
        self._make, self._lock, self._closed = make, threading.Lock(), False
        self._current: Executor | None = None

    def submit(self, call: Callable[[str], str], argument: str) -> tuple[Future[str], Executor]:
        """Return (the Future of a call, the executor that got it). Raise whatever the executor raises, or UserError."""
        with self._lock:
            if self._closed:
                raise UserError("interrupted", "run the same command again to resume")
            if self._current is None:
                self._current = self._made()
            executor = self._current
        try:
            return executor.submit(call, argument), executor
        except concurrent.futures.BrokenExecutor:
            self.renew(executor)
            raise

    def _made(self) -> Executor:
        """Return the executor that the user's function makes. Raise UserError if it makes none."""
        try:
            executor = self._make()
        except Exception as error:  # whatever it does
            why = f"--executor: its function failed: {type(error).__name__}: {error}"
            raise UserError(why, "name a function that returns an executor and takes no argument") from None
        if not callable(getattr(executor, "submit", None)):
            why = f"--executor: its function returned {type(executor).__name__}, which has no submit()"
            raise UserError(why, "name a function that returns an executor, such as a process pool")
        return executor

    def renew(self, broken: Executor) -> None:
        with self._lock:
            if self._current is broken:
                self._current = None
        broken.shutdown(wait=False)

    def close(self) -> None:
        """Shut the current executor down without waiting for its calls."""
        with self._lock:
            executor, self._current, self._closed = self._current, None, True
        if executor is not None:
            executor.shutdown(wait=False)


class WorkerRoom:
    """Runs trials on workers. `choice`: the names by which workers look up stack and kernel."""

    def __init__(self, choice: Choice, executors: Executors) -> None:
        self._choice, self._executors = choice, executors

    def run(self, adapter: Adapter, batches: Batches, cancelled: threading.Event) -> Iterator[Measurement]:
        """Yield one Measurement for each trial, several cells at once; stop when `cancelled` is set.

        If a worker dies or its answer is invalid, the request is tried again, three times in all; after that, its
        trials are errors. Raise UserError if a worker has another stack, kernel or version of the suite.
        """
        for handful in handfuls(batches):
            if not cancelled.is_set():
                yield from self._run(handful, cancelled)

    def _run(self, batches: Sequence[Sequence[Trial]], cancelled: threading.Event) -> Iterator[Measurement]:
        trials = [trial for batch in batches for trial in batch]
        request = json.dumps(
            {
                "choice": dataclasses.asdict(self._choice),
                "batches": [[trial.to_json() for trial in batch] for batch in batches],
            }
        )
        why = ""
        for _ in range(_MOST_TRIES):
            try:
                answer = self._ask(request, cancelled)
                if answer is None:
                    return
                yield from _read(answer, trials)
                return
            except UserError:
                raise
            except Exception as error:  # whatever a scheduler raises for a worker that is gone
                why = f"{type(error).__name__}: {error}"
        why = "".join(c if c.isprintable() else " " for c in why)[:200]
        for trial in trials:
            message = f"{_MOST_TRIES} workers failed while they made these trials: {why}"
            yield Measurement(trial=trial, outcome=Outcome.ERROR, message=message)

    def _ask(self, request: str, cancelled: threading.Event) -> str | None:
        """Return the worker's answer, or None if `cancelled` was set first."""
        future, executor = self._executors.submit(work, request)
        while not cancelled.is_set():
            if concurrent.futures.wait([future], _POLL_S).done:
                break
        else:
            future.cancel()
            return None
        try:
            return future.result()
        except concurrent.futures.BrokenExecutor:
            self._executors.renew(executor)
            raise


def _read(answer: str, trials: list[Trial]) -> Iterable[Measurement]:
    data = json.loads(answer)
    if "mistake" in data:
        raise UserError(data["mistake"])
    measurements = {m.trial: m for m in map(Measurement.from_json, data["measurements"])}
    if list(measurements) != trials:
        raise ValueError(f"{len(measurements)} measurements for {len(trials)} trials")
    return measurements.values()


def work(request: str) -> str:
    """Make the trials of a request, in order; this runs on a worker. Request and answer are JSON."""
    job = json.loads(request)
    batches = [[Trial.from_json(trial) for trial in batch] for batch in job["batches"]]
    try:
        bench = _bench_for(json.dumps(job["choice"], sort_keys=True), batches[0][0])
        room = bench.place(batches[0][0].scheme.algorithm).room
        assert room is not None  # its kernel is the one that was asked for
        measurements = {m.trial: m for m in room.run(bench.adapter, batches, threading.Event())}
    except UserError as error:
        return json.dumps({"mistake": f"worker on {platform.node()}: {error}"})
    return json.dumps({"measurements": [measurements[trial].to_json() for batch in batches for trial in batch]})


@functools.lru_cache(maxsize=16)
def _bench(choice: str) -> Bench:
    """Find a bench. It is cached on each worker, because describing a stack and hashing its files takes a while."""
    return benches.find(benches.Choice(**json.loads(choice)))


def _bench_for(choice: str, trial: Trial) -> Bench:
    """Return the bench that makes this trial. If a working tree has changed since it was found, find it again."""
    try:
        _check(_bench(choice), trial)
    except UserError:
        _bench.cache_clear()
        _check(_bench(choice), trial)
    return _bench(choice)


def _check(bench: Bench, trial: Trial) -> None:
    """Raise UserError if this worker would measure something other than what was asked for."""
    mine = bench.scheme(trial.scheme.algorithm)
    for what, here, requested in (
        ("stack", mine.stack_digest, trial.scheme.stack_digest),
        ("kernel", mine.kernel_digest, trial.scheme.kernel_digest),
        ("version of the suite (lab)", bench.lab_digest, trial.lab_digest),
    ):
        if here != requested:
            raise UserError(
                f"its {what} has the digest {here or 'none'}, but {requested} was requested",
                "install the same suite, stacks and kernels on all workers",
            )

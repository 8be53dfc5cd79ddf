"""One core for each guest, machine-wide.

A guest is several host processes that hand control to each other at every system call; on one core that
costs a quarter of what it costs across two (14 against 55 microseconds a call). Each guest is therefore
pinned, and each core is lent to one guest at a time, across processes: a lock file for each core.

The run that waits first takes the lock of the queue, and keeps it until a core is free: else a run that gives a core
back and at once asks again would often be served before others that have waited for minutes.
"""

import contextlib
import fcntl
import os
import pathlib
import threading
import time
from collections.abc import Iterator, Mapping
from typing import IO, TypeVar

from conformance.model.errors import UserError
from conformance.support import paths

_POLL_S = 0.02
_Key = TypeVar("_Key")


@contextlib.contextmanager
def one_core(cancelled: threading.Event | None = None) -> Iterator[int]:
    """Hold a core (its number) for the time of the block; wait until one is free.

    Raises UserError where `cancelled` (an Event) is set first, and OSError where locks cannot be made.
    """
    cores = sorted(os.sched_getaffinity(0))
    folder = paths.cache("cores")
    folder.mkdir(parents=True, exist_ok=True)
    with _first_free({None: folder / "queue.lock"}, cancelled):
        lent = _first_free({core: folder / f"core{core}.lock" for core in cores}, cancelled)
    with lent as core:
        yield core


def others_wait() -> bool:
    """Return whether somebody on this machine waits for a core. Raises OSError where locks cannot be made."""
    with open(paths.cache("cores") / "queue.lock", "w") as queue:
        try:
            fcntl.flock(queue, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _first_free(
    files: Mapping[_Key, pathlib.Path], cancelled: threading.Event | None
) -> contextlib.AbstractContextManager[_Key]:
    """Wait for the first of these lock files that is free, and return a context that holds it and gives its key.

    Raises UserError and OSError as one_core() does.
    """
    while cancelled is None or not cancelled.is_set():
        for key, file in files.items():
            lock = open(file, "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return _held(lock, key)
            except BlockingIOError:
                lock.close()
        time.sleep(_POLL_S)
    raise UserError("interrupted while waiting for a core")


@contextlib.contextmanager
def _held(lock: IO[str], key: _Key) -> Iterator[_Key]:
    with lock:
        yield key

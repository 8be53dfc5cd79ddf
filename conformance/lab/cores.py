"""One core for each guest, machine-wide.

A guest is several host processes that hand control to each other at every system call; on one core that
costs a quarter of what it costs across two (14 against 55 microseconds a call). Each guest is therefore
pinned, and each core is lent to one guest at a time, across processes: a lock file for each core.
"""

import contextlib
import fcntl
import os
import time

from conformance import paths
from conformance.model.errors import UserError


@contextlib.contextmanager
def one_core(cancelled=None):
    """Hold a core (its number) for the time of the block; waits until one is free.

    Raises UserError where `cancelled` (an Event) is set first, and OSError where locks cannot be made.
    """
    cores = sorted(os.sched_getaffinity(0))
    folder = paths.cache("cores")
    folder.mkdir(parents=True, exist_ok=True)
    while cancelled is None or not cancelled.is_set():
        for core in cores:
            lock = open(folder / f"core{core}.lock", "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            try:
                yield core
            finally:
                lock.close()
            return
        time.sleep(0.02)
    raise UserError("interrupted while waiting for a core")

"""Lend each guest a core of its own, across all runs that share a cache.

A guest is several host processes that hand control to each other at every system call. On one core, that costs a
quarter of what it costs across two (14 instead of 55 microseconds a call). Each guest is therefore pinned to a core.
Each core has a lock file, so that it is lent to one guest at a time, across processes.

Containers share neither locks nor process numbers, but they see the same /proc/stat. So the free core that was idlest
just now is lent first. Two runs that ask within a tenth of a second get the same core. A run that has a core therefore
looks again after a random time, and moves to another core if another run uses this one by then.

The run that waits first takes the lock of the queue, and keeps it until a core is free. Otherwise, a run that gives a
core back and at once asks again would often be served before others that have waited for minutes. Runs that may use
other cores (taskset, a cpuset) have another queue: they do not wait for what they could not use. A run makes room for
those that wait in any queue for a core that it may use, too.
"""

import contextlib
import fcntl
import os
import pathlib
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TypeVar

from conformance.model.errors import UserError
from conformance.support import limits, paths

_POLL_S = 0.02
#: how long a run waits for others before it says so, in s
_SILENT_S = 5.0
#: for how long the idleness of cores is measured, and for how long the result is used, in s
_LOOK_S, _BELIEVE_S = 0.1, 1.0
#: a core counts as used by another run if some other free core has been idle for more than this many times as long
_IDLER = 2
_Key = TypeVar("_Key")


class Waiting:
    """What is said, once, when this run waits for cores that others hold; pytest's plugin replaces `say`."""

    say: Callable[[str], object] = staticmethod(lambda line: print(line, file=sys.stderr))
    was_said = False


@contextlib.contextmanager
def one_core(cancelled: threading.Event | None = None) -> Iterator[int]:
    """Hold a core (its number) during the block; wait until one is free.

    Raises UserError if `cancelled` is set first, and OSError if locks cannot be made.
    """
    folder = _folder()
    with _first_free({None: _queue(folder)}, cancelled):
        lent = _first_free({core: _lock(folder, core) for core in _idlest_first()}, cancelled)
    with contextlib.ExitStack() as held:
        core = held.enter_context(lent)
        if (other := _idler(folder, core)) is not None:
            held.pop_all().close()  # ours is given back only once the other is held
            core = held.enter_context(other)
        yield core


def others_wait() -> bool:
    """Return whether another run waits for a core that this one may use. Raises OSError if locks cannot be made."""
    ours = _mask(limits.cores())
    for queue in _folder().glob("queue-*.lock"):
        if int(queue.stem.removeprefix("queue-"), 16) & ours:
            if (held := _held_if_free(None, queue)) is None:
                return True
            with held:
                pass
    return False


def _folder() -> pathlib.Path:
    """Return a folder for the locks: in the cache, or in the temporary folder if the cache is not writable."""
    folder = paths.cache("cores")
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        folder = pathlib.Path(tempfile.gettempdir(), f"cc-conformance-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid() or folder.is_symlink():
            raise UserError(f"{folder} is not yours", "set TMPDIR or CC_CONFORMANCE_CACHE to a folder of your own")
    return folder


def _lock(folder: pathlib.Path, core: int) -> pathlib.Path:
    return folder / f"core{core}.lock"


def _queue(folder: pathlib.Path) -> pathlib.Path:
    """Return the lock of the queue for the cores that guests of this run may use, which its name has as a bit mask."""
    return folder / f"queue-{_mask(limits.cores()):x}.lock"


def _mask(cores: Iterable[int]) -> int:
    return sum(1 << core for core in cores)


class _Idleness:
    """The order of cores by recent idleness. Only the run that has the lock of the queue uses it."""

    measured_s = -_BELIEVE_S
    order: tuple[int, ...] = ()


def _idlest_first() -> list[int]:
    """Return the cores that guests may run on, the idlest first; equally idle ones in random order."""
    cores = limits.cores()
    if len(cores) == 1:
        return cores
    if time.monotonic() - _Idleness.measured_s > _BELIEVE_S or sorted(_Idleness.order) != cores:
        idle = _look(cores)
        _Idleness.order = tuple(sorted(cores, key=lambda core: (-idle[core], random.random())))
        _Idleness.measured_s = time.monotonic()
    return list(_Idleness.order)


def _idler(folder: pathlib.Path, core: int) -> contextlib.AbstractContextManager[int] | None:
    """Measure again, and return a context that holds a much idler core than this one; None if none is free.

    The time of the measurement is random, so that of two runs on one core, usually only one sees the other at work.
    """
    cores = limits.cores()
    if len(cores) == 1:
        return None
    time.sleep(random.uniform(0, _LOOK_S))
    idle = _look(cores)
    better = [other for other in cores if idle[other] > _IDLER * idle[core]]
    held = (_held_if_free(other, _lock(folder, other)) for other in sorted(better, key=lambda other: -idle[other]))
    return next(filter(None, held), None)


def _look(cores: Sequence[int]) -> dict[int, int]:
    """Return {core: clock ticks for which it was idle during a measurement}."""
    before = _idle_ticks()
    time.sleep(_LOOK_S)
    after = _idle_ticks()
    return {core: after.get(core, 0) - before.get(core, 0) for core in cores}


def _idle_ticks(stat: pathlib.Path = pathlib.Path("/proc/stat")) -> dict[int, int]:
    """Return {core: clock ticks for which it was idle, or waiting for disks}; {} if that is hidden."""
    try:
        lines = stat.read_text().splitlines()
    except OSError:
        return {}
    columns = [line.split() for line in lines if line.startswith("cpu") and not line.startswith("cpu ")]
    return {int(words[0].removeprefix("cpu")): int(words[4]) + int(words[5]) for words in columns}


def _first_free(
    files: Mapping[_Key, pathlib.Path], cancelled: threading.Event | None
) -> contextlib.AbstractContextManager[_Key]:
    """Wait until one of these lock files is free, and return a context that holds it and gives its key.

    Raises UserError and OSError as one_core() does.
    """
    began_s = time.monotonic()
    while cancelled is None or not cancelled.is_set():
        for key, file in files.items():
            if held := _held_if_free(key, file):
                return held
        if not Waiting.was_said and time.monotonic() - began_s > _SILENT_S:
            _say_who_holds_cores()
        time.sleep(_POLL_S)
    raise UserError("interrupted while waiting for a core")


def _say_who_holds_cores(locks: pathlib.Path = pathlib.Path("/proc/locks")) -> None:
    """Say which other processes hold the cores, unless this process holds one itself.

    A process in another container has no number here (proc_locks(5) leaves it out).
    """
    files = (_lock(_folder(), core) for core in limits.cores())
    inodes = {str(file.stat().st_ino) for file in files if file.exists()}
    rows = [line.split() for line in locks.read_text().splitlines()]
    holders = {int(row[4]) for row in rows if row[1] == "FLOCK" and row[5].split(":")[-1] in inodes}
    if os.getpid() not in holders:
        Waiting.was_said = True
        who = " or ".join(map(str, sorted(holders)))
        Waiting.say(f"waiting for a core that {f'process {who}' if who else 'another run'} holds")


def _held_if_free(key: _Key, file: pathlib.Path) -> contextlib.AbstractContextManager[_Key] | None:
    lock = open(file, "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _held(lock, key)
    except BlockingIOError:
        lock.close()
        return None


@contextlib.contextmanager
def _held(lock: IO[str], key: _Key) -> Iterator[_Key]:
    with lock:
        yield key

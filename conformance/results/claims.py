"""Claim the trials that a run is measuring, so that another run with the same results file does not measure them, too.

A claim locks one byte far beyond the end of the results file, at an offset that the trial's key decides. The lock
belongs to an open file (fcntl(2), open file description locks), so it ends with its process, however that ends. A
process that is forked from it, as workers of an executor may be, would hold the lock for longer, so it closes the file.
"""

import contextlib
import fcntl
import os
import pathlib
import struct
from collections.abc import Iterator

from conformance.support.files import errors_as

#: format of struct flock on 64-bit Linux: type, whence, start, length, process
_FLOCK = "hhxxxxqqixxxx"
#: the lowest offset of a claim, in bytes: no results file is that long
_BEYOND = 1 << 61
#: file descriptors of the claims that this process holds
_held: set[int] = set()


def _close_all() -> None:
    while _held:
        os.close(_held.pop())


os.register_at_fork(after_in_child=_close_all)


def _lock(fd: int, kind: int, key: str) -> None:
    start = _BEYOND + int(key, 16) % _BEYOND
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, start, 1, 0))


@contextlib.contextmanager
def claim(path: pathlib.Path, key: str) -> Iterator[bool]:
    """Hold the claim to a hexadecimal key during the block; yield False if another run holds it.

    A file system without such locks grants every claim, so two runs then measure the same trials twice. A results file
    that was removed is created again. Raises UserError if it cannot be opened.
    """
    with errors_as(f"cannot open results {path}", "choose another --results"):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    _held.add(fd)
    try:
        try:
            _lock(fd, fcntl.F_WRLCK, key)
        except BlockingIOError:
            yield False
        except OSError:
            yield True
        else:
            yield True
    finally:
        if fd in _held:  # else this is a process that was forked meanwhile
            _held.remove(fd)
            os.close(fd)

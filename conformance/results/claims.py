"""Claims: what a run is measuring now, so that another run with the same results file does not measure it, too.

A claim is a lock on one byte of the results file, far beyond its end, whose place a trial's key decides. It belongs to
an open file (fcntl(2), open file description locks), so it ends with its process, however that ends.
"""

import contextlib
import fcntl
import os
import pathlib
import struct
from collections.abc import Iterator

from conformance.model.errors import UserError

#: struct flock of a 64-bit Linux: type, whence, start, length, process
_FLOCK = "hhxxxxqqixxxx"
#: no results file is as long as this many bytes
_BEYOND = 1 << 61


def _lock(fd: int, kind: int, key: str) -> None:
    start = _BEYOND + int(key, 16) % _BEYOND
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, start, 1, 0))


@contextlib.contextmanager
def claim(path: pathlib.Path, key: str) -> Iterator[bool]:
    """Hold the claim to a hexadecimal key for the time of the block; give False where somebody else holds it.

    A file system without such locks gives everybody every claim: then two runs measure the same trials twice. A file
    that was removed is made anew. Raises UserError where it cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"cannot open results {path}: {error.strerror}", "choose another --results") from None
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
        os.close(fd)

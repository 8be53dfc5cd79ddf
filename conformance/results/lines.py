"""Append lines to files that several processes share, and recognize lines that a crash or a full disk cut short."""

import contextlib
import errno
import fcntl
import json
import os
import pathlib
from collections.abc import Iterator
from typing import BinaryIO

from conformance.model.errors import UserError

#: the most bytes of a line; that of a trial with a million packets has 8 MB
LONGEST = 10_000_000


def append(path: pathlib.Path, line: bytes) -> None:
    """Append a line, after a newline if the last line was cut short. Raises OSError, leaving what was there intact."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            line = b"\n" + line
        if os.write(fd, line) != len(line):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)


def each(file: BinaryIO, where: object, number: int = 1) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line) of the lines from here on; the first has this number. Raises UserError, which names `where`,
    if a line is longer than LONGEST.
    """
    while line := file.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise UserError(f"{where}:{number}: the line is longer than {LONGEST / 1e6:g} MB")
        yield number, line
        number += 1


def is_beginning(line: bytes, beginning: bytes) -> bool:
    """Return whether a line begins with `beginning`, or is so short that `beginning` begins with it."""
    return line.startswith(beginning) or beginning.startswith(line)


def cut_short(line: bytes, beginning: bytes) -> bool:
    """Return whether a line is the beginning of one that was written only in part. An empty line is not."""
    line = line.rstrip()
    if not line.startswith(beginning):
        return bool(line) and is_beginning(line, beginning)
    if not line.endswith(b"}"):
        return True
    if line.count(b"{") <= line.count(b"}"):
        return False
    # Either the line was cut after an object within it, or a string in it has an opening brace.
    try:
        json.loads(line)
    except ValueError:
        return True
    except RecursionError:
        pass
    return False

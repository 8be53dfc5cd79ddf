"""Results files that were compressed for keeping (.xz, .gz): read like any other, never added to."""

import atexit
import functools
import gzip
import lzma
import os
import pathlib
import shutil
import tempfile
import zlib
from collections.abc import Callable
from typing import BinaryIO, cast

from conformance.model.errors import UserError
from conformance.support import files

_OPENERS: dict[str, Callable[[pathlib.Path], BinaryIO]] = {
    ".xz": lambda path: cast(BinaryIO, lzma.open(path)),
    ".gz": lambda path: cast(BinaryIO, gzip.open(path)),
}


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether the file's name says that it is compressed."""
    return pathlib.Path(path).suffix in _OPENERS


def open_plain(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a results file for reading bytes, decompressed where its name says that it is compressed.

    The file can be sought in: lines are read again from where they begin, in any order, which a compressed file would
    answer by decompressing all that comes before. Raises OSError, and UserError where the file is damaged.
    """
    path = pathlib.Path(path)
    if not is_compressed(path):
        return open(path, "rb")
    about = path.stat()
    return open(_copy(path, about.st_mtime_ns, about.st_size).name, "rb")


@functools.lru_cache(maxsize=64)
def _copy(path: pathlib.Path, changed_ns: int, size: int) -> "tempfile._TemporaryFileWrapper[bytes]":
    """Return the decompressed file, which is removed when nobody remembers it any more."""
    copy = tempfile.NamedTemporaryFile(prefix="conformance-results-", dir=files.temp_folder())
    try:
        with _OPENERS[path.suffix](path) as packed:
            shutil.copyfileobj(packed, copy)
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        copy.close()
        raise UserError(f"cannot read results {path}: it is damaged, or no {path.suffix} file: {error}") from None
    copy.flush()
    return copy


# At the interpreter's end, before it forgets the modules that removing them takes.
atexit.register(_copy.cache_clear)


def compress(lines: bytes) -> bytes:
    """Return the lines as an .xz file's content; the same lines make the same bytes."""
    return lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME)

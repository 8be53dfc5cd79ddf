"""Read results files that were compressed for keeping (.xz, .gz). Lines are never added to them."""

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
    """Open a results file for reading bytes, decompressed if its name says that it is compressed.

    The file that is returned can be read from any offset, because lines are read again in any order. For this, a
    compressed file would have to decompress everything before the offset each time. Raises OSError, and UserError if
    the file is damaged.
    """
    path = pathlib.Path(path)
    if not is_compressed(path):
        return open(path, "rb")
    about = path.stat()
    return open(_copy(path, about.st_mtime_ns, about.st_size).name, "rb")


@functools.lru_cache(maxsize=64)
def _copy(path: pathlib.Path, changed_ns: int, size: int) -> "tempfile._TemporaryFileWrapper[bytes]":
    """Return a decompressed copy of the file, which is deleted when this function's cache drops it."""
    copy = tempfile.NamedTemporaryFile(prefix="conformance-results-", dir=files.temp_folder())
    try:
        with _OPENERS[path.suffix](path) as packed:
            shutil.copyfileobj(packed, copy)
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        copy.close()
        raise UserError(f"cannot read results {path}: it is damaged, or not in {path.suffix} format: {error}") from None
    copy.flush()
    return copy


# Delete the copies at the interpreter's end, before it unloads the modules that this needs.
atexit.register(_copy.cache_clear)


def compress(lines: bytes) -> bytes:
    """Return the lines as an .xz file's content; the same lines make the same bytes."""
    return lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME)

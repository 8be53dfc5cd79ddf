"""Read results files that were compressed for keeping (.xz, .gz). Lines are never added to them."""

import functools
import gzip
import lzma
import os
import pathlib
import tempfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from conformance.model.errors import UserError
from conformance.results import lines
from conformance.support import files

#: A file holds at most one line of the longest kind, or this many times its own size. Lines of results shrink to
#: between a twentieth and a tenth.
_MOST_TIMES = 200
#: the most bytes of memory to decompress with; the largest preset of `xz` takes 65 MB
_MEMORY = 100_000_000
_BLOCK = 1 << 20


def _xz(path: pathlib.Path) -> Iterator[bytes]:
    """Yield what an .xz file holds. The library's own file objects allow a file to ask for 4 GB of memory."""
    with open(path, "rb") as packed:
        stream = None
        while block := packed.read(_BLOCK):
            while block := block if stream else block.lstrip(b"\0"):  # zeros may stand between streams
                stream = stream or lzma.LZMADecompressor(memlimit=_MEMORY)
                yield stream.decompress(block, _BLOCK)
                while not (stream.eof or stream.needs_input):
                    yield stream.decompress(b"", _BLOCK)
                block, stream = (stream.unused_data, None) if stream.eof else (b"", stream)
        if stream:
            raise EOFError("it ends early")


def _gz(path: pathlib.Path) -> Iterator[bytes]:
    with gzip.open(path) as unpacked:
        yield from iter(lambda: unpacked.read(_BLOCK), b"")


_UNPACKED: dict[str, Callable[[pathlib.Path], Iterator[bytes]]] = {".xz": _xz, ".gz": _gz}


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether the file's name says that it is compressed."""
    return pathlib.Path(path).suffix in _UNPACKED


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
    # Opened anew, so that each reader has an offset of its own.
    return open(f"/proc/self/fd/{_copy(path, about.st_mtime_ns, about.st_size).fileno()}", "rb")


@functools.lru_cache(maxsize=64)
def _copy(path: pathlib.Path, changed_ns: int, size: int) -> BinaryIO:
    """Return a decompressed copy of the file, without a name: nothing is left of it when its process ends, even when
    that is killed.
    """
    most, held = max(lines.LONGEST, _MOST_TIMES * size), 0
    copy = tempfile.TemporaryFile(dir=files.temp_folder())
    try:
        for block in _UNPACKED[path.suffix](path):
            held += len(block)
            if held > most:
                why = f"cannot read results {path}: {size} bytes hold more than {most / 1e6:.0f} MB"
                raise UserError(why, "decompress it if you trust it")
            copy.write(block)
    except (lzma.LZMAError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError(f"cannot read results {path}: it is damaged, or not in {path.suffix} format: {error}") from None
    copy.flush()
    return copy


def compress(lines: bytes) -> bytes:
    """Return the lines as an .xz file's content; the same lines make the same bytes."""
    return lzma.compress(lines, preset=9 | lzma.PRESET_EXTREME)

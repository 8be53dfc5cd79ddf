"""Compute digests of files, and remember those of large files until a file's metadata changes.

The folder of a user's own build is digested each time that a command starts. Such folders can hold hundreds of MB,
because build tools keep intermediate files in them.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import time

from conformance.model.errors import UserError
from conformance.support import files

#: files smaller than this many bytes are hashed faster than they are looked up
_LARGE_BYTES = 1 << 20
#: one tick of a file system's clock, at most 2 s: a file that changed less than this ago may change again unnoticed
_TICK_NS = 2_000_000_000


class Contents:
    """Digests of files, remembered in the file `place`. keep() writes only those that this object was asked for."""

    def __init__(self, place: pathlib.Path) -> None:
        self._place = place
        self._before = _read(place)
        self._now: dict[str, str] = {}

    def digest(self, path: pathlib.Path) -> str:
        """Return the SHA-256 of a file's content. Raises OSError."""
        with open(path, "rb") as f:
            about = os.fstat(f.fileno())
            if about.st_size < _LARGE_BYTES:
                return hashlib.file_digest(f, "sha256").hexdigest()
            # A program can set a file's mtime, but not its ctime, unless it sets the machine's clock.
            key = f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
            settled = max(about.st_mtime_ns, about.st_ctime_ns) < time.time_ns() - _TICK_NS
            content_digest = self._before.get(key) or hashlib.file_digest(f, "sha256").hexdigest()
            if settled and os.fstat(f.fileno()).st_ctime_ns == about.st_ctime_ns:
                self._now[key] = content_digest
            return content_digest

    def keep(self) -> None:
        """Write the digests that were asked for to `place`, if that is writable."""
        if self._now != self._before:
            with contextlib.suppress(UserError):
                files.write(self._place, json.dumps(self._now))


def _read(place: pathlib.Path) -> dict[str, str]:
    try:
        data = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}

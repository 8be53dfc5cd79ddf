"""Digests of what files hold. Those of large files are remembered, as long as nothing says that a file changed.

The folder of a user's own build is digested each time that a command starts. Such folders can hold hundreds of MB, as
build tools keep what they made on the way.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import time

from conformance.model.errors import UserError
from conformance.support import files

#: what takes less is read faster than it is looked up
_LARGE_BYTES = 1 << 20
#: a file that was changed just now may change once more within one tick of its file system's clock: 2 s at most
_TICK_NS = 2_000_000_000


class Contents:
    """Digests of files, remembered in the file `place`; keep() writes there what was asked for, and nothing else."""

    def __init__(self, place: pathlib.Path) -> None:
        self._place = place
        self._before = _read(place)
        self._now: dict[str, str] = {}

    def digest(self, path: pathlib.Path) -> str:
        """Return the SHA-256 of what a file holds. Raises OSError."""
        with open(path, "rb") as f:
            about = os.fstat(f.fileno())
            if about.st_size < _LARGE_BYTES:
                return hashlib.file_digest(f, "sha256").hexdigest()
            # A program can set a file's mtime, but not its ctime, unless it sets the machine's clock.
            key = f"{about.st_dev} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}"
            settled = max(about.st_mtime_ns, about.st_ctime_ns) < time.time_ns() - _TICK_NS
            found = self._before.get(key) or hashlib.file_digest(f, "sha256").hexdigest()
            if settled and os.fstat(f.fileno()).st_ctime_ns == about.st_ctime_ns:
                self._now[key] = found
            return found

    def keep(self) -> None:
        """Remember what was asked for, where the place can be written to."""
        if self._now != self._before:
            with contextlib.suppress(UserError):
                files.write(self._place, json.dumps(self._now))


def _read(place: pathlib.Path) -> dict[str, str]:
    try:
        data = json.loads(place.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)} if isinstance(data, dict) else {}

"""Make scratch folders on the host's disk, which hold for example the job and the events of a guest.

Each folder is locked (flock(2)) as long as its process lives, so that a later process can remove what a killed one left
behind. A process number in its name could not tell that: containers that share a folder for temporary files do not
see each other's processes.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from conformance.model.errors import UserError
from conformance.support import files

_PREFIX = "conformance-scratch-"


@contextlib.contextmanager
def disk_errors() -> Iterator[None]:
    """Turn the errors of a full or read-only disk under the scratch folder or the cache into UserErrors."""
    try:
        yield
    except OSError as error:
        where = error.filename or files.temp_folder()
        raise UserError(f"cannot write {where}: {error.strerror or error}", "free space there, or set TMPDIR") from None


@contextlib.contextmanager
def folder() -> Iterator[pathlib.Path]:
    """Yield a temporary folder that guests may write to, and delete it. Raises UserError if none can be made."""
    place = files.temp_folder()
    _sweep(place)
    try:
        path, lock = _locked(place)
    except OSError as error:
        raise UserError(
            f"cannot make a scratch folder in {place}: {error.strerror}", "free space or set TMPDIR"
        ) from None
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _sweep(place: str) -> None:
    """Delete the folders of processes that have ended."""
    for old in pathlib.Path(place).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # it is locked, another user's or gone, or there are no locks here
            lock = os.open(old, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(place: str) -> tuple[pathlib.Path, int]:
    """Return a new folder and the descriptor that locks it. Raises OSError.

    Programs that this process executes do not inherit the descriptor.
    """
    while True:
        path = pathlib.Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))
        # Until it is locked, another process may take it for one that was left behind.
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            with contextlib.suppress(OSError):  # without locks, no process deletes another's folder
                fcntl.flock(lock, fcntl.LOCK_EX)
            if path.exists():
                return path, lock
            os.close(lock)

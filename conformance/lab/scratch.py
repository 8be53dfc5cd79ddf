"""Make scratch folders on the host's disk, one for each guest, which hold its job and its events."""

import contextlib
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator

from conformance.model.errors import UserError
from conformance.support import files


@contextlib.contextmanager
def disk_errors() -> Iterator[None]:
    """Turn the errors of a full or read-only disk under the scratch folder or the cache into UserErrors."""
    try:
        yield
    except OSError as error:
        where = error.filename or files.temp_folder()
        raise UserError(f"cannot write {where}: {error.strerror or error}", "free space there, or set TMPDIR") from None


def folder() -> "_Scratch":
    """Return, as a context, a temporary folder that guests write to. Raises UserError if none can be made."""
    try:
        return _Scratch()
    except OSError as error:
        raise UserError(
            f"cannot make a scratch folder in {files.temp_folder()}: {error.strerror}", "free space or set TMPDIR"
        ) from None


class _Scratch:
    """A folder named after this process, so that a later process can remove what a killed one left."""

    def __init__(self) -> None:
        place = files.temp_folder()
        for old in pathlib.Path(place).glob("conformance-*-*"):
            owner = old.name.split("-")[1]
            if owner.isdigit() and not pathlib.Path("/proc", owner).exists():
                shutil.rmtree(old, ignore_errors=True)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=f"conformance-{os.getpid()}-", dir=place))
        self.path.chmod(0o755)

    def __enter__(self) -> pathlib.Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

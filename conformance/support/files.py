"""Write files whole or not at all: after an interrupt or on a full disk, the previous content is still there."""

import contextlib
import errno
import os
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import BinaryIO

from conformance.model.errors import UserError

OTHER_FOLDER = "name another folder with --out"
_ASIDE = ".new"
#: errors of a folder in which no file can be created, although existing ones may be writable
_TAKES_NO_FILE = (errno.EACCES, errno.EPERM, errno.EROFS)


def temp_folder() -> str:
    """Return the folder for temporary files. Raises UserError if there is none."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        raise UserError(
            "no folder for temporary files is writable", "set TMPDIR to one, in a container with --tmpfs /tmp"
        ) from None


def write(target: pathlib.Path | str, content: bytes | str, mend: str | None = None) -> pathlib.Path:
    """Replace a file's content by bytes or text in one step, creating its folder; return its path. Raises UserError.

    If the file is a symbolic link, its target is replaced and the link stays. Anything that is not a regular file (a
    pipe, /dev/null) is written to directly.
    """
    with replacing(target, mend) as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return pathlib.Path(target)


@contextlib.contextmanager
def replacing(target: pathlib.Path | str, mend: str | None = None) -> Iterator[BinaryIO]:
    """Open a new file for writing bytes, which replaces `target` if the block succeeds. Raises UserError."""
    target = pathlib.Path(target)
    with errors(target, mend):
        if target.exists() and not target.is_file():
            with open(target, "wb") as f:
                yield f
            return
        place = pathlib.Path(os.path.realpath(target))
        if place.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = _aside(place.parent)
        try:
            f = open(aside, "xb")
        except OSError as error:
            if error.errno not in _TAKES_NO_FILE or not place.exists():
                raise
            # The existing file can be overwritten, but only once its whole new content is known.
            with os.fdopen(os.open(place, os.O_WRONLY), "wb") as old, tempfile.TemporaryFile(dir=temp_folder()) as new:
                yield new
                new.seek(0)
                shutil.copyfileobj(new, old)
                old.truncate()
            return
        try:
            with f:
                if place.exists():
                    _make_alike(aside, place.stat())
                yield f
            try:
                aside.replace(place)
            except OSError:  # the file is a mount point itself, as in containers
                shutil.copyfile(aside, place)
        finally:
            aside.unlink(missing_ok=True)


def _make_alike(aside: pathlib.Path, about: os.stat_result) -> None:
    with contextlib.suppress(OSError):
        os.chown(aside, about.st_uid, about.st_gid)
    aside.chmod(about.st_mode & 0o7777)


def _aside(where: pathlib.Path) -> pathlib.Path:
    return where / f".{uuid.uuid4().hex}{_ASIDE}"


def is_aside(path: pathlib.Path) -> bool:
    """Return whether this is a temporary file or folder that a killed run left behind."""
    return path.name.startswith(".") and path.name.endswith(_ASIDE)


@contextlib.contextmanager
def folder(target: pathlib.Path | str, mend: str | None = None) -> Iterator[pathlib.Path]:
    """Yield an empty folder and, if the block succeeds, move its files one by one to the folder `target`. Raises
    UserError.

    Files of `target` with other names stay.
    """
    target = pathlib.Path(target)
    with errors(target, mend):
        target.mkdir(parents=True, exist_ok=True)
        aside = _aside(target)
        aside.mkdir()
        try:
            yield aside
            for path in sorted(p for p in aside.rglob("*") if p.is_file()):
                place = target / path.relative_to(aside)
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def check_empty(target: pathlib.Path | str) -> None:
    """Raise UserError unless `target` is empty or does not exist: files kept there are never mixed with others."""
    target = pathlib.Path(target)
    with errors(target, OTHER_FOLDER):
        if target.exists() and not all(map(is_aside, target.iterdir())):
            raise UserError(f"{target} is not empty", OTHER_FOLDER)


def check_writable(target: pathlib.Path | str, mend: str | None = None) -> None:
    """Create the folder `target` and check that files can be written to it, before anything is measured. Raises
    UserError.
    """
    with folder(target, mend):
        pass


@contextlib.contextmanager
def errors_as(what: object, mend: str | None = None) -> Iterator[None]:
    """Raise OSErrors of the block as UserErrors that begin with `what`, because the user has to fix their causes."""
    try:
        yield
    except OSError as error:
        # shutil.Error, about a whole tree, has no message of its own but a list [(from, to, why), ...].
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        raise UserError(f"{what}: {why}", mend) from None


def errors(target: pathlib.Path | str, mend: str | None = None) -> contextlib.AbstractContextManager[None]:
    """Raise OSErrors of the block as UserErrors about `target`."""
    return errors_as(f"cannot write {target}", mend)

"""Files that we write are written whole or not at all: an interrupt or a full disk leaves what was there before."""

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
#: what the system says of a folder in which no file can be made, whereas those that are there may be written to
_TAKES_NO_FILE = (errno.EACCES, errno.EPERM, errno.EROFS)


def temp_folder() -> str:
    """Return the folder for temporary files. Raises UserError where there is none."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        raise UserError(
            "no folder for temporary files can be written to", "set TMPDIR to one, in a container with --tmpfs /tmp"
        ) from None


def write(target: pathlib.Path | str, content: bytes | str, mend: str | None = None) -> pathlib.Path:
    """Put bytes or text in a file's place in one step, making its folder; returns its path. Raises UserError.

    A link stays one: what it points to is replaced. What is no file (a pipe, /dev/null) is written to.
    """
    with replacing(target, mend) as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return pathlib.Path(target)


@contextlib.contextmanager
def replacing(target: pathlib.Path | str, mend: str | None = None) -> Iterator[BinaryIO]:
    """Open a file to write bytes to, which takes the place of `target` once all is well. Raises UserError."""
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
            # The file that is there may be written to, but only once its whole content is known.
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
            except OSError:  # a file that is a mount of its own, as containers have them
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
    """Say whether this is what a run that was killed left behind."""
    return path.name.startswith(".") and path.name.endswith(_ASIDE)


@contextlib.contextmanager
def folder(target: pathlib.Path | str, mend: str | None = None) -> Iterator[pathlib.Path]:
    """Yield a fresh folder, whose files move to the folder `target`, one by one, once all are made. Raises UserError.

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
    """Raise UserError unless `target` is an empty folder, or nothing yet: what is kept there is never mingled."""
    target = pathlib.Path(target)
    with errors(target, OTHER_FOLDER):
        if target.exists() and not all(map(is_aside, target.iterdir())):
            raise UserError(f"{target} is not empty", OTHER_FOLDER)


def check_writable(target: pathlib.Path | str, mend: str | None = None) -> None:
    """Make the folder `target`, and see that it takes what is written later: before all is measured, not after. Raises
    UserError.
    """
    with folder(target, mend):
        pass


@contextlib.contextmanager
def errors(target: pathlib.Path | str, mend: str | None = None) -> Iterator[None]:
    """Raise what a file system refuses as a UserError, as it is the user's to mend."""
    try:
        yield
    except OSError as error:
        # shutil.Error, of a whole tree, has no words of its own: [(from, to, why), ...].
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        raise UserError(f"cannot write {target}: {why}", mend) from None

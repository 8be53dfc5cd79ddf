"""What we write is written whole or not at all: an interrupt or a full disk leaves what was there before."""

import contextlib
import os
import pathlib
import shutil
import tempfile
import threading

from conformance.model.errors import UserError

OTHER_FOLDER = "name another folder with --out"


def write(target, content, mend=None):
    """Put bytes or text in a file's place in one step, making its folder; returns its path. Raises UserError.

    A link stays one: what it points to is replaced. What is no file (a pipe, /dev/null) is written to.
    """
    with replacing(target, mend) as f:
        f.write(content if isinstance(content, bytes) else content.encode("utf-8"))
    return pathlib.Path(target)


@contextlib.contextmanager
def replacing(target, mend=None):
    """A file to write bytes to, which takes the place of `target` once all is well. Raises UserError."""
    target = pathlib.Path(target)
    with errors(target, mend):
        if target.exists() and not target.is_file():
            with open(target, "wb") as f:
                yield f
            return
        place = pathlib.Path(os.path.realpath(target))
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = place.with_name(f".{os.getpid()}-{threading.get_ident()}.new")
        try:
            with open(aside, "wb") as f:
                yield f
            if place.exists():
                shutil.copymode(place, aside)
            aside.replace(place)
        finally:
            aside.unlink(missing_ok=True)


@contextlib.contextmanager
def folder(target, mend=None):
    """A fresh folder whose files are moved to the folder `target` once all of them are made. Raises UserError.

    Files of `target` with other names stay.
    """
    target = pathlib.Path(target)
    with errors(target, mend):
        target.mkdir(parents=True, exist_ok=True)
        aside = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=target))
        try:
            yield aside
            for path in sorted(p for p in aside.rglob("*") if p.is_file()):
                place = target / path.relative_to(aside)
                place.parent.mkdir(parents=True, exist_ok=True)
                path.replace(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def check_empty(target):
    """Raise UserError unless `target` is an empty folder, or nothing yet: what is kept there is never mingled."""
    target = pathlib.Path(target)
    with errors(target, OTHER_FOLDER):
        if target.exists() and any(target.iterdir()):
            raise UserError(f"{target} is not empty", OTHER_FOLDER)


@contextlib.contextmanager
def errors(target, mend=None):
    """What a file system refuses is the user's to mend. Raises UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}", mend) from None

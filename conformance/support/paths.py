"""Locate the data that ships with the suite, and the user's cache."""

import contextlib
import functools
import importlib.util
import os
import pathlib
from collections.abc import Mapping

from conformance.model.errors import UserError
from conformance.support import spelling

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
#: file that marks a folder that may be deleted (bford.info/cachedir): cargo puts it into its target folder, the suite
#: into its cache
_TAG = "CACHEDIR.TAG"
_TAG_TEXT = """Signature: 8a477f597d28d172789f06886806bc55
# This is the cache of cc-conformance. What is in it is made again when it is missing.
"""


def data(*parts: str) -> pathlib.Path:
    """Return a file or folder that ships with the suite: from the checkout, or from the installed package."""
    checkout = PACKAGE.parent
    root = checkout if (checkout / "zones").is_dir() else PACKAGE / "_data"
    return root.joinpath(*parts)


def given(text: str | os.PathLike[str]) -> pathlib.Path:
    """Return the path that a user names, with ~ and ~NAME replaced by home folders. ~NAME stays if there is no such
    user.
    """
    path = pathlib.Path(text)
    with contextlib.suppress(RuntimeError):
        return path.expanduser()
    return path


def refuse_spaces(folder: pathlib.Path, mend: str) -> None:
    """Refuse a folder that a guest cannot be told of: words on its kernel's command line end at spaces.

    Raises UserError with the remedy `mend`.
    """
    if any(letter.isspace() for letter in str(folder)):
        raise UserError(f"{folder}: guests cannot use folders with spaces in their paths", mend)


def exists(path: pathlib.Path) -> bool:
    """Return whether there is a file or folder at a path; False if no file can have such a name."""
    with contextlib.suppress(OSError, ValueError):
        return path.exists()
    return False


def caches() -> list[pathlib.Path]:
    """Return the cache folders, which hold what was built: the first is written to, any others are only read.

    CC_CONFORMANCE_CACHE lists them, separated by colons. Without it there is one, in XDG_CACHE_HOME or else in
    ~/.cache. The cache in the package cc-conformance-kernel comes last, if that is installed.
    """
    chosen = [folder for folder in os.environ.get("CC_CONFORMANCE_CACHE", "").split(os.pathsep) if folder]
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folders = [given(folder).absolute() for folder in chosen or [f"{home}/cc-conformance"]]
    return [*folders, *_brought()]


@functools.cache
def _brought() -> tuple[pathlib.Path, ...]:
    package = importlib.util.find_spec("cc_conformance_kernel")
    return (pathlib.Path(package.origin).parent / "cache",) if package and package.origin else ()


def cache(*parts: str) -> pathlib.Path:
    """Return a path in the cache that is written to."""
    return caches()[0].joinpath(*parts)


def tag_cache() -> None:
    """Create the cache that is written to, if it is missing, and mark it as a cache for backup programs and for
    trees.py. Raises OSError.
    """
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _TAG).exists():
        (folder / _TAG).write_text(_TAG_TEXT)


def is_tagged_cache(folder: pathlib.Path) -> bool:
    """Return whether a folder is a cache: one of the suite, or one that any tool marked as such."""
    return (folder / _TAG).exists() or is_own_cache(folder)


def is_own_cache(folder: pathlib.Path) -> bool:
    """Return whether a folder is one of caches(), or another cache of the suite."""
    if pathlib.Path(os.path.realpath(folder)) in _resolved(*caches()):
        return True
    try:
        return (folder / _TAG).read_text(errors="replace") == _TAG_TEXT
    except OSError:
        return False


@functools.cache
def _resolved(*folders: pathlib.Path) -> frozenset[pathlib.Path]:
    return frozenset(folder.resolve() for folder in folders)


def cached(*parts: str) -> pathlib.Path:
    """Return the path of something in the first cache that has it, or in cache() if none has it."""
    places = [folder.joinpath(*parts) for folder in caches()]
    return next((place for place in places if place.exists()), places[0])


def document(what: str, shipped: Mapping[str, pathlib.Path], noun: str) -> pathlib.Path:
    """Return the file of a document that ships, by its name, or the path that was given. Raises UserError."""
    path = pathlib.Path(what)
    if what in shipped:
        return shipped[what]
    if path.suffix == ".json" or exists(path):
        return path
    mend = f"`conformance {noun} show` lists those that ship; or give a file, FILE.json"
    raise UserError(f"there is no {noun} {what!r}", spelling.mend(what, shipped, mend))


def stamped(path: pathlib.Path | str) -> tuple[pathlib.Path, tuple[int, int, int] | None]:
    """Return a file's path, and a stamp that changes with the file, so that each version is parsed and checked once."""
    path = pathlib.Path(path)
    try:
        about = path.stat()
    except OSError:
        return path, None  # the code that reads it says what is wrong
    return path, (about.st_mtime_ns, about.st_size, about.st_ino)

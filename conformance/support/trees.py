"""Working trees: which of their files matter, a digest of these, and a copy that follows them."""

import dataclasses
import functools
import hashlib
import os
import pathlib
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NoReturn

from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import paths
from conformance.support.contents import Contents

#: what no build reads: what version control and tools keep for themselves
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules"})
#: {how the name ends: how it begins} of what the suite itself writes (results/store.py, results/features.py)
_RESULTS = {".features.jsonl": b'{"cell":', ".jsonl": b'{"evidence":'}
_GIT_TIMEOUT_S = 60
#: settings of a stranger's repository are not obeyed, and its owner may be another user, as in containers
_GIT = ("git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")
_AGAIN = "run the same command again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree:
    """The files of a working tree that matter. `entries`: relative path to what is there (see _entry())."""

    root: pathlib.Path
    entries: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> str:
        listed = "".join(f"{name}\0{entry}\0" for name, entry in sorted(self.entries.items()))
        return digests.of_bytes(listed.encode(errors="surrogateescape"))

    def below(self, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
        """Return the folders at or below `folder` that hold a file called `name`, the nearest first."""
        found = [self.root / path for path in self.entries if pathlib.PurePath(path).name == name]
        return sorted((f.parent for f in found if f.is_relative_to(folder)), key=lambda path: (len(path.parts), path))


def read(path: pathlib.Path, programs: bool = False) -> Tree:
    """Return the tree of a folder, or of a single file. Raises UserError.

    In a git repository that tracks something there, that is the whole repository: the files it tracks, and those that
    are new and not ignored. Elsewhere it is all files of the folder. Of what git does not track, caches and the suite's
    results do not count: the suite may keep its own there. `programs`: also programs and shared libraries that are
    ignored, for what the user builds there.
    """
    try:
        if not path.is_dir():
            return Tree(root=path.parent, entries={path.name: _entry(path, path.parent)})
        root = _repository(path) or path
        names = set(_names(root)) | (set(_programs(root)) if programs else set())
        known = Contents(paths.cache("trees", f"{digests.of_value([str(root), programs])}.json"))
        entries = {name: _entry(root / name, root, known.digest) for name in sorted(names)}
        known.keep()
        return Tree(root=root, entries=entries)
    except OSError as error:
        raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from None


def commit(path: pathlib.Path) -> str | None:
    """Return the commit of a tree, with `-dirty` where it was changed since; None outside of git."""
    said = _git(path, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=8")
    return said.strip() if said and _repository(path) else None


def follow(tree: Tree, copy: pathlib.Path) -> None:
    """Make the folder `copy` equal to a tree. What is equal already keeps its time, so that tools build little anew.

    What changes gets the present time, however old it is in the tree: tools compare times. Raises UserError where the
    tree is not what it was when it was read.
    """
    copy.mkdir(parents=True, exist_ok=True)
    folders = {str(parent) for name in tree.entries for parent in pathlib.PurePath(name).parents}
    for at, below, names in os.walk(copy, topdown=False):
        here = pathlib.Path(at)
        for path in (here / name for name in (*names, *below)):
            name = str(path.relative_to(copy))
            if path.is_dir() and not path.is_symlink():
                if name not in folders:
                    path.rmdir()
            elif name not in tree.entries:
                path.unlink()
    for name, entry in tree.entries.items():
        _copy(tree.root / name, copy / name, entry, copy)


def _copy(source: pathlib.Path, target: pathlib.Path, entry: str, root: pathlib.Path) -> None:
    if os.path.lexists(target):
        if _entry(target, root) == entry:
            return
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    kind, _, what = entry.partition(" ")
    if kind == "link":
        target.symlink_to(what)
        return
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        raise UserError(f"{source} went while it was copied", _AGAIN) from None
    target.chmod(0o755 if kind == "program" else 0o644)
    if _entry(target, root) != entry:
        target.unlink()
        raise UserError(f"{source} changed while it was copied", _AGAIN)


def _content(path: pathlib.Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _entry(path: pathlib.Path, root: pathlib.Path, content: Callable[[pathlib.Path], str] = _content) -> str:
    """Return what is at a path: `file DIGEST`, `program DIGEST` if it is executable, or `link TARGET`.

    A link to a file outside of the tree counts as that file, as its content may change.
    """
    if path.is_symlink():
        target, there = path.readlink(), pathlib.Path(os.path.realpath(path))
        if (not target.is_absolute() and there.is_relative_to(root.resolve())) or not there.exists():
            return f"link {target}"
        if there.is_dir():
            raise UserError(f"{path} leads to {there}, outside of {root}", "name a tree that holds all that it needs")
    about = path.stat()
    return f"{'program' if about.st_mode & stat.S_IXUSR else 'file'} {content(path)}"


def _names(root: pathlib.Path) -> Iterator[str]:
    """Yield the relative paths of the files that matter. A repository within (a submodule) is asked for its own."""
    tracked = new = None
    if _top(root) == root.resolve():
        tracked = _git(root, "ls-files", "-z", "--cached")
        new = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    if tracked is None or new is None:
        found = _walk(root, lambda folder, name: not _is_cache(folder, name))
        yield from (name for name in found if not _is_results(root / name))
        return
    for name in filter(None, (*tracked.split("\0"), *_without_caches(root, new.split("\0")))):
        path = root / name
        if path.is_dir() and not path.is_symlink():
            yield from (str(pathlib.PurePath(name, inner)) for inner in _names(path))
        elif path.is_symlink() or path.is_file():
            yield name


def _without_caches(root: pathlib.Path, names: Iterable[str]) -> Iterator[str]:
    """Yield those of the names below a folder that are in no cache, and are no results."""

    @functools.cache
    def is_in_cache(folder: pathlib.PurePath) -> bool:
        return bool(folder.parts) and (is_in_cache(folder.parent) or paths.is_tagged_cache(root / folder))

    for name in filter(None, names):
        path, pure = root / name, pathlib.PurePath(name)
        is_folder = name.endswith("/") or path.is_symlink()  # a repository, or perhaps a link to a cache elsewhere
        if not is_in_cache(pure if is_folder else pure.parent) and not _is_results(path):
            yield name


def _programs(root: pathlib.Path) -> Iterator[str]:
    # cargo tags its target folder as a cache, and the programs are there.
    for name in _walk(root, lambda folder, name: name != ".git" and not paths.is_own_cache(folder / name)):
        path = root / name
        if not path.is_symlink() and (os.access(path, os.X_OK) or ".so" in path.suffixes):
            yield name


def _walk(root: pathlib.Path, enters: Callable[[pathlib.Path, str], bool]) -> Iterator[str]:
    """Yield the relative paths of files and links below a folder, but for what `enters(folder, name)` refuses."""

    def refuse(error: OSError) -> NoReturn:
        raise error

    for at, folders, names in os.walk(root, onerror=refuse):
        here = pathlib.Path(at)
        folders[:] = [name for name in folders if enters(here, name)]
        links = [name for name in folders if (here / name).is_symlink()]
        for path in (here / name for name in (*names, *links) if name != ".git"):
            if path.is_symlink() or path.is_file():
                yield str(path.relative_to(root))


def _is_cache(folder: pathlib.Path, name: str) -> bool:
    if name in _LEFT_OUT or paths.is_tagged_cache(folder / name):
        return True
    return name == "target" and (folder / "Cargo.toml").exists()


def _is_results(path: pathlib.Path) -> bool:
    """Return whether a file holds what the suite measured or traced: each run adds to it, and no build reads it."""
    beginning = next((text for end, text in _RESULTS.items() if path.name.endswith(end)), None)
    if beginning is None or not path.is_file():
        return False
    with open(path, "rb") as f:
        return f.read(len(beginning)) == beginning


def _repository(path: pathlib.Path) -> pathlib.Path | None:
    """Return the top folder of the git repository that tracks something in a folder, or None."""
    top = _top(path)
    return top if top and _git(path, "ls-files", "-z", "--", ".") else None


def _top(path: pathlib.Path) -> pathlib.Path | None:
    said = _git(path, "rev-parse", "--show-toplevel")
    return pathlib.Path(said.rstrip("\n")).resolve() if said else None


def _git(path: pathlib.Path, *arguments: str) -> str | None:
    """Return what git says in a folder; None where it fails.

    Raises UserError where there is a repository, but git is missing or does not end: with what git ignores, the tree
    would have another digest here than elsewhere.
    """
    # In a hook of git's, variables name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(path), *arguments], capture_output=True, env=environment, timeout=_GIT_TIMEOUT_S
        )
    except (FileNotFoundError, PermissionError):
        if any((folder / ".git").exists() for folder in (path, *path.absolute().parents)):
            raise UserError(f"{path} is in a git repository, and git is not on PATH", "install git") from None
        return None
    except subprocess.TimeoutExpired:
        raise UserError(f"`git {arguments[0]}` in {path} took longer than {_GIT_TIMEOUT_S} s", _AGAIN) from None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None

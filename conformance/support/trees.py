"""Read working trees: find the files that matter, compute their digest, and keep a copy of them up to date."""

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

#: folders that no build reads, in which version control and tools keep their own files
_LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules"})
#: {end of the name: beginning of the content} of files that the suite itself writes (results/store.py,
#: results/features.py)
_RESULTS = {".features.jsonl": b'{"cell":', ".jsonl": b'{"evidence":'}
_GIT_TIMEOUT_S = 60
#: git must not obey core.fsmonitor of a stranger's repository, and the owner may be another user, as in containers
_GIT = ("git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false")
_AGAIN = "run the same command again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree:
    """The files of a working tree that matter. `entries`: {relative path: what is there, see _entry()}."""

    root: pathlib.Path
    entries: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> str:
        listed = "".join(f"{name}\0{entry}\0" for name, entry in sorted(self.entries.items()))
        return digests.of_bytes(listed.encode(errors="surrogateescape"))

    def below(self, folder: pathlib.Path, name: str) -> list[pathlib.Path]:
        """Return the folders at or below `folder` that hold a file called `name`, the nearest first."""
        paths = [self.root / path for path in self.entries if pathlib.PurePath(path).name == name]
        return sorted((f.parent for f in paths if f.is_relative_to(folder)), key=lambda path: (len(path.parts), path))


def read(path: pathlib.Path, programs: bool = False) -> Tree:
    """Return the tree of a folder, or of a single file. Raises UserError.

    If the folder is in a git repository that tracks something there, the tree is the whole repository: the files that
    git tracks, and new files that it does not ignore. Otherwise it is all files of the folder. Of files that git does
    not track, caches and the suite's results are left out, because the suite may keep its own there. `programs`:
    include programs and shared libraries that git ignores, because the user builds them there.
    """
    try:
        if not path.is_dir():
            return Tree(root=path.parent, entries={path.name: _entry(path, path.parent)})
        root = _repository(path) or path
        names = set(_names(root)) | (set(_programs(root)) if programs else set())
        return Tree(root=root, entries={name: _entry(root / name, root) for name in sorted(names)})
    except OSError as error:
        raise UserError(f"cannot read {error.filename or path}: {error.strerror}") from None


def commit(path: pathlib.Path) -> str | None:
    """Return the commit of a tree, with `-dirty` if it has changed since; None outside of git."""
    said = _git(path, "describe", "--always", "--dirty", "--exclude=*", "--abbrev=8")
    return said.strip() if said and _repository(path) else None


def follow(tree: Tree, copy: pathlib.Path) -> None:
    """Make the folder `copy` equal to a tree. Files that are equal already keep their times, so that build tools
    rebuild little.

    Files that change get the present time, however old they are in the tree, because build tools compare times. Raises
    UserError if the tree has changed since it was read.
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
        raise UserError(f"{source} disappeared while it was being copied", _AGAIN) from None
    target.chmod(0o755 if kind == "program" else 0o644)
    if _entry(target, root) != entry:
        target.unlink()
        raise UserError(f"{source} changed while it was being copied", _AGAIN)


def _entry(path: pathlib.Path, root: pathlib.Path) -> str:
    """Return what is at a path: `file DIGEST`, `program DIGEST` if it is executable, or `link TARGET`.

    A link to a file outside of the tree counts as that file, because its content may change.
    """
    if path.is_symlink():
        target, there = path.readlink(), pathlib.Path(os.path.realpath(path))
        if (not target.is_absolute() and there.is_relative_to(root.resolve())) or not there.exists():
            return f"link {target}"
        if there.is_dir():
            raise UserError(f"{path} leads to {there}, outside of {root}", "name a tree that holds everything it needs")
    with open(path, "rb") as f:
        kind = "program" if os.fstat(f.fileno()).st_mode & stat.S_IXUSR else "file"
        return f"{kind} {hashlib.file_digest(f, 'sha256').hexdigest()}"


def _names(root: pathlib.Path) -> Iterator[str]:
    """Yield the relative paths of the files that matter; a repository inside this one (a submodule) is listed by git,
    too.
    """
    tracked = new = None
    if _top(root) == root.resolve():
        tracked = _git(root, "ls-files", "-z", "--cached")
        new = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    if tracked is None or new is None:
        paths = _walk(root, lambda folder, name: not _is_cache(folder, name))
        yield from (name for name in paths if not _is_results(root / name))
        return
    for name in filter(None, (*tracked.split("\0"), *_without_caches(root, new.split("\0")))):
        path = root / name
        if path.is_dir() and not path.is_symlink():
            yield from (str(pathlib.PurePath(name, inner)) for inner in _names(path))
        elif path.is_symlink() or path.is_file():
            yield name


def _without_caches(root: pathlib.Path, names: Iterable[str]) -> Iterator[str]:
    """Yield those names below a folder that are in no cache and are not results of the suite."""

    @functools.cache
    def is_in_cache(folder: pathlib.PurePath) -> bool:
        return bool(folder.parts) and (is_in_cache(folder.parent) or paths.is_tagged_cache(root / folder))

    for name in filter(None, names):
        path, pure = root / name, pathlib.PurePath(name)
        is_folder = name.endswith("/") or path.is_symlink()  # a repository, or perhaps a link to a cache elsewhere
        if not is_in_cache(pure if is_folder else pure.parent) and not _is_results(path):
            yield name


def _programs(root: pathlib.Path) -> Iterator[str]:
    # Caches of other tools are searched, too: cargo tags its target folder as a cache, and the programs are there.
    for name in _walk(root, lambda folder, name: name != ".git" and not paths.is_own_cache(folder / name)):
        path = root / name
        if not path.is_symlink() and (os.access(path, os.X_OK) or ".so" in path.suffixes):
            yield name


def _walk(root: pathlib.Path, enters: Callable[[pathlib.Path, str], bool]) -> Iterator[str]:
    """Yield the relative paths of files and links below a folder, without the folders that `enters(parent, name)`
    refuses.
    """

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
    """Return whether a file holds results or features of the suite: each run adds to it, and no build reads it."""
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
    """Return git's output in a folder; None if git fails.

    Raises UserError if there is a repository, but git is missing or does not end: the tree would then include files
    that git ignores, and have another digest here than elsewhere.
    """
    # In a git hook, GIT_* variables name another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            [*_GIT, "-C", str(path), *arguments], capture_output=True, env=environment, timeout=_GIT_TIMEOUT_S
        )
    except (FileNotFoundError, PermissionError):
        if any((folder / ".git").exists() for folder in (path, *path.absolute().parents)):
            raise UserError(f"{path} is in a git repository, but git is not on PATH", "install git") from None
        return None
    except subprocess.TimeoutExpired:
        raise UserError(f"`git {arguments[0]}` in {path} took longer than {_GIT_TIMEOUT_S} s", _AGAIN) from None
    return os.fsdecode(done.stdout) if done.returncode == 0 else None

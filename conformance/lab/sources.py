"""Find trees that replace what a stack's build takes from elsewhere: a crate, a Go module, a user's folder.

A crate or module is built from a copy in the cache that follows the tree (support/trees.py), so that exactly what was
digested is compiled, nothing is written into the tree, and little is compiled anew after a small change. A version of a
Python package replaces what the build installed.
"""

import contextlib
import dataclasses
import difflib
import enum
import json
import os
import pathlib
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from conformance.lab import manifest, registry, stand_ins
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.support import paths, trees
from conformance.support.trees import Tree

#: environment variable with sources, separated by commas, which is used if --source is not given
VARIABLE = "CC_SOURCE"
#: digits of a tree's digest in the name of a build
_DIGITS = 6
#: variables of tools, which end like those by which a build finds a folder of the user's
_OF_TOOLS = {"CARGO_HOME", "RUSTUP_HOME", "JAVA_HOME"}
#: {variable of another form: the part of its folder that is used}; NSS puts what it builds next to its sources
_OTHERS = {"NSS_DIR": "../dist/Release"}
_ANY_HOME = re.compile(rf"\b(?:[A-Z][A-Z0-9_]*_HOME|{'|'.join(_OTHERS)})\b")
_TOOLS = ("cargo", "go")
#: a program that a build takes from PATH if no folder of the user's is named: `server=$(command -v http_server)`
_ON_PATH = re.compile(r"\w=\$\(command -v ([\w.+-]+)\)")


class Built(Protocol):
    """Something that is built by a program in a folder."""

    @property
    def name(self) -> str: ...

    @property
    def folder(self) -> pathlib.Path: ...

    @property
    def build(self) -> Mapping[str, Any] | None: ...


class SourceTaker(Built, Protocol):
    """What this module needs of an adapter's manifest."""

    @property
    def sources(self) -> Sequence[str]: ...


class Kind(enum.Enum):
    """How a build finds a tree."""

    CRATE = "Cargo.toml"
    MODULE = "go.mod"
    #: a Python package, of which only versions are taken
    PACKAGE = "package"
    #: the folder that a variable such as NAME_HOME names, as the user built it
    HOME = "home"
    #: a tree that the manifest names, which the build uses by itself
    NAMED = "named"
    #: a program of the user's, which the build finds on PATH
    PROGRAM = "program"


#: (lock file, what finds a part's name and version in it, how a build finds such a part)
_LOCKS = (
    ("crates.lock", r'^name = "([^"]+)"(?:\nversion = "([^"]+)")?', Kind.CRATE),
    ("Cargo.lock", r'^name = "([^"]+)"(?:\nversion = "([^"]+)")?', Kind.CRATE),
    ("go.mod", r"^(?:require)?\s+([^\s/]+\S*)\s+v(\d\S*)", Kind.MODULE),
    ("requirements.lock", r"^(\w[\w.-]*)==([\w.+-]+)", Kind.PACKAGE),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SourceTree:
    """A tree that replaces `name`.

    `folder`: the part of the tree that is used; `given`: the --source, if any; `variable`: where a build finds a HOME.
    """

    name: str
    kind: Kind
    folder: pathlib.Path
    tree: Tree
    given: str | None = None
    variable: str = ""
    #: of a crate or module that a registry has
    version: str | None = None

    @property
    def short(self) -> str:
        return short(self.name)

    @property
    def label(self) -> str:
        """The name that tells this state of the tree from others in the names of builds."""
        return f"{self.short}@{self.version or self.tree.digest[:_DIGITS]}"

    @property
    def commit(self) -> str | None:
        """The tree's commit, with `-dirty` if it was changed since; None outside of git, or of a program."""
        return None if self.version or self.kind is Kind.PROGRAM else trees.commit(self.folder)

    @property
    def copied(self) -> bool:
        return self.kind in (Kind.CRATE, Kind.MODULE)


def short(name: str) -> str:
    """Return the last word of a name: github.com/quic-go/quic-go is quic-go, whatever its major version."""
    return re.sub(r"/v\d+$", "", name).rpartition("/")[2]


def absolute(texts: Iterable[str]) -> tuple[str, ...]:
    """Return each NAME=PATH with an absolute path, and each NAME=VERSION, in order of name. Raises UserError."""
    by_name: dict[str, str] = {}
    for text in texts:
        name, _, path = text.partition("=")
        if not name or not path:
            raise UserError(
                f"--source {text!r} is not of the form NAME=PATH or NAME=VERSION",
                "write, for example, quinn-proto=../fork",
            )
        if name in by_name:
            raise UserError(f"--source names {name} twice", "leave one out")
        by_name[name] = path if _is_version(path) else str(paths.given(path).absolute())
    return tuple(f"{name}={path}" for name, path in sorted(by_name.items()))


def _is_version(text: str) -> bool:
    return registry.VERSION.fullmatch(text) is not None and not paths.given(text).exists()


def chosen(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the sources that --source gave, or else the variable CC_SOURCE, as absolute() does."""
    return absolute(texts or filter(None, os.environ.get(VARIABLE, "").split(",")))


def options(sources: Iterable[SourceTree]) -> str:
    """Return the sources that were given, as options of a command line, each after a space."""
    return "".join(f" --source {shlex.quote(source.given)}" for source in sources if source.given)


def digest(sources: Sequence[SourceTree]) -> str | None:
    """Return a digest of the content of all sources; None if there are none."""
    return digests.of_value([[s.name, s.kind.value, s.tree.digest] for s in sources]) if sources else None


def find(about: SourceTaker, given: Sequence[str] = ()) -> tuple[SourceTree, ...]:
    """Return the trees that a build uses: named by its manifest, given as NAME=PATH, or found by the build itself.

    By itself, a build finds the folders that environment variables such as NAME_HOME name, unless NAME was given. If
    there is no such folder, given or found, it finds programs on PATH. Raises UserError if the build takes nothing of a
    given name, or the path holds nothing of that name.
    """
    named = [_named(about.folder / place) for place in about.sources]
    sources = [_given(about, text) for text in absolute(given)]
    rest = {
        name: variable for name, variable in homes(about).items() if name not in {source.name for source in sources}
    }
    set_there = absolute(f"{name}={path}" for name, variable in rest.items() if (path := os.environ.get(variable)))
    homes_there = [_given(about, text, rest) for text in set_there]
    specific = any(source.variable not in ("", *_OTHERS) for source in (*sources, *homes_there))
    return (*named, *sources, *homes_there, *(() if specific else _on_path(about)))


def _on_path(about: Built) -> Iterator[SourceTree]:
    """Yield the programs that a build takes from PATH if no variable names a folder. Raises UserError."""
    if not homes(about):
        return
    for name in dict.fromkeys(_ON_PATH.findall(_build_program(about))):
        if there := manifest.which_to_build(name):
            place = pathlib.Path(there).resolve()
            yield SourceTree(name=name, kind=Kind.PROGRAM, folder=place, tree=trees.read(place))


def homes(about: Built) -> dict[str, str]:
    """Return {name: variable by which a build finds a folder of the user's}, such as picoquic: PICOQUIC_HOME."""
    variables = {match.group() for match in _ANY_HOME.finditer(_build_program(about))} - _OF_TOOLS
    return {variable.rpartition("_")[0].lower(): variable for variable in sorted(variables)}


def _build_program(about: Built) -> str:
    """Return the text of the program that builds; empty if there is none."""
    return (about.folder / str(about.build["program"])).read_text(errors="replace") if about.build else ""


def _named(place: pathlib.Path) -> SourceTree:
    place = place.resolve()
    return SourceTree(name=place.name, kind=Kind.NAMED, folder=place, tree=trees.read(place))


def _given(about: SourceTaker, text: str, variables: Mapping[str, str] = {}) -> SourceTree:
    """Return the SourceTree of a NAME=PATH. `variables`: {name: environment variable that gave it, not an option}."""
    name, _, place = text.partition("=")
    name, kind = _taken(about, name)
    if _is_version(place):
        return _released(name, kind, place)
    path = pathlib.Path(place)
    if kind is Kind.PACKAGE:
        raise UserError(f"--source {name}={place}: of Python packages, versions are taken", f"write {name}=1.2.3")
    if not path.is_dir():
        raise UserError(
            f"{variables.get(name) or f'--source {name}'}: {path} is not a folder", "name the folder of a working tree"
        )
    path = path.resolve()
    variable = homes(about)[name] if kind is Kind.HOME else ""
    tree = _read(path, variable)
    folder = path if variable else _holder(tree, path, name, kind)
    return SourceTree(name=name, kind=kind, folder=folder, tree=tree, given=f"{name}={place}", variable=variable)


def _released(name: str, kind: Kind, version: str) -> SourceTree:
    """Return the SourceTree of a version that a registry has. Raises UserError."""
    fetch = {Kind.CRATE: registry.crate, Kind.MODULE: registry.module, Kind.PACKAGE: registry.package}.get(kind)
    if fetch is None:
        raise UserError(f"--source {name}={version}: no registry has versions of {name}", "name the folder of a build")
    folder = fetch(name, version)
    return SourceTree(
        name=name, kind=kind, folder=folder, tree=trees.read(folder), given=f"{name}={version}", version=version
    )


def newest(about: SourceTaker, part: str) -> str:
    """Return the newest version of a part of a build that its registry has. Raises UserError."""
    name, kind = _taken(about, part)
    ask = {
        Kind.CRATE: registry.newest_crate, Kind.MODULE: registry.newest_module, Kind.PACKAGE: registry.newest_package,
    }.get(kind)  # fmt: skip
    if ask is None:
        raise UserError(f"no registry has versions of {part}", "name the folder of a build with --source")
    return ask(name)


def _read(path: pathlib.Path, variable: str) -> Tree:
    """Return the tree of a folder.

    Of a folder that a build finds by `variable`, only the part that is used counts, with its programs, or the whole
    folder if that part does not exist.
    """
    if not variable:
        return trees.read(path)
    used = (path / _OTHERS.get(variable, ".")).resolve()
    return trees.read(used if used.is_dir() else path, programs=True)


def _taken(about: SourceTaker, name: str) -> tuple[str, Kind]:
    """Return the full name of what the build takes under a name, and how it finds it. Raises UserError.

    What a build takes is known from its lock file, or because it reads a variable such as NAME_HOME.
    """
    taken = dict.fromkeys(homes(about), Kind.HOME)
    taken |= {name: kind for name, _, kind in _locked(about.folder)}
    if name in taken:
        return name, taken[name]
    ends = grouped((end, path) for path in taken for end in {short(path), path.replace("_", "-")})
    if name in ends:
        full, *further = ends[name]
        if further:
            mend = f"give {' or '.join(ends[name])}"
            raise UserError(f"several parts of stack {about.name} have names that end in {name!r}", mend)
        return full, taken[full]
    if not taken:
        others = [other.name for other in manifest.shipped() if name in homes(other)]
        other = f", or name the stack {' or '.join(others)}" if others else ""
        raise UserError(
            f"stack {about.name} uses nothing that a working tree can replace", f"leave out --source{other}"
        )
    near = dict.fromkeys(path for word in difflib.get_close_matches(name, ends, 4) for path in ends[word])
    raise UserError(
        f"stack {about.name} does not build with {name!r}",
        f"did you mean {' or '.join(near)}?" if near else f"give a name from its lock file, such as {min(taken)}",
    )


def locked(about: Built, name: str) -> set[str]:
    """Return the versions of a part, by its full name, that its lock file has a build take."""
    return {version for part, version, _ in _locked(about.folder) if part == name}


def _locked(folder: pathlib.Path) -> Iterator[tuple[str, str, Kind]]:
    """Yield (name, version, kind) of each part in the lock files of a folder."""
    for file, pattern, kind in _LOCKS:
        if (folder / file).is_file():
            text = (folder / file).read_text(errors="replace")
            for name, version in re.findall(pattern, text, re.MULTILINE):
                yield name, version, kind


def _holder(tree: Tree, path: pathlib.Path, name: str, kind: Kind) -> pathlib.Path:
    """Return the folder at or below `path` that holds the crate or module. Raises UserError."""
    others = []
    for folder in tree.below(path, kind.value):
        holder = _called(folder / kind.value, kind)
        if holder == name:
            return folder
        others += [holder] if holder else []
    what = "crate" if kind is Kind.CRATE else "Go module"
    has = f"it has {', '.join(sorted(set(others))[:5])}" if others else f"it has no {kind.value}"
    raise UserError(f"--source {name}: there is no {what} {name} in {path}", has)


def _called(file: pathlib.Path, kind: Kind) -> str | None:
    try:
        text = file.read_text(errors="replace")
        if kind is Kind.MODULE:
            match = re.search(r'^module\s+"?([^\s"]+)', text, re.MULTILINE)
            return match[1] if match else None
        name = tomllib.loads(text).get("package", {}).get("name")
    except (OSError, tomllib.TOMLDecodeError, AttributeError):
        return None
    return name if isinstance(name, str) else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workshop:
    """The place where a build is made.

    `folder`: an empty folder, or None for any; `environment`: additional variables; `copies`: {copy: its tree}.
    """

    folder: pathlib.Path | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    copies: Mapping[pathlib.Path, pathlib.Path] = dataclasses.field(default_factory=dict)
    sources: Sequence[SourceTree] = ()

    def replace(self, build: pathlib.Path) -> None:
        """Put the versions of Python packages into a build in place of those that it installed."""
        for source in (source for source in self.sources if source.kind is Kind.PACKAGE):
            for there in build.glob(f"{source.name.replace('-', '_')}-*.dist-info"):
                shutil.rmtree(there)
            for new in source.folder.iterdir():
                shutil.rmtree(build / new.name, ignore_errors=True)
                copy = shutil.copytree if new.is_dir() else shutil.copy
                copy(new, build / new.name)

    def check(self) -> None:
        """Raise UserError if a tree that is built in place changed meanwhile: it is then unknown what was built."""
        for source in (source for source in self.sources if not source.copied):
            if _read(source.folder, source.variable).digest != source.tree.digest:
                raise UserError(f"{source.folder} changed while it was being built", "run the same command again")

    def told(self, text: str) -> str:
        """Return the output of a build with paths in trees instead of paths in their copies."""
        for copy, root in self.copies.items():
            text = text.replace(str(copy), str(root))
        return text


@contextlib.contextmanager
def workshop(stack: str, sources: Sequence[SourceTree], system: str, afresh: bool) -> Iterator[Workshop]:
    """Yield a Workshop with the trees in place.

    What tools made is kept for the next build of the same stack with sources of the same names, so that after a change
    of a tree, or with another tree, only the differences are compiled. `afresh`: discard it first. The caller must
    ensure that only one build of a stack runs at a time. Raises UserError if a tree changes meanwhile.
    """
    if not sources:
        yield Workshop()
        return
    kept = paths.cache("trees", f"{stack}-{digests.of_value([system, [s.name for s in sources]])}")
    if afresh:
        shutil.rmtree(kept, ignore_errors=True)
    work, tools = kept / "work", kept / "tools"
    for folder in (work, tools):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    try:
        copied = [source for source in sources if source.copied]
        copies = {source.tree.root: kept / "trees" / _folder_of(source, copied) for source in reversed(copied)}
        for root, tree in {source.tree.root: source.tree for source in copied}.items():
            trees.follow(tree, copies[root])
        _stand_in(tools, work, kept / "target", [(s, copies[s.tree.root]) for s in copied])
        environment = {"PATH": f"{tools}{os.pathsep}{manifest.search_path()}"}
        environment |= {source.variable: str(source.folder) for source in sources if source.kind is Kind.HOME}
        places = {copy: root for root, copy in copies.items()}
        yield Workshop(folder=work, environment=environment, copies=places, sources=sources)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _folder_of(source: SourceTree, among: Sequence[SourceTree]) -> str:
    """Return the folder name for the copy of a source's tree; two sources may share the end of their names."""
    alike = {other.name for other in among if other.short == source.short}
    return source.short if len(alike) == 1 else f"{source.short}-{digests.of_value(source.name)}"


def _stand_in(
    tools: pathlib.Path, work: pathlib.Path, target: pathlib.Path, copied: Sequence[tuple[SourceTree, pathlib.Path]]
) -> None:
    """Fill the folder `tools` with the programs that are run instead of cargo and go (stand_ins.py)."""
    places = [(source, str(copy / source.folder.relative_to(source.tree.root))) for source, copy in copied]
    about = {
        "work": str(work),
        "target": str(target),
        "tools": {tool: real for tool in _TOOLS if (real := manifest.which_to_build(tool))},
        "crates": {source.name: place for source, place in places if source.kind is Kind.CRATE},
        "modules": {source.name: place for source, place in places if source.kind is Kind.MODULE},
    }
    (tools / stand_ins.ABOUT).write_text(json.dumps(about))
    for tool in about["tools"]:
        words = [sys.executable, "-I", stand_ins.__file__, tool, str(tools / stand_ins.ABOUT)]
        (tools / tool).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (tools / tool).chmod(0o755)

"""Load adapters: read a manifest, build its programs, and ask them what they are."""

import dataclasses
import hashlib
import json
import os
import pathlib
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from conformance.lab import building, host_process, manifest, sources
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.trials.trial import CLIENT, WITH_TREES, is_version
from conformance.support import files, paths, schema

_DESCRIBE_TIMEOUT_S = 20
_DESCRIBE_BYTES = 64 << 10
_VERSION_CHARACTERS = 200
_DESCRIPTION = 'make it print {"version": "...", "algorithms": [...]} and end with status 0'
#: which client fetches: the one that the manifest names, the same for all servers; or the stack's own
COMMON, OWN = "common", "own"
#: what a manifest says of the draft that a stack claims to keep, which is no part of what the stack is
_CLAIM = re.compile(rb'"draft(?:_evidence)?": "[^"]*",\s*')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adapter:
    """A built adapter. `has`: the stack's own names of the algorithms in this build; None if it does not say."""

    manifest: manifest.Manifest
    client: "Adapter | None"
    #: folder with what was compiled
    build: pathlib.Path | None
    version: str
    has: frozenset[str] | None
    digest: str
    #: another root file system that the stack's programs come from
    rootfs: pathlib.Path | None = None
    #: the adapter's own files, by name, and their digest when it was loaded
    files: tuple[tuple[str, pathlib.Path], ...] = ()
    files_digest: str = ""

    @property
    def name(self) -> str:
        return self.manifest.named(self.rootfs)

    @property
    def kernel_algorithms(self) -> dict[str, Any] | None:
        return self.manifest.kernel_algorithms

    def kernel_names(self, algorithm: str) -> list[str] | None:
        """Return the kernel's names for an algorithm, in order of preference; None if the stack brings its own."""
        if self.kernel_algorithms is None:
            return None
        entry = self.kernel_algorithms[algorithm]
        names: list[str] = [entry] if isinstance(entry, str) else entry["names"]
        return names

    def kernel(self, algorithm: str) -> str | None:
        """Return the name of the guest kernel that has an algorithm, if that is not the default; None otherwise."""
        entry = (self.kernel_algorithms or {}).get(algorithm)
        name: str | None = entry["kernel"] if isinstance(entry, dict) else None
        return name

    def why_not(self, algorithm: str) -> str | None:
        """Return why this stack cannot run an algorithm; None if nothing is known against it.

        The program has the last word: it ends with status 127 if it does not offer the algorithm.
        """
        lists = self.kernel_algorithms is not None or self.manifest.algorithms is not None
        if lists and algorithm not in self.manifest.offered():
            return f"{self.name} does not offer {algorithm}"
        if self.has is not None and self.kernel_algorithms is None and self.called(algorithm) not in self.has:
            return f"this build of {self.name} ({self.version}) has no {self.called(algorithm)}"
        return None

    def folders(self) -> dict[str, pathlib.Path]:
        """Return {name by which the stack finds a folder: folder}: its files, its build, and those of its client."""
        client = self.client or self
        return {
            "adapter": self.manifest.folder,
            "build": self.build or self.manifest.folder,
            "client": client.manifest.folder,
            "client-build": client.build or client.manifest.folder,
            **({"rootfs": self.rootfs} if self.rootfs else {}),
        }

    def require_unchanged(self) -> None:
        """Raise UserError if files of its own, or of its client's, are not as they were when it was loaded."""
        if self.files and _files_digest(self.files) != self.files_digest:
            raise UserError(f"files of stack {self.name} changed while it was measured", "run the same command again")
        if self.client is not None:
            self.client.require_unchanged()

    def called(self, algorithm: str) -> str:
        return self.manifest.called(algorithm)

    def first_algorithm(self) -> str:
        """Return an algorithm with which to try the stack."""
        return next((name for name in self.manifest.offered() if not self.why_not(name)), "cubic")


def load(stack: str, client: str = COMMON, given: Sequence[str] = ()) -> Adapter:
    """Return the adapter of a name in adapters/, or of a path to an adapter.json; build it if that downloads nothing.

    `client`: COMMON, OWN, or the name or path of the adapter whose client is to fetch. `given`: working trees to build
    it with, each as NAME=PATH. Raises UserError.
    """
    about = manifest.read(stack)
    about.require()
    trees = sources.find(about, given)
    named = fetcher(about, client)
    # The other adapter's choice of a client does not count: its own client is the one to fetch.
    other = load(named, OWN) if named else None
    own_files = tuple(_files_of(about))
    own_digest = _files_digest(own_files)
    build_dir = building.ensure(about, own_digest, sources=trees, taken=_taken(about)) if about.build else None
    version, has = _describe(about.folder / about.program, build_dir or about.folder)
    if trees:
        version += WITH_TREES + ", ".join(source.label for source in trees)
    programs = [pathlib.Path(program) for tool in about.needs if (program := manifest.which(tool))]
    programs += sorted(f for f in build_dir.rglob("*") if f.is_file()) if build_dir else []
    of_trees = [sources.digest(trees)] if trees else []
    return Adapter(
        manifest=about,
        client=other,
        build=build_dir,
        version=version if other is None else f"{version}{CLIENT}{other.name} ({other.version})",
        has=has,
        files=own_files,
        files_digest=own_digest,
        # Results are stored under this digest, so it must not change for builds without trees.
        digest=digests.of_value(
            [
                version,
                own_digest,
                _files_digest((file.name, file) for file in programs),
                other and other.digest,
                *of_trees,
            ]
        ),
    )


def fetcher(about: manifest.Manifest, client: str = COMMON) -> str | None:
    """Return the name or path of the adapter whose client fetches from a stack; None if its own does.

    `client`: see load(). Builds nothing. Raises UserError if that client cannot fetch from the stack.
    """
    named: str | None = {COMMON: about.client, OWN: None}.get(client, client)
    if named is None:
        return None
    other = manifest.read(named)
    if other.path.resolve() == about.path.resolve():
        return None
    if about.client_chooses:
        raise UserError(
            f"{about.name}'s own client requests the algorithm, and {named}'s client does not", "leave out --client"
        )
    if other.transport != about.transport:
        raise UserError(
            f"{named}'s client speaks {other.transport}, but {about.name} serves over {about.transport}",
            f"correct `client` or `transport` in {about.path}" if client == COMMON else "choose another with --client",
        )
    return named


def load_interop(folder: str) -> Adapter:
    """Return the adapter for an image of the QUIC interop runner that was exported to `folder`. Raises UserError."""
    rootfs = paths.given(folder).resolve()
    if not (rootfs / "etc").is_dir():
        raise UserError(f"{folder} is not a root file system: it has no etc", "export an image into it, unpacked")
    runner = load("interop")
    content = _tree_digest(rootfs)
    return dataclasses.replace(
        runner, rootfs=rootfs, version=f"{runner.version} {rootfs.name}, {content}",
        digest=digests.of_value([runner.digest, content]),
    )  # fmt: skip


def build(
    stack: str,
    again: bool = False,
    progress: building.Progress = lambda done, total, line: None,
    given: Sequence[str] = (),
) -> pathlib.Path | None:
    """Build what an adapter compiles, even if that downloads. Return the folder, or None if it compiles nothing.

    `again`: even if it is built already. What uses a folder or program of the user's (PICOQUIC_HOME) is always built
    again, as libraries elsewhere may have changed. `progress(done, total, line)` is called now and then with the line
    that the build printed last and, if it counts steps, how far it is. `given`: see load(). Raises UserError.
    """
    about = manifest.read(stack)
    about.require()
    trees = sources.find(about, given)
    if not about.build:
        return None
    own_digest = files_digest(about)
    again = again or any(tree.kind in (sources.Kind.HOME, sources.Kind.PROGRAM) for tree in trees)
    return building.ensure(
        about,
        own_digest,
        explicit=True,
        again=again,
        progress=progress,
        sources=trees,
        taken=_taken(about, explicit=True),
    )


def _taken(about: manifest.Manifest, explicit: bool = False) -> dict[str, str]:
    """Return {variable: folder} of the builds of other adapters that a build takes, built if need be."""
    others = {name: manifest.read(name) for name in about.takes}
    return {
        f"CC_BUILD_{re.sub('[^A-Z0-9]', '_', name.upper())}": str(
            building.ensure(other, files_digest(other), explicit=explicit)
        )
        for name, other in others.items()
    }


def is_built(about: manifest.Manifest) -> bool:
    """Return whether an adapter is built, so that it runs without compilers. Raises UserError."""
    if not about.build:
        return True
    return building.place(about.name, building.with_sources(files_digest(about), sources.find(about))).exists()


def files_digest(about: manifest.Manifest) -> str:
    """Return a digest of all files that determine what the stack is."""
    return _files_digest(_files_of(about))


def _files_of(about: manifest.Manifest) -> Iterator[tuple[str, pathlib.Path]]:
    others = [place for name in about.takes for place in manifest.read(name).places()]
    return _own_files(*about.places(), *others)


def _describe(program: pathlib.Path, build: pathlib.Path) -> tuple[str, frozenset[str] | None]:
    """Return (version, stack's own names of its algorithms or None), as `program describe` prints them.

    Text is made printable. Raises UserError.
    """
    # What it says has to be true of the programs that guests find, which have nothing of the user's environment.
    home = {name: value for name, value in os.environ.items() if name == "HOME"}
    environment = {**home, "PATH": manifest.GUEST_PATH, "LC_ALL": "C", "CC_BUILD": str(build)}
    aside = files.temp_folder()
    with tempfile.TemporaryFile(dir=aside) as out, tempfile.TemporaryFile(dir=aside) as err:
        try:
            status = host_process.run(
                [str(program), "describe"], (out, err), timeout_s=_DESCRIBE_TIMEOUT_S, most_bytes=_DESCRIBE_BYTES,
                environment=environment,
            )  # fmt: skip
        except host_process.Ended as why:
            raise UserError(f"`{program} describe` {why}", _DESCRIPTION) from None
        said, complained = _head(out), _head(err)
    if status != 0:
        lines = complained.strip().splitlines()
        last = _printable(lines[-1]) if lines else "it printed nothing"
        raise UserError(f"`{program} describe` ended with status {status}: {last}", None if lines else _DESCRIPTION)
    try:
        data = json.loads(said)
    except (ValueError, RecursionError):
        raise UserError(
            f"`{program} describe` did not print a JSON object, but {_printable(said)!r}",
            _DESCRIPTION,
        ) from None
    schema.check("description", data, f"`{program} describe`")
    version, names = _printable(data["version"]), data.get("algorithms")
    if not is_version(version):
        raise UserError(f"`{program} describe` names a program or library that is missing: {version}", "install it")
    return version, None if names is None else frozenset(names)


def _head(file: IO[bytes]) -> str:
    return os.pread(file.fileno(), _DESCRIBE_BYTES, 0).decode(errors="replace")


def _printable(text: str) -> str:
    return "".join(c for c in " ".join(text.split()) if c.isprintable())[:_VERSION_CHARACTERS]


def _tree_digest(root: pathlib.Path) -> str:
    """Return a digest of names, contents and modes of all files below a folder. Unreadable ones do not count."""
    total = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders.sort()
        for path in (pathlib.Path(folder, name) for name in sorted(names)):
            about = path.lstat()
            total.update(f"{path.relative_to(root)}\0{about.st_mode:o}\0".encode(errors="surrogateescape"))
            if path.is_symlink():
                total.update(os.fsencode(path.readlink()))
            elif stat.S_ISREG(about.st_mode) and os.access(path, os.R_OK):
                with open(path, "rb") as f:
                    total.update(hashlib.file_digest(f, "sha256").digest())
    return total.hexdigest()[: digests.DIGITS]


def _own_files(*places: pathlib.Path) -> Iterator[tuple[str, pathlib.Path]]:
    """Yield (name, path) of all files of an adapter's folder and of what it shares, in order.

    A name is the path from that folder, or from the folder src in it, where a crate has its files. Left out are the
    known deviations, remains of interrupted writes, and files of version control. Raises UserError for a link to a
    folder elsewhere, whose files would not count.
    """
    for place in places:
        for file in [place] if place.is_file() else sorted(place.rglob("*")):
            *folders, name = file.relative_to(place).parts or (place.name,)
            if ".git" in folders:
                continue
            if name != ".git" and _leads_away(file, place):
                raise UserError(
                    f"{file} is a link to a folder, whose files would not count", "name it in `shares` or `sources`"
                )
            if file.is_file() and name != "expected.json" and not files.is_aside(file):
                yield "/".join([*(folders[1:] if folders[:1] == ["src"] else folders), name]), file


def _leads_away(file: pathlib.Path, place: pathlib.Path) -> bool:
    return file.is_symlink() and file.is_dir() and not file.resolve().is_relative_to(place.resolve())


def _files_digest(named: Iterable[tuple[str, pathlib.Path]]) -> str:
    """Return a digest of the names and contents of files. Raises UserError if one cannot be read."""
    total = hashlib.sha256()
    for name, file in named:
        total.update(os.fsencode(name) + b"\0")
        try:
            if file.name == "adapter.json":
                content = hashlib.sha256(_CLAIM.sub(b"", file.read_bytes()))
            else:
                with open(file, "rb") as f:
                    content = hashlib.file_digest(f, "sha256")
            total.update(content.digest())
        except OSError as error:
            raise UserError(
                f"cannot read {file}: {error.strerror}", "make it readable: it is a part of the stack under test"
            ) from None
    return total.hexdigest()[: digests.DIGITS]

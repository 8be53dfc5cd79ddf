"""Read and check adapter manifests, which say what an adapter is, without running any of its programs."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import stat
from collections.abc import Sequence
from typing import Any

from conformance.model.errors import UserError
from conformance.support import paths, schema, spelling

#: where guests look for programs (conformance/guest/init.py sets the same)
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#: from this version of the contract on, a server answers, and a client makes, several requests on a connection
SEVERAL_REQUESTS = 2
#: and from this one on, a client is told what to do with connections, and when to acknowledge
CONNECTIONS = 3

#: {tool: what to install}: tools that Debian 12 does not have in a version that today's stacks compile with
_TOOLCHAINS = {"cargo": "Rust 1.88 or later, with rustup", "go": "Go 1.21 or later"}
#: {program: Debian package}, where their names differ
PACKAGES = {
    "gtlsserver": "ngtcp2-server", "ifconfig": "net-tools", "ip": "iproute2", "mnexec": "mininet",
    "nginx": "nginx-light", "tc": "iproute2",
}  # fmt: skip


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """An adapter.json, with the fields of conformance/schemas/adapter.json. `path` is the path of the file."""

    path: pathlib.Path
    name: str
    title: str
    program: str
    transport: str
    contract: int = 1
    kernel_algorithms: dict[str, Any] | None = None
    algorithms: dict[str, Any] | None = None
    port: int = 4433
    rootfs: bool = False
    client: str | None = None
    client_chooses: bool = False
    build: dict[str, Any] | None = None
    #: files and folders next to the adapter's folder that the build uses, too
    shares: tuple[str, ...] = ()
    #: working trees, or files, elsewhere that the build uses, too
    sources: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def folder(self) -> pathlib.Path:
        return self.path.parent

    def places(self) -> list[pathlib.Path]:
        """Return the folder, and each file or folder that it shares: all that determines what the stack is."""
        return [self.folder, *(self.folder / share for share in self.shares)]

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of the adapters whose builds this one's build uses."""
        return tuple((self.build or {}).get("takes", ()))

    def offered(self) -> list[str]:
        """Return the suite's names of the algorithms that the manifest lists, in its order."""
        return list(self.kernel_algorithms or self.algorithms or ())

    def named(self, rootfs: pathlib.Path | None = None) -> str:
        """Return the stack's name in results: its own, and that of the folder whose programs it runs, if any."""
        return self.name if rootfs is None else f"{self.name}-{rootfs.name}"

    @property
    def own_names(self) -> dict[str, str]:
        """{algorithm: the stack's own name} of the algorithms that the stack offers."""
        return {algorithm: self.called(algorithm) for algorithm in self.offered()}

    def called(self, algorithm: str) -> str:
        """Return the stack's (or the kernel's) own name for an algorithm, or the suite's name if it has none."""
        if self.kernel_algorithms and algorithm in self.kernel_algorithms:
            entry = self.kernel_algorithms[algorithm]
            return entry if isinstance(entry, str) else " or ".join(entry["names"])
        entry = (self.algorithms or {}).get(algorithm)
        name: str = entry["called"] if entry else algorithm
        return name

    def draft(self, algorithm: str) -> str | None:
        """Return the draft that the stack claims to keep with an algorithm; None if it names none."""
        entry = (self.kernel_algorithms or self.algorithms or {}).get(algorithm)
        draft: str | None = entry.get("draft") if isinstance(entry, dict) else None
        return draft

    def require(self) -> None:
        """Raise UserError naming what this machine lacks to run it."""
        if lacking := [tool for tool in self.needs if not which(tool)]:
            raise UserError(
                f"stack {self.name} needs {', '.join(lacking)} on PATH",
                f"{self.mend(lacking)}; `conformance doctor` checks everything else",
            )

    def mend(self, lacking: Sequence[str]) -> str:
        """Return how to install programs and header files that are missing to run or build the stack.

        Names the manifest's packages if none is known to have what is missing, but those of programs that are there.
        """
        if toolchains := [_TOOLCHAINS[tool] for tool in lacking if tool in _TOOLCHAINS]:
            return f"install {' and '.join(toolchains)}"
        named = [PACKAGES.get(tool, tool) for tool in lacking]
        if not set(named) <= set(self.packages):
            there = {PACKAGES.get(tool, tool) for tool in self.needs if which(tool)}
            named = [package for package in self.packages if package not in there]
        return f"run `apt-get install {' '.join(named)}`" if named else "install what is missing"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class NotPublic:
    """A stack that is not public and cannot be run, as `why` says; `study` has the figures published of it."""

    name: str
    title: str
    why: str
    source: str
    study: str

    @property
    def words(self) -> str:
        """One line that says that the stack is not public, and why."""
        return f"{self.title} is not public: {self.why} ({self.source})"


def not_public() -> list[NotPublic]:
    """Return the stacks that are listed but cannot be run, in order of name. Raises UserError."""
    listed = []
    for path in sorted(paths.data("adapters").glob("*/not-public.json")):
        data = schema.load("not-public", path)
        listed.append(NotPublic(**{field.name: data[field.name] for field in dataclasses.fields(NotPublic)}))
    return listed


def search_path() -> str:
    """Return where to look for programs that run outside guests: where the user's shell does, then where guests do."""
    return os.pathsep.join(filter(None, (os.environ.get("PATH"), GUEST_PATH)))


def which_to_build(tool: str) -> str | None:
    """Return the path at which builds find a program, or None."""
    return shutil.which(tool, path=search_path())


def which(tool: str) -> str | None:
    """Return the path at which guests find a program, or None."""
    return shutil.which(tool, path=GUEST_PATH)


def names() -> list[str]:
    """Return the names of the adapters that ship, in order."""
    return sorted(p.parent.name for p in paths.data("adapters").glob("*/adapter.json"))


def shipped() -> list[Manifest]:
    """Return the manifests that ship, in order of name. Raises UserError."""
    return [read(name) for name in names()]


def _mode(file: pathlib.Path) -> int:
    """Return the type and the permissions of a file, as os.stat() does; 0 if there is none."""
    try:
        return file.stat().st_mode
    except (OSError, ValueError):  # not a valid file name
        return 0


def read(stack: str) -> Manifest:
    """Return the manifest of a name in adapters/, or of a path to an adapter.json. Raises UserError."""
    if re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,99}", stack) and not stack.endswith(".json"):
        path = paths.data("adapters", stack, "adapter.json")
        if not path.exists():
            if closed := next((listed for listed in not_public() if listed.name == stack), None):
                raise UserError(
                    f"stack {stack} is unsupported: {closed.words}",
                    f"run `conformance study show {closed.study}` to see what was published about it",
                )
            raise UserError(
                f"stack {stack!r} is not known",
                spelling.mend(
                    stack, names(), f"choose one of {', '.join(names())}, or give the path of an adapter.json"
                ),
            )
    else:
        path = paths.given(stack).absolute()
        with contextlib.suppress(OSError, ValueError):  # not a valid file name: reading it says so
            path = path / "adapter.json" if path.is_dir() else path
    data = schema.load("adapter", path)
    fields = {field.name for field in dataclasses.fields(Manifest)}
    given: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in fields
    }
    manifest = Manifest(path=path, **given)
    if manifest.client and manifest.client_chooses:
        raise UserError(
            f"{path}: /client: its own client has to request the algorithm", "remove client, or client_chooses"
        )
    if manifest.algorithms is not None and manifest.kernel_algorithms is not None:
        raise UserError(
            f"{path}: /kernel_algorithms: the stack has algorithms of its own, too", "leave out one of the two lists"
        )
    programs = {
        "/program": manifest.program,
        **({"/build/program": manifest.build["program"]} if manifest.build else {}),
    }
    for pointer, program in programs.items():
        file = manifest.folder / program
        if not stat.S_ISREG(_mode(file)):
            raise UserError(f"{path}: {pointer}: {file} is not a file", "name one in the adapter's folder")
        if not _mode(file) & 0o111:
            raise UserError(f"{path}: {pointer}: {file} is not executable", f"run `chmod a+rx {file}`")
    for at, place in enumerate(manifest.places()[1:]):
        if not (stat.S_ISREG(_mode(place)) or stat.S_ISDIR(_mode(place))):
            raise UserError(f"{path}: /shares/{at}: {place} is neither a file nor a folder")
        if manifest.folder.resolve().is_relative_to(place.resolve()):
            raise UserError(f"{path}: /shares/{at}: {place} contains the adapter itself", "share a folder next to it")
    for at, source in enumerate(manifest.sources):
        if not (stat.S_ISREG(_mode(manifest.folder / source)) or stat.S_ISDIR(_mode(manifest.folder / source))):
            raise UserError(f"{path}: /sources/{at}: {manifest.folder / source} is neither a file nor a folder")
    paths.refuse_spaces(manifest.folder, "move it")
    return manifest

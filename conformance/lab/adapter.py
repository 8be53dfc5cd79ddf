"""Adapters: how to run one implementation. A manifest and a program, found by folder name or by path."""

import dataclasses
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from conformance import paths, schema
from conformance.lab import building
from conformance.model import digest as digests
from conformance.model.errors import UserError

#: where guests look for programs (conformance/guest/init.py sets the same)
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adapter:
    name: str
    title: str
    folder: pathlib.Path
    program: str
    transport: str
    kernel_algorithms: dict | None
    algorithms: dict | None
    client: object
    build: pathlib.Path | None
    version: str
    digest: str

    def kernel_names(self, algorithm):
        """The kernel's names for it, the first that a kernel has counts; None where the stack brings its own."""
        if self.kernel_algorithms is None:
            return None
        entry = self.kernel_algorithms[algorithm]
        return [entry] if isinstance(entry, str) else entry["names"]

    def kernel(self, algorithm):
        """Name of the guest kernel that has it, where that is not the default; None otherwise."""
        entry = (self.kernel_algorithms or {}).get(algorithm)
        return entry["kernel"] if isinstance(entry, dict) else None

    def offers(self, algorithm):
        """False when the manifest itself rules the algorithm out; the program has the last word (status 127)."""
        if self.kernel_algorithms is not None:
            return algorithm in self.kernel_algorithms
        return self.algorithms is None or algorithm in self.algorithms

    def folders(self):
        """{name under which a stack finds it: folder}: its own files and what was compiled, and its client's."""
        client = self.client or self
        return {
            "adapter": self.folder,
            "build": self.build or self.folder,
            "client": client.folder,
            "client-build": client.build or client.folder,
        }

    def called(self, algorithm):
        """The stack's own name for an algorithm; ours where it brings none of its own."""
        entry = (self.algorithms or {}).get(algorithm)
        return entry["called"] if entry else algorithm

    def first_algorithm(self):
        """Some algorithm to try the stack with."""
        return next(iter(self.kernel_algorithms or self.algorithms or ["cubic"]))


def names():
    return sorted(p.parent.name for p in paths.data("adapters").glob("*/adapter.json"))


def load(stack):
    """The adapter of a name in adapters/, or of a path to an adapter.json, built if it is not. Raises UserError."""
    if re.fullmatch(r"[a-z0-9][a-z0-9.-]*", stack) and not stack.endswith(".json"):
        manifest = paths.data("adapters", stack, "adapter.json")
        if not manifest.exists():
            raise UserError(
                f"stack {stack!r} is not known",
                f"choose one of {', '.join(names())}, or give the path of an adapter.json",
            )
    else:
        manifest = pathlib.Path(stack).expanduser().absolute()
    data = schema.load("adapter", manifest)
    program = manifest.parent / data["program"]
    programs = {"/program": program}
    if "build" in data:
        programs["/build/program"] = manifest.parent / data["build"]["program"]
    for pointer, file in programs.items():
        if not file.is_file() or not file.stat().st_mode & 0o111:
            raise UserError(f"{manifest}: {pointer}: {file} is not an executable file")
    for path in (manifest.parent, program):
        if path.stat().st_mode & 0o005 != 0o005:
            raise UserError(f"{path}: stacks run as nobody, who may not read it", f"run `chmod o+rx {path}`")
    lacking = [tool for tool in data.get("needs", ()) if not _which(tool)]
    if lacking:
        raise UserError(f"stack {data['name']} needs {', '.join(lacking)} on PATH", _mend(data))
    if "build" in data and (lacking := building.missing(data["build"])):
        raise UserError(f"building {data['name']} needs {', '.join(lacking)}", _mend(data))
    client = load(data["client"]) if data.get("client", data["name"]) != data["name"] else None
    own = _files_digest([f for f in sorted(manifest.parent.rglob("*")) if f.is_file()])
    build = building.ensure(data["name"], manifest.parent, data["build"], own) if "build" in data else None
    version = _version(program, build)
    programs = [pathlib.Path(_which(tool)) for tool in data.get("needs", ())]
    built = sorted(f for f in build.rglob("*") if f.is_file()) if build else []
    return Adapter(
        name=data["name"],
        title=data["title"],
        folder=manifest.parent,
        program=data["program"],
        transport=data["transport"],
        kernel_algorithms=data.get("kernel_algorithms"),
        algorithms=data.get("algorithms"),
        client=client,
        build=build,
        version=version if client is None else f"{version}; client {client.name} ({client.version})",
        digest=digests.of_value([version, own, _files_digest(programs + built), client and client.digest]),
    )


def _mend(data):
    packages = data.get("packages")
    return f"run `apt-get install {' '.join(packages)}`" if packages else "install that"


def _which(tool):
    return shutil.which(tool, path=GUEST_PATH)


def _version(program, build):
    """What `program version` prints, on one line; untrusted text, so bounded and made printable."""
    environment = {**os.environ, "CC_BUILD": str(build or "")}
    try:
        done = subprocess.run(
            [str(program), "version"], capture_output=True, text=True, errors="replace", timeout=20, cwd="/",
            env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UserError(f"{program} version did not end within 20 s") from None
    except OSError as error:
        raise UserError(f"cannot run {program}: {error.strerror}") from None
    if done.returncode != 0:
        raise UserError(f"`{program} version` ended with status {done.returncode}")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if line.strip()]
    return "".join(c for c in ", ".join(lines) if c.isprintable())[:200]


def _files_digest(files):
    """Over names and contents."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.name.encode() + b"\0")
        with open(file, "rb") as f:
            total.update(hashlib.file_digest(f, "sha256").digest())
    return total.hexdigest()[: digests.DIGITS]

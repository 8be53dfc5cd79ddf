"""Adapters: how to run one implementation. A manifest and a program, found by folder name or by path."""

import dataclasses
import hashlib
import pathlib
import re
import shutil
import subprocess

from conformance import paths, schema
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
    algorithms: tuple[str, ...] | None
    version: str
    digest: str

    def kernel_algorithm(self, algorithm):
        """The kernel's name for it, or None for a stack that brings its own congestion control."""
        return None if self.kernel_algorithms is None else self.kernel_algorithms.get(algorithm)

    def offers(self, algorithm):
        """False when the manifest itself rules the algorithm out; the program has the last word (status 127)."""
        if self.kernel_algorithms is not None:
            return algorithm in self.kernel_algorithms
        return self.algorithms is None or algorithm in self.algorithms


def names():
    return sorted(p.parent.name for p in paths.data("adapters").glob("*/adapter.json"))


def load(stack):
    """The adapter of a name in adapters/, or of a path to an adapter.json. Raises UserError."""
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
    if not program.is_file() or not program.stat().st_mode & 0o111:
        raise UserError(f"{manifest}: /program: {program} is not an executable file")
    lacking = [tool for tool in data.get("needs", ()) if not _which(tool)]
    if lacking:
        raise UserError(f"stack {data['name']} needs {', '.join(lacking)} on PATH", "run `conformance doctor`")
    version = _version(program)
    return Adapter(
        name=data["name"],
        title=data["title"],
        folder=manifest.parent,
        program=data["program"],
        transport=data["transport"],
        kernel_algorithms=data.get("kernel_algorithms"),
        algorithms=tuple(data["algorithms"]) if "algorithms" in data else None,
        version=version,
        digest=_digest(manifest, version, [_which(tool) for tool in data.get("needs", ())]),
    )


def _which(tool):
    return shutil.which(tool, path=GUEST_PATH)


def _version(program):
    """What `program version` prints, on one line; untrusted text, so bounded and made printable."""
    try:
        done = subprocess.run(
            [str(program), "version"], capture_output=True, text=True, errors="replace", timeout=20, cwd="/"
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{program} version did not end within 20 s") from None
    except OSError as error:
        raise UserError(f"cannot run {program}: {error.strerror}") from None
    if done.returncode != 0:
        raise UserError(f"`{program} version` ended with status {done.returncode}")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if line.strip()]
    return "".join(c for c in ", ".join(lines) if c.isprintable())[:200]


def _digest(manifest, version, programs):
    """Over the adapter's own files and the programs it needs; a build folder is part of its files."""
    total = hashlib.sha256(version.encode())
    files = [f for f in sorted(manifest.parent.rglob("*")) if f.is_file()]
    for file in [*files, *(pathlib.Path(p) for p in programs)]:
        total.update(file.name.encode() + b"\0")
        with open(file, "rb") as f:
            total.update(hashlib.file_digest(f, "sha256").digest())
    return total.hexdigest()[: digests.DIGITS]

"""Built kernels, in the user's cache under a digest of source, configuration and patches.

CACHE/kernels/DIGEST/{linux,kernel.json,config} and CACHE/kernels/names/NAME, which holds a digest.

A variant is a built kernel with module parameters on its command line: a digest of its own, over those and the
kernel's, and a kernel.json that names both; the binary is the kernel's.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping

from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import files, paths

DEFAULT_NAME = "default"
#: for stacks over UDP, where it is built: its system calls cost a fraction of the default's, and to TCP it would matter
USER_SPACE_NAME = "7.2"
#: how to build the kernels that algorithms ask for by name; the patches are the user's (docs/bbr-kernels.md)
_HOW = {
    DEFAULT_NAME: "conformance kernel build",
    "bbrv2": "conformance kernel build bbrv2 --source linux-source-6.1 --patch BBR2.patch",
    "bbrv3": "conformance kernel build bbrv3 --patch BBR3.patch",
    "6.1": "conformance kernel build 6.1 --source linux-source-6.1",
    "7.2": "conformance kernel build 7.2 --source linux-source-7.2",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_PARAMETER = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+\Z")
_VALUE = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kernel:
    """A built kernel; `release` is what it says of itself."""

    name: str
    digest: str
    release: str
    source: str
    patches: tuple[str, ...]
    binary: pathlib.Path
    #: whether it can run programs under seccomp instead of ptrace
    seccomp: bool = False
    #: ((module.name, value), ...) of a variant, in order of name
    parameters: tuple[tuple[str, str], ...] = ()


def check_name(name: str) -> str:
    """Return a name that a kernel may have. Raises UserError."""
    if not _NAME.match(name):
        raise UserError(f"kernel name {name!r}", "use letters, digits, dots, dashes and underscores")
    return name


def folder(digest: str) -> pathlib.Path:
    found: pathlib.Path = paths.cache("kernels", digest)
    return found


def link(name: str, digest: str) -> None:
    """Let `name` mean this kernel from now on."""
    files.write(paths.cache("kernels", "names", name), digest + "\n")


def check_parameters(parameters: Mapping[str, str]) -> None:
    """Raise UserError unless all of {module.name: value} may stand on a kernel's command line."""
    for name, value in parameters.items():
        if not _PARAMETER.match(name) or not _VALUE.match(value):
            raise UserError(f"kernel parameter {name}={value}", "give it as MODULE.NAME=VALUE, as tcp_cubic.beta=610")


def variant(name: str, of: Kernel, parameters: Mapping[str, str]) -> Kernel:
    """Return the kernel `of` with these parameters, {module.name: value}, besides its own. It is not stored."""
    check_parameters(parameters)
    merged = {**dict(of.parameters), **parameters}
    base = _base(of.digest)
    digest = digests.of_value({"kernel": base, "parameters": merged}) if merged else base
    return dataclasses.replace(of, name=check_name(name), digest=digest, parameters=tuple(sorted(merged.items())))


def _base(digest: str) -> str:
    """Return the digest of the kernel whose binary it has."""
    found: str = json.loads((folder(digest) / "kernel.json").read_text()).get("kernel", digest)
    return found


def keep_variant(kernel: Kernel, of: Kernel) -> None:
    """Store a variant() of `of`, under no name yet."""
    about = json.loads((folder(of.digest) / "kernel.json").read_text())
    about.update(kernel=_base(of.digest), parameters=dict(kernel.parameters))
    files.write(folder(kernel.digest) / "kernel.json", json.dumps(about, indent=2) + "\n")


def _read(name: str, digest: str) -> Kernel:
    home = folder(digest)
    about = json.loads((home / "kernel.json").read_text())
    return Kernel(
        name=name,
        digest=digest,
        release=about["release"],
        source=about["source"],
        patches=tuple(about["patches"]),
        binary=folder(about.get("kernel", digest)) / "linux",
        seccomp=about.get("seccomp", False),
        parameters=tuple(sorted(about.get("parameters", {}).items())),
    )


def kernels() -> list[Kernel]:
    """Return every built kernel that has a name, by name."""
    names = paths.cache("kernels", "names")
    found = []
    for entry in sorted(names.iterdir()) if names.is_dir() else ():
        if not entry.name.startswith("."):
            try:
                found.append(_read(entry.name, entry.read_text().strip()))
            except (OSError, ValueError, KeyError):
                continue
    return found


def find(name: str = DEFAULT_NAME) -> Kernel:
    """Return the kernel of this name. Raises UserError where it is not built."""
    for kernel in kernels():
        if kernel.name == name:
            return kernel
    built = ", ".join(k.name for k in kernels()) or "none"
    command = _HOW.get(name, f"conformance kernel build {name}")
    raise UserError(f"no guest kernel named {name!r} is built (built: {built})", f"run `{command}`")


def usual(user_space: bool) -> str:
    """Return the name of the kernel that a stack's trials run on unless someone chooses another."""
    built = {kernel.name for kernel in kernels()}
    return USER_SPACE_NAME if user_space and USER_SPACE_NAME in built else DEFAULT_NAME


def missing(name: str) -> Kernel:
    """Return what stands for a kernel that is not built in the schemes of its trials, none of which can run."""
    return Kernel(name=name, digest="", release="not-built", source="", patches=(), binary=pathlib.Path())

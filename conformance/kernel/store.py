"""Store built kernels in the user's cache, under a digest of source, configuration and patches.

CACHE/kernels/DIGEST/{linux,kernel.json,config} is a kernel. CACHE/kernels/names/NAME holds the digest of the kernel
with that name, and CACHE/kernels/packages/KEY the digest of a kernel that was built from a package, so that it is found
without the package's source.

A variant is a built kernel with module parameters on its command line. It has a digest of its own, over the kernel's
digest and the parameters, and a kernel.json that names both; its binary is the kernel's.
"""

import contextlib
import dataclasses
import json
import pathlib
import re
import shlex
from collections.abc import Mapping
from typing import Annotated

from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import files, paths

DEFAULT_NAME = "default"
#: the commands that build the kernels that algorithms and studies ask for by name; the patch of `fixed` ships
#: (docs/studies.md)
_HOW = {
    DEFAULT_NAME: "conformance kernel build",
    "bbrv2": "conformance kernel build bbrv2 --source linux-source-6.1 --patch bbr2.patch",
    "bbrv3": "conformance kernel build bbrv3 --source linux-source-6.12 --patch bbr3.patch",
}
#: where users get the patches that do not ship: files of _PATCHES (docs/bbr-kernels.md)
_PUBLIC = {"bbrv2": "6.1/0001-bbr2.patch", "bbrv3": "6.12/0002-bbr3.patch"}
_PATCHES = "https://github.com/CachyOS/kernel-patches"
#: name of the kernel whose patch ships with the suite
_FIXED = "fixed"
_SERIES = re.compile(r"\d+\.\d+\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_PARAMETER = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+\Z")
_VALUE = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kernel:
    """A built kernel; `release` is the release that it reports."""

    SHOWN = ("name", "release", "digest", "source", "binary", "patches", "parameters")

    name: str
    digest: str
    release: str
    source: str
    patches: tuple[str, ...]
    binary: pathlib.Path
    #: whether it can run programs under seccomp instead of ptrace
    seccomp: bool = False
    #: ((module.name, value), ...) of a variant, in order of name
    parameters: Annotated[tuple[tuple[str, str], ...], dict[str, str]] = ()


def check_name(name: str) -> str:
    """Return `name` if a kernel may have it. Raises UserError if not."""
    if not _NAME.match(name):
        raise UserError(f"kernel name {name!r} is not valid", "use letters, digits, dots, dashes and underscores")
    return name


def folder(digest: str) -> pathlib.Path:
    return paths.cached("kernels", digest)


def link(name: str, digest: str) -> None:
    """Let `name` mean this kernel from now on."""
    files.write(paths.cache("kernels", "names", name), digest + "\n")


def remember(key: str, digest: str) -> None:
    """Note that this kernel was built from a package by a recipe; `key` is the digest of both."""
    files.write(paths.cache("kernels", "packages", key), digest + "\n")


def remembered(key: str) -> str | None:
    """Return the digest of the kernel that remember() noted for `key`; None if that kernel is not here."""
    kept = paths.cached("kernels", "packages", key)
    digest = kept.read_text().strip() if kept.exists() else ""
    return digest if digest and (folder(digest) / "kernel.json").exists() else None


def check_parameters(parameters: Mapping[str, str]) -> None:
    """Raise UserError unless all parameters {module.name: value} are valid on a kernel's command line."""
    for name, value in parameters.items():
        if not _PARAMETER.match(name) or not _VALUE.match(value):
            raise UserError(
                f"kernel parameter {name}={value} is not valid", "use MODULE.NAME=VALUE, such as tcp_cubic.beta=610"
            )


def variant(name: str, of: Kernel, parameters: Mapping[str, str]) -> Kernel:
    """Return the kernel `of` with these parameters, {module.name: value}, added to its own. It is not stored."""
    check_parameters(parameters)
    merged = {**dict(of.parameters), **parameters}
    base = _base(of.digest)
    digest = digests.of_value({"kernel": base, "parameters": merged}) if merged else base
    return dataclasses.replace(of, name=check_name(name), digest=digest, parameters=tuple(sorted(merged.items())))


def _base(digest: str) -> str:
    """Return the digest of the kernel whose binary the kernel with this digest uses: its own unless it is a variant."""
    base: str = json.loads((folder(digest) / "kernel.json").read_text()).get("kernel", digest)
    return base


def keep_variant(kernel: Kernel, of: Kernel) -> None:
    """Store `kernel`, a variant() of `of`, without a name."""
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
    """Return every built kernel that has a name, sorted by name."""
    by_name: dict[str, Kernel] = {}
    for entry in (entry for cache in paths.caches() for entry in (cache / "kernels" / "names").glob("[!.]*")):
        with contextlib.suppress(OSError, ValueError, KeyError):
            by_name.setdefault(entry.name, _read(entry.name, entry.read_text().strip()))
    return [by_name[name] for name in sorted(by_name)]


def find(name: str = DEFAULT_NAME) -> Kernel:
    """Return the kernel with this name. Raises UserError if it is not built."""
    for kernel in kernels():
        if kernel.name == name:
            return kernel
    built = ", ".join(k.name for k in kernels()) or "none"
    patch = f"; its patch is {_PUBLIC[name]} of {_PATCHES} (docs/bbr-kernels.md)" if name in _PUBLIC else ""
    raise UserError(f"no guest kernel named {name!r} is built (built: {built})", f"run `{how_to_build(name)}`{patch}")


def how_to_build(name: str) -> str:
    """Return the command that builds the kernel with this name. A name such as 6.12 means Debian's source of it."""
    source = f" --source linux-source-{name}" if _SERIES.match(name) else ""
    if name == _FIXED:
        return f"conformance kernel build {name} --source linux-source-7.2 --patch {shlex.quote(str(fixed_patch()))}"
    return _HOW.get(name, f"conformance kernel build {name}{source}")


def fixed_patch() -> pathlib.Path:
    """Return the path of the patch of the kernel `fixed`, relative to the working directory if it is below that."""
    patch, here = paths.data("studies", "kernels", "fixed-7.2.patch"), pathlib.Path.cwd()
    return patch.relative_to(here) if patch.is_relative_to(here) else patch


def missing(name: str) -> Kernel:
    """Return a placeholder for a kernel that is not built, for the schemes of its trials, none of which can run."""
    return Kernel(name=name, digest="", release="not-built", source="", patches=(), binary=pathlib.Path())

"""What goes into the wheel cc-conformance-kernel: the default kernel and a few small programs, as a cache holds them.

The suite is asked for them, so it must be installed where this runs, and they are built where they are not yet.
"""

import json
import pathlib
import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

from conformance import __version__
from conformance.kernel import build, store
from conformance.lab import adapter, building, load, manifest, proxy
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import paths

_RECIPE = paths.PACKAGE / "kernel"
_PACKAGE = "cc_conformance_kernel"
#: the adapters that a first verdict takes, of TCP and of stacks over UDP
_ADAPTERS = ("linux-tcp", "h3-client")


class SameVersion(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Ask for the suite that this was built by: clients are found under a digest of its adapters."""
        metadata["dependencies"] = [f"cc-conformance=={__version__}"]


class Built(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take files from where the suite has them; the tag says which C library they need."""
        self._aside = tempfile.TemporaryDirectory()
        try:
            taken = _taken(pathlib.Path(self._aside.name))
        except UserError as error:
            raise SystemExit(f"no wheel of the kernel: {error}") from None
        build_data["force_include"].update({str(source): f"{_PACKAGE}/{target}" for source, target in taken.items()})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_2_{_newest_c_library(taken)}_x86_64"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the wheel alone."""
        self._aside.cleanup()


def _taken(aside: pathlib.Path) -> dict[pathlib.Path, str]:
    """Return {file or folder: its place in the package}; what is no file yet is made in `aside`. Raises UserError."""
    kernel = store.find()
    home = store.folder(kernel.digest)
    _check(kernel, home)
    name = aside / "name"
    name.write_text(f"{kernel.digest}\n")
    taken = {
        name: f"cache/kernels/names/{kernel.name}",
        **{home / file: f"cache/kernels/{kernel.digest}/{file}" for file in ("linux", "kernel.json", "config")},
        _RECIPE / "patches": "source/patches",
        _RECIPE / "guest.config": "source/guest.config",
    }
    for place, files in _programs():
        taken.update({file: f"cache/adapters/{place}/{file.name}" for file in files})
    return taken


def _check(kernel: store.Kernel, home: pathlib.Path) -> None:
    """Refuse a kernel whose source would not be in the wheel: one of other patches, or of another configuration."""
    major, minor, *_ = (int(number) for number in re.findall(r"\d+", kernel.release))
    patches = [*build.own_patches((major, minor)), *build.faster_patches((major, minor))]
    files = [_RECIPE / "guest.config", *patches]
    inputs = json.loads((home / "kernel.json").read_text())["inputs"]
    if [inputs["config"], *inputs["patches"]] != [digests.of_bytes(file.read_bytes()) for file in files]:
        raise UserError(f"the kernel {kernel.name} is not of this recipe", "run `conformance kernel build`")


def _programs() -> Iterator[tuple[str, list[pathlib.Path]]]:
    """Yield (name of its folder in a cache, its files) of each program, built now if need be."""
    for name in _ADAPTERS:
        folder = adapter.build(name)
        assert folder, f"{name} compiles nothing"
        yield building.brought(name, adapter.files_digest(manifest.read(name))), sorted(folder.iterdir())
    for program in (proxy.PROGRAM, load.PROGRAM, load.BOND_PROGRAM):
        yield program.brought(), sorted(program.ensure().iterdir())


def _newest_c_library(files: Iterable[pathlib.Path]) -> int:
    """Return the N of the newest GLIBC_2.N that a program asks for."""
    programs = [file for file in files if file.is_file() and file.read_bytes().startswith(b"\x7fELF")]
    return max(int(n) for program in programs for n in re.findall(rb"\0GLIBC_2\.(\d+)", program.read_bytes()))

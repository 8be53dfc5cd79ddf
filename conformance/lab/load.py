"""The programs that make the kernel's flows and watch queues, in C, built on demand as the splitter is."""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from conformance.lab import building
from conformance.model import digest as digests
from conformance.support import paths

_FOLDER = paths.PACKAGE / "load"
#: what the build makes
FLOWS, WATCH = "flows", "watch"


@dataclasses.dataclass(frozen=True)
class _Recipe:
    """What building.ensure() asks of an adapter's manifest."""

    name: str = "kernel-flows"
    folder: pathlib.Path = _FOLDER
    path: pathlib.Path = _FOLDER / "build"
    build: dict[str, Any] = dataclasses.field(default_factory=lambda: {"program": "build", "needs": ["cc"]})

    def mend(self, lacking: Sequence[str]) -> str:
        return "run `apt-get install gcc libc6-dev`"


RECIPE = _Recipe()


def programs() -> dict[str, pathlib.Path]:
    """Return {program: its path}, built now if need be. Raises UserError."""
    folder = building.ensure(RECIPE, files_digest())
    return {name: folder / name for name in (FLOWS, WATCH)}


def files_digest() -> str:
    """Return a digest of the files that they are built from."""
    files = sorted(f for f in _FOLDER.iterdir() if f.is_file())
    return digests.of_value([[f.name, f.read_text()] for f in files])

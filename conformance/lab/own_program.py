"""Programs of the suite's own, in C: built on demand into the user's cache, as stacks are."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.lab import building
from conformance.model import digest as digests


@dataclasses.dataclass(frozen=True)
class OwnProgram:
    """A folder with C sources and the script that compiles them, `build`; a building.Recipe."""

    name: str
    folder: pathlib.Path

    @property
    def path(self) -> pathlib.Path:
        """Return the script that builds it."""
        return self.folder / "build"

    @property
    def build(self) -> Mapping[str, Any]:
        """Return what a manifest would say of the build."""
        return {"program": "build", "needs": ["cc"]}

    def mend(self, lacking: Sequence[str]) -> str:
        """Return what provides the tools that a build needs and this machine lacks."""
        return "run `apt-get install gcc libc6-dev`"

    def ensure(self) -> pathlib.Path:
        """Return the folder with what the build made, built now if need be. Raise UserError."""
        return building.ensure(self, self._digest())

    def brought(self) -> str:
        """Return the name of the folder in a cache that holds what was built of these files on another system."""
        return building.brought(self.name, self._digest())

    def _digest(self) -> str:
        files = sorted(f for f in self.folder.iterdir() if f.is_file())
        return digests.of_value([[f.name, f.read_text()] for f in files])

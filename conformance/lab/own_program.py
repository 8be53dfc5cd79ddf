"""Build the suite's own programs, in C, on demand into the user's cache, as stacks are built."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.lab import building
from conformance.model import digest as digests


@dataclasses.dataclass(frozen=True)
class OwnProgram:
    """A folder with C sources and the script `build`, which compiles them. It is a building.Recipe."""

    name: str
    folder: pathlib.Path

    @property
    def path(self) -> pathlib.Path:
        """The path of the script that builds the program."""
        return self.folder / "build"

    @property
    def build(self) -> Mapping[str, Any]:
        """What a manifest would say about the build."""
        return {"program": "build", "needs": ["cc"]}

    def mend(self, lacking: Sequence[str]) -> str:
        """Return what to do about tools that the build needs and this machine lacks."""
        return "run `apt-get install gcc libc6-dev`"

    def ensure(self) -> pathlib.Path:
        """Return the folder with what the build made; build it now if necessary. Raises UserError."""
        return building.ensure(self, self._digest())

    def brought(self) -> str:
        """Return the name of the folder in a cache with what was built from these files on another system."""
        return building.brought(self.name, self._digest())

    def _digest(self) -> str:
        files = sorted(f for f in self.folder.iterdir() if f.is_file())
        return digests.of_value([[f.name, f.read_text()] for f in files])

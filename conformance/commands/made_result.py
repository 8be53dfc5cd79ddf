"""The result of commands that make files or kernels: what was made, where, and the line that tells the user."""

import dataclasses
from collections.abc import Sequence

from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that was made. `words`: the line that the user reads."""

    name: str
    words: str
    path: str | None = None
    digest: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Everything that a command made. `command`: the command's name, such as "kernel build"."""

    command: str
    items: Sequence[Item]
    exit_status: ExitStatus = ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/made.json."""
        made = [{"name": item.name, "path": item.path, "digest": item.digest} for item in self.items]
        return document("made", self.exit_status, command=self.command, made=made)

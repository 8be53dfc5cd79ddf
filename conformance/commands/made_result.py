"""What commands that make files or kernels return: what was made, where, and how a person is told."""

import dataclasses
from collections.abc import Sequence

from conformance.commands.result import Document, document
from conformance.commands.status import ExitStatus


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that was made. `words`: the line for a person."""

    name: str
    words: str
    path: str | None = None
    digest: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """All that a command made. `command`: its name, such as "kernel build"."""

    command: str
    items: Sequence[Item]
    exit_status: ExitStatus = ExitStatus.DONE

    def to_json(self) -> Document:
        """Return a document of schemas/made.json."""
        made = [{"name": item.name, "path": item.path, "digest": item.digest} for item in self.items]
        return document("made", self.exit_status, command=self.command, made=made)

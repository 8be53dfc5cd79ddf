"""The result of commands that make files or kernels: what was made, where, and the line that tells the user."""

import dataclasses
from collections.abc import Sequence

from conformance.commands.result import Result
from conformance.commands.status import ExitStatus


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that was made. `words`: the line that the user reads."""

    SHOWN = ("name", "path", "digest")

    name: str
    words: str
    path: str | None = None
    digest: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made(Result):
    """Everything that a command made."""

    SCHEMA = "made"
    SHOWN = ("command", "made=items")

    #: The command's name, such as kernel build.
    command: str
    items: Sequence[Item]
    exit_status: ExitStatus = ExitStatus.DONE

"""The result of commands that make files or kernels: what was made, where, and the line that tells the user."""

import dataclasses
from collections.abc import Sequence
from typing import Annotated

from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.support.record import At, Record, Text


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing that was made. `words`: the line that the user reads."""

    name: str
    words: str
    path: str | None = None
    digest: str | None = None


class MadeItem(Record):
    name: str
    path: Text | None
    digest: str | None


class MadeRecord(Record):
    #: The command's name, such as kernel build.
    command: str
    made: Annotated[list[MadeItem], At("items")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Made(Result):
    """Everything that a command made. `command`: the command's name, such as "kernel build"."""

    SCHEMA = "made"
    RECORD = MadeRecord

    command: str
    items: Sequence[Item]
    exit_status: ExitStatus = ExitStatus.DONE

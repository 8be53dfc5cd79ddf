"""What every command's `compute` returns, and the document that `--format json` prints of it.

A result's own fields are its document, or those that its SHOWN names, or else a record says what the document has
(conformance/support/record.py). The schemas in conformance/schemas are generated from these records (schemas.py).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

from conformance.commands.status import ExitStatus
from conformance.support.record import Record, filled, plain, record_of

#: a JSON object of a schema in conformance/schemas
Document = dict[str, Any]


class Result:
    """Everything that a command found out. It prints nothing itself; conformance/reporting shows it."""

    __slots__ = ()

    #: the name of the schema; a document names it with its version, as in "compare/1"
    SCHEMA: ClassVar[str]
    VERSION: ClassVar[int] = 1
    #: the record that the document is made of; without one, it is the result's own: see record_of()
    RECORD: ClassVar[type[Record] | None] = None

    @property
    def exit_status(self) -> ExitStatus:
        """How the command ended; DONE if it judges nothing."""
        return ExitStatus.DONE


def record(kind: Any) -> type[Record]:
    """Return the record of a kind of results."""
    return kind.RECORD or record_of(kind)


def printed(result: Result) -> Document:
    """Return the JSON document of a result: its schema, how the command ended, and the fields of its record."""
    fields = plain(filled(record(type(result)), result))
    return {"schema": f"{result.SCHEMA}/{result.VERSION}", "exit_status": int(result.exit_status), **fields}


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

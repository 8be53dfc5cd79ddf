"""What every command's `compute` returns: a frozen result, which a renderer shows and `--format json` prints."""

from typing import Any, Protocol

from conformance.commands.status import ExitStatus

#: a JSON object of a schema in conformance/schemas
Document = dict[str, Any]


class Result(Protocol):
    """All that a command found out. It prints nothing; conformance/reporting shows it."""

    @property
    def exit_status(self) -> ExitStatus:
        """Say how the command ended."""
        ...

    def to_json(self) -> Document:
        """Return the result as a document of the schema that its field "schema" names: "compare/1" is compare.json."""
        ...


class Done:
    """A result that passes no judgement: a command that has one is done."""

    __slots__ = ()

    @property
    def exit_status(self) -> ExitStatus:
        """Say DONE."""
        return ExitStatus.DONE


def document(name: str, exit_status: ExitStatus, **fields: Any) -> Document:
    """Begin a document: which schema it keeps, and how the command ended."""
    return {"schema": f"{name}/1", "exit_status": int(exit_status), **fields}

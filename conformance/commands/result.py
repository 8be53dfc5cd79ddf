"""Interface of what every command's `compute` returns: a frozen result that renderers and `--format json` print."""

from typing import Any, Protocol

from conformance.commands.status import ExitStatus

#: a JSON object of a schema in conformance/schemas
Document = dict[str, Any]


class Result(Protocol):
    """Everything that a command found out. It prints nothing itself; conformance/reporting shows it."""

    @property
    def exit_status(self) -> ExitStatus:
        """How the command ended."""
        ...

    def to_json(self) -> Document:
        """Return the result as a document of the schema that its field "schema" names: "compare/1" is compare.json."""
        ...


class Done:
    """Base of results without a judgement: their exit status is always DONE."""

    __slots__ = ()

    @property
    def exit_status(self) -> ExitStatus:
        """Always DONE."""
        return ExitStatus.DONE


def document(name: str, exit_status: ExitStatus, **fields: Any) -> Document:
    """Return a JSON document that names its schema and how the command ended, and has these `fields`."""
    return {"schema": f"{name}/1", "exit_status": int(exit_status), **fields}

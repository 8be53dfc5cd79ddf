"""What every command's `compute` returns, and the document that `--format json` prints of it.

A document is declared as a *record*: typed fields that are filled from the attributes of the same names. The schemas in
conformance/schemas are generated from these records (conformance/commands/schemas.py).
"""

import math
import operator
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from conformance.commands.status import ExitStatus

#: a JSON object of a schema in conformance/schemas
Document = dict[str, Any]


class Text(str):
    """A string in a document, of something that has an `id`, such as a cell, or of a path."""

    __slots__ = ()


class At:
    """In a field's Annotated type: the attributes that the field is read from, if not from the one of its own name."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths


class Record(msgspec.Struct):
    """Base of what a document or a part of it is made of."""


_R = TypeVar("_R", bound=Record)


class Result:
    """Everything that a command found out. It prints nothing itself; conformance/reporting shows it."""

    __slots__ = ()

    #: the name of the schema; a document names it with its version, as in "compare/1"
    SCHEMA: ClassVar[str]
    #: the record that the document is made of
    RECORD: ClassVar[type[Record]]

    @property
    def exit_status(self) -> ExitStatus:
        """How the command ended; DONE if it judges nothing."""
        return ExitStatus.DONE


def filled(kind: Any, source: Any) -> Any:
    """Return what a field of this type holds, read from `source`; a Record is filled from the attributes of its."""
    if isinstance(source, Record):
        return source
    if isinstance(kind, type) and issubclass(kind, Record):
        hints = typing.get_type_hints(kind, include_extras=True)
        return kind(**{name: filled(hint, _read(source, name, hint)) for name, hint in hints.items()})
    if kind is Text:
        return str(getattr(source, "id", source))
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return filled(parts[0], source)
    if source is None or origin in (types.UnionType, typing.Union):
        return None if source is None else filled(next(part for part in parts if part is not type(None)), source)
    if origin is list:
        return [filled(parts[0], one) for one in source]
    if origin is dict:
        return {str(name): filled(parts[1], one) for name, one in dict(source).items()}
    return source


def extended(kind: type[_R], source: Any, base: type[Record], **fields: Any) -> _R:
    """Return a record with these fields and those of its base class, which are filled from `source`."""
    return kind(**msgspec.structs.asdict(filled(base, source)), **fields)


def _read(source: Any, name: str, hint: Any) -> Any:
    """Return the attribute `name` of a source, or what its hint says instead."""
    at = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, At)), At(name))
    found = [operator.attrgetter(path)(source) for path in at.paths]
    return found if len(found) > 1 else found[0]


def printed(result: Result) -> Document:
    """Return the JSON document of a result: its schema, how the command ended, and the fields of its record."""
    if hasattr(result, "to_json"):
        old: Document = result.to_json()
        return old
    fields = _finite(msgspec.to_builtins(filled(result.RECORD, result), str_keys=True))
    return {"schema": f"{result.SCHEMA}/1", "exit_status": int(result.exit_status), **fields}


def _finite(value: Any) -> Any:
    """Return a value of a document with None for each infinite number, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def document(name: str, exit_status: ExitStatus, **fields: Any) -> Document:
    """Return a JSON document that names its schema and how the command ended, and has these `fields`."""
    return {"schema": f"{name}/1", "exit_status": int(exit_status), **fields}

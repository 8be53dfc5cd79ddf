"""Records: what documents are made of. Their typed fields are read from objects or files, and schemas are generated
from them.

A field is read from the attribute of its own name, unless its type says `Annotated[..., At(...)]`. A dataclass whose
document has the same fields needs no Record beside it: record_of() makes one.
"""

import dataclasses
import functools
import json
import math
import os
import pathlib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from conformance.support import files, paths, schema


class Text(str):
    """A string in a document, of something that has an `id`, such as a cell, or of a path."""

    __slots__ = ()


class At:
    """In a field's Annotated type: where the field is read from, if not from the attribute of its own name.

    A path has names of attributes and indices, such as `scheme.id` or `0.id`, and ends at None. Instead, there may be a
    function of the source; several paths or functions give a list.
    """

    def __init__(self, *paths: str | Callable[[Any], Any]) -> None:
        self.paths = paths


class Record(msgspec.Struct):
    """Base of what a document or a part of it is made of."""


class KeptDocument(Record):
    """Base of what a file holds. `make schemas` generates its schema, which allows for `$schema`, too."""

    #: the name of the schema
    SCHEMA: ClassVar[str]
    #: whether what has a default may be left out
    SPARSE: ClassVar[bool] = False


_R = TypeVar("_R", bound=Record)
_K = TypeVar("_K", bound=KeptDocument)


def read(kind: type[_K], path: pathlib.Path) -> _K:
    """Return the document at `path`, checked against its schema. Raises UserError."""
    return msgspec.convert(schema.load(kind.SCHEMA, path), kind)


def write(document: KeptDocument, path: pathlib.Path) -> pathlib.Path:
    """Write a document of one list, a line for each of its entries; return `path`. Raises UserError."""
    (name,) = document.__struct_fields__
    schema_path = pathlib.Path(os.path.relpath(paths.PACKAGE / "schemas" / f"{document.SCHEMA}.json", path.parent))
    head = f'{{\n  "$schema": "{schema_path.as_posix()}",\n  "{name}": [\n'
    entries = (json.dumps(msgspec.to_builtins(entry), ensure_ascii=False) for entry in getattr(document, name))
    lines = ",\n".join(f"    {entry}" for entry in entries)
    return files.write(path, f"{head}{lines}\n  ]\n}}\n", "make the file writable, in a checkout of the suite")


@functools.cache
def record_of(kind: Any) -> type[Record]:
    """Return the Record with the fields of a dataclass, or the fields and properties that its SHOWN names, in order.

    What a field is in a document follows from its type, unless that is Annotated with another: `Annotated[..., form]`.
    In SHOWN, `name=path` gives another name to a field, or to one of what a field holds.
    """
    names = getattr(kind, "SHOWN", None) or [field.name for field in dataclasses.fields(kind)]
    fields = []
    for name, _, path in (shown.partition("=") for shown in names):
        form = _form(type_at(kind, path or name))
        fields.append((name, Annotated[form, At(path)] if path else form))
    record: Any = msgspec.defstruct(kind.__name__, fields, bases=(Record,), namespace={"OF": kind})
    return typing.cast(type[Record], record)


def type_at(kind: Any, path: str) -> Any:
    """Return the type of what a path of fields and properties leads to; it may be None if one on the way may be."""
    name, _, further = path.partition(".")
    hint = typing.get_type_hints(kind, include_extras=True).get(name)
    if hint is None:
        attribute = getattr(kind, name)
        # A property, or a cached one.
        of = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
        hint = typing.get_type_hints(of, include_extras=True)["return"] if of else type(attribute)
    if not further:
        return hint
    possible = [part for part in typing.get_args(hint) if part is not types.NoneType]
    return type_at(possible[0], further) | None if possible else type_at(hint, further)


def _form(hint: Any) -> Any:
    """Return the type that a document has where a dataclass has a field of this type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return parts[1]
    if origin in (types.UnionType, typing.Union):
        return typing.Union[tuple(map(_form, parts))]  # noqa: UP007
    if origin is ClassVar:
        return _form(parts[0])
    if origin in (tuple, list, Sequence):
        return list[_form(parts[0])]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, _form(parts[1])]  # type: ignore[misc]
    if isinstance(hint, type) and issubclass(hint, pathlib.Path):
        return Text
    if isinstance(getattr(hint, "id", None), property) and not hasattr(hint, "SHOWN"):
        return Text
    is_record = dataclasses.is_dataclass(hint)
    return record_of(hint) if is_record else hint


def filled(kind: Any, source: Any) -> Any:
    """Return what a field of this type holds, read from `source`; a Record is filled from its attributes.

    Raise TypeError if there is nothing to read, and the type does not allow for that.
    """
    if source is None and isinstance(kind, type) and issubclass(kind, (Record, str, int, float)):
        raise TypeError(f"there is no {kind.__name__} to read")
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
        return [filled(parts[0], part) for part in source]
    if origin is dict:
        return {str(name): filled(parts[1], part) for name, part in dict(source).items()}
    return source


def extended(kind: type[_R], source: Any, base: type[Record], /, **fields: Any) -> _R:
    """Return a record with these fields and those of its base class, which are filled from `source`."""
    return kind(**msgspec.structs.asdict(filled(base, source)), **fields)


def _read(source: Any, name: str, hint: Any) -> Any:
    """Return the attribute `name` of a source, or what its hint says instead."""
    at = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, At)), At(name))
    parts = [path(source) if callable(path) else follow(source, path) for path in at.paths]
    return parts if len(parts) > 1 else parts[0]


def follow(source: Any, path: str) -> Any:
    """Return what a path of attributes and indices, such as `scheme.id` or `0.id`, leads to; it ends at None."""
    return functools.reduce(_step, path.split("."), source)


def _step(source: Any, step: str) -> Any:
    if source is None:
        return None
    return source[int(step)] if step.isdigit() else getattr(source, step)


def plain(record: Record) -> dict[str, Any]:
    """Return a record as a JSON object, with None for each infinite number, which JSON lacks."""
    builtins: dict[str, Any] = _finite(msgspec.to_builtins(record, str_keys=True))
    return builtins


def _finite(value: Any) -> Any:
    """Return a value of a document with None for each infinite number, which JSON lacks."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value

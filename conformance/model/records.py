"""Records of a scenario: written as JSON without fields that have their default value, and read back by their types."""

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, Self


class Sparse:
    """A dataclass that is written without defaults, so that a field added later changes no digest."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        document = {}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            content = getattr(self, field.name)
            if field.default is dataclasses.MISSING or content != field.default:
                document[field.name] = _plain(content)
        return document

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the record that to_json() wrote, or that a document which satisfies its schema describes."""
        return cls(**{name: cls.read(name, content) for name, content in data.items()})

    @classmethod
    def read(cls, name: str, content: Any) -> Any:
        """Return what one of the fields holds in a record."""
        kind: Any = cls
        return _read(_types(kind).get(name), content)


@functools.cache
def _types(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _plain(content: Any) -> Any:
    if isinstance(content, tuple):
        return [_plain(part) for part in content]
    if isinstance(content, float) and content.is_integer():
        return int(content)  # 10.0 and 10 are one number, and have one digest
    return content.to_json() if hasattr(content, "to_json") else content


def _read(kind: Any, content: Any) -> Any:
    """Return what a field of this type holds: a record for an object, and a tuple for a list."""
    for part in typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,):
        if isinstance(content, Mapping) and isinstance(part, type) and issubclass(part, Sparse):
            return part.from_json(content)
        if isinstance(content, list | tuple) and typing.get_origin(part) is tuple:
            return tuple(_read(typing.get_args(part)[0], of) for of in content)
    # JSON has one kind of number: a schema's integer may be written as 2.0.
    return int(content) if isinstance(content, float) and content.is_integer() else content

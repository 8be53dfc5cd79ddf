"""Write frozen dataclasses as JSON and read them back strictly, for messages between host and guest.

A guest's messages may be truncated or come from an untrusted source. A record is therefore accepted only if it has
exactly its fields, each of its type. Types are bool, int, float, str, `X | None`, tuples, dictionaries with text as
keys, other dataclasses, and `object` for any JSON. A dataclass checks more in its __post_init__.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing is not worth its import in a guest
    from typing import Any, TypeVar

    T = TypeVar("T")

#: types that to_json() leaves as they are; and, of numbers that a record may hold, the types that they may have in JSON
_PLAIN = frozenset((bool, int, float, str, types.NoneType))
_NUMBERS: dict[Any, frozenset[type]] = {
    int: frozenset((int,)),
    float: frozenset((int, float)),
    int | None: frozenset((int, types.NoneType)),
    float | None: frozenset((int, float, types.NoneType)),
}
#: A bound on integers: larger counts of bytes or packets make no sense, and their sums would not fit a float.
_MOST = 1 << 62


class ProtocolError(Exception):
    """A record does not have the form that the protocol requires; the message says where and why."""


def dumps(record: object) -> str:
    """Return a dataclass as one line of JSON."""
    return json.dumps(to_json(record), sort_keys=True)


def loads(text: str | bytes) -> object:
    """Return the value of a JSON document. Raises ProtocolError if the text is not JSON."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from None


def to_json(value: Any) -> Any:
    """Return a dataclass, or whatever its fields hold, as dictionaries, lists and plain values."""
    if type(value) in _PLAIN:
        return value
    if dataclasses.is_dataclass(value):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value) if _PLAIN.issuperset(map(type, value)) else [to_json(item) for item in value]
    return value


def read(kind: type[T], data: object, where: str = "") -> T:
    """Convert `data`, as parsed from JSON, to a `kind`; `where` is its JSON pointer. Raises ProtocolError."""
    record: T = _read(kind, data, where)
    return record


def require(kept: bool, why_not: str) -> None:
    """Raise ProtocolError with the message `why_not` unless `kept` is true; for use in __post_init__."""
    if not kept:
        raise ProtocolError(why_not)


def _read(kind: Any, data: Any, where: str) -> Any:
    if kind is object:
        _expect(_is_text(json.dumps(data, ensure_ascii=False)), where, "text", data)
        return data
    if isinstance(kind, types.UnionType):
        (only,) = (each for each in kind.__args__ if each is not types.NoneType)
        return None if data is None else _read(only, data, where)
    origin = getattr(kind, "__origin__", kind)
    if origin is tuple:
        _expect(isinstance(data, (list, tuple)), where, "a list", data)
        return _items(kind.__args__, data, where)
    if origin is dict:
        _expect(isinstance(data, dict), where, "an object", data)
        return {name: _read(kind.__args__[1], item, f"{where}/{name}") for name, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _record(kind, data, where)
    return _plain(kind, data, where)


def _items(kinds: Any, data: Any, where: str) -> tuple[Any, ...]:
    if kinds[-1] is Ellipsis:
        # A trial's samples are a thousand numbers: looking at each one takes longer than all else on the host.
        if _are_numbers(kinds[0], data):
            return tuple(data)
        return tuple(_read(kinds[0], item, f"{where}/{at}") for at, item in enumerate(data))
    _expect(len(data) == len(kinds), where, f"a list of {len(kinds)}", data)
    return tuple(_read(kind, item, f"{where}/{at}") for at, (kind, item) in enumerate(zip(kinds, data, strict=True)))


def _are_numbers(kind: Any, data: Any) -> bool:
    """Return whether `data` are numbers of this kind, beyond doubt: False for any that are almost too large."""
    if kind not in _NUMBERS or not _NUMBERS[kind].issuperset(map(type, data)):
        return False
    numbers = [number for number in data if number is not None]
    # A sum that is not a number is not less than anything.
    return not numbers or (-_MOST < min(numbers) and max(numbers) < _MOST and -math.inf < sum(numbers))


def _record(kind: Any, data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), where, "an object", data)
    kinds = {field.name: field.type for field in dataclasses.fields(kind)}
    if data.keys() != kinds.keys():
        name = min(data.keys() ^ kinds.keys())
        raise ProtocolError(f"{where}/{name}: {'unknown' if name in data else 'missing'} in {kind.__name__}")
    try:
        return kind(**{name: _read(kinds[name], item, f"{where}/{name}") for name, item in data.items()})
    except ProtocolError as error:
        # A message of __post_init__ does not say where yet.
        raise error if str(error).startswith("/") else ProtocolError(f"{where or '/'}: {error}") from None


def _plain(kind: Any, data: Any, where: str) -> Any:
    wanted = (int, float) if kind is float else (kind,)
    _expect(isinstance(data, wanted) and isinstance(data, bool) == (kind is bool), where, kind.__name__, data)
    if kind in (int, float):
        _expect(math.isfinite(data) if isinstance(data, float) else abs(data) < _MOST, where, "a number", data)
    elif kind is str:
        _expect(_is_text(data), where, "text", data)
    return data


def _is_text(data: str) -> bool:
    """Return whether a string is free of lone surrogates, which no file and no terminal accepts."""
    try:
        data.encode()
    except UnicodeEncodeError:
        return False
    return True


def _expect(kept: bool, where: str, what: str, data: object) -> None:
    if not kept:
        raise ProtocolError(f"{where or '/'}: expected {what}, got {data!r:.60}")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object contains a key twice")
    return members

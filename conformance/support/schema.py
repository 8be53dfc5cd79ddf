"""Validate documents against the schemas that ship with the suite; errors name file, place and expectation."""

import functools
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from conformance.model.errors import UserError
from conformance.support import paths

#: the names and indexes that lead to a value in a document
Place = tuple[str | int, ...]
#: bound on the size of any number: Python's integers are unbounded, but what is computed from them is not
LARGEST = 1e300


@functools.cache
def _validator(name: str, field: str | None = None) -> Any:
    import jsonschema  # late: the host room also runs where only the standard library is installed

    document = json.loads((paths.PACKAGE / "schemas" / f"{name}.json").read_text())
    return jsonschema.Draft202012Validator(document if field is None else document["properties"][field])


def pattern(name: str, field: str) -> str:
    """Return the regular expression that a field of documents of schema `name` has to match."""
    found: str = _validator(name).schema["properties"][field]["pattern"]
    return found


def check(name: str, data: Any, where: object, field: str | None = None) -> None:
    """Raise UserError naming `where`, the JSON pointer and what was expected, unless `data` satisfies schema `name`.

    With `field`, `data` must satisfy the part of the schema that is about this field.
    """
    from jsonschema.exceptions import best_match

    error = best_match(_validator(name, field).iter_errors(data))
    if error is not None:
        raise UserError(f"{where}: {_pointer(error.absolute_path)}: {_shorten(error.message)}")


def load(name: str, path: pathlib.Path) -> Any:
    """Return the JSON document at `path`, checked against schema `name`. Raises UserError."""
    data = read(path)
    check(name, data, path)
    return data


def ordered(name: str, data: Any) -> Any:
    """Return a document that satisfies schema `name`, with the names in each object in the schema's order; names that
    the schema does not list come last, sorted.
    """
    root = _validator(name).schema

    def order(value: Any, of: Any) -> Any:
        of = root["$defs"][of["$ref"].rpartition("/")[2]] if "$ref" in of else of
        if isinstance(value, list):
            return [order(one, of.get("items", {})) for one in value]
        if not isinstance(value, dict):
            return value
        known, others = of.get("properties", {}), of.get("additionalProperties") or {}
        names = [*(n for n in known if n in value), *sorted(n for n in value if n not in known)]
        return {n: order(value[n], known.get(n, others)) for n in names}

    return order(data, root)


def read(path: pathlib.Path) -> Any:
    """Return the JSON document at `path`, whatever it holds. Raises UserError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: /: nested too deeply") from None
    check_values(data, path)
    return data


def check_values(data: Any, where: object) -> None:
    """Reject what JSON Schema cannot: duplicate names, numbers too large for a float, lone surrogates.

    Raises UserError naming `where` and the JSON pointer.
    """
    for parts, value in _places(data):
        if why := _why_not(parts, value):
            raise UserError(f"{where}: {_pointer(parts)}: {why}")


class _Twice:
    """Stands for the value of a name that an object has more than once, because it is unclear which one was meant."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        found[name] = _Twice() if name in found else value
    return found


def _why_not(parts: Place, value: object) -> str | None:
    """Return what is wrong with a value or its name, in words; None if nothing is."""
    if isinstance(value, _Twice):
        return "the name appears twice"
    if isinstance(value, (int, float)) and not abs(value) < LARGEST:
        return f"{_shorten(str(value), 40)} is not between {-LARGEST:g} and {LARGEST:g}"
    try:
        "".join(text for text in (*parts[-1:], value) if isinstance(text, str)).encode("utf-8")
    except UnicodeEncodeError:
        return "half of a character (a lone surrogate) is not text"  # JSON can escape that: RFC 8259, section 8.2
    return None


def _pointer(parts: Sequence[str | int]) -> str:
    """Return a JSON pointer (RFC 6901), with unprintable and non-ASCII characters escaped."""
    return "/" + "/".join(
        str(part).replace("~", "~0").replace("/", "~1").encode("unicode_escape").decode() for part in parts
    )


def _places(data: Any) -> Iterator[tuple[Place, Any]]:
    """Yield (place, value) for every value in a document, however deep."""
    rest: list[tuple[Place, Any]] = [((), data)]
    while rest:
        parts, value = rest.pop()
        yield parts, value
        if isinstance(value, dict):
            rest += (((*parts, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            rest += (((*parts, at), inner) for at, inner in enumerate(value))


def refuse(constant: str) -> NoReturn:
    """Raise ValueError, as `parse_constant` of json.loads(): JSON has no NaN and no infinities."""
    raise ValueError(f"{constant} is not a number")


def _shorten(message: str, limit: int = 200) -> str:
    return message if len(message) <= limit else message[: limit // 2] + " ... " + message[-limit // 2 :]

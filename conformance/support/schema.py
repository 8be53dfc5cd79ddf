"""Validate documents against the schemas that ship with the suite; errors name file, place and expectation.

Others write documents, too, so size and depth are bounded (docs/security.md), and so is the search for errors.
"""

import collections
import functools
import hashlib
import itertools
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from conformance.model.errors import UserError
from conformance.support import characters, paths

#: the names and indexes that lead to a value in a document
DocumentPlace = tuple[str | int, ...]
#: bound on the size of any number: Python's integers are unbounded, but what is computed from them is not
LARGEST = 1e300
#: the most bytes of a document, and of a file that a scenario names
_MOST_BYTES, MOST_TRACE_BYTES = 4_000_000, 8_000_000
#: how deep values may be nested; the documents that ship are nested up to 8 deep
_DEEPEST = 50
#: how many errors each keyword of a schema finds in a value: an error takes 3 kB, and one is shown
_MOST_ERRORS = 10
#: (schema, digest of the content) of each document that satisfied it: commands read what ships several times
_SATISFIED: set[tuple[str, bytes]] = set()


@functools.cache
def _validator(name: str, field: str | None = None) -> Any:
    document = json.loads((paths.PACKAGE / "schemas" / f"{name}.json").read_text())
    return _class()(document if field is None else document["properties"][field])


@functools.cache
def _class() -> Any:
    """Return the class of validators, which search each value for a few errors only."""
    import jsonschema  # late: it takes long to import

    library = jsonschema.Draft202012Validator.VALIDATORS
    keywords = {**library, "items": functools.partial(_items, library["items"]), "uniqueItems": _unique}
    extend: Callable[..., Any] = jsonschema.validators.extend
    return extend(jsonschema.Draft202012Validator, {keyword: _few(find) for keyword, find in keywords.items()})


def _few(find: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    return lambda *of: itertools.islice(find(*of) or (), _MOST_ERRORS)


def _items(find: Callable[..., Any], validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]) -> Any:
    """Return what `find`, the library's keyword, finds; nothing if all items have the type that alone is asked of them.

    The library makes a validator for each item, which for the thousands of numbers in a zone takes most of its time.
    """
    kind = wanted.get("type") if isinstance(wanted, dict) and len(wanted) == 1 else None
    if isinstance(kind, str) and isinstance(value, list) and all(validator.is_type(item, kind) for item in value):
        return ()
    return find(validator, wanted, value, schema)


def _unique(validator: Any, _wanted: bool, value: Any, _schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield an error if a list has an item twice. The library's own check of unlike items takes quadratic time."""
    import jsonschema

    if validator.is_type(value, "array") and len({json.dumps(member, sort_keys=True) for member in value}) < len(value):
        yield jsonschema.ValidationError("an item appears twice")


def pattern(name: str, field: str) -> str:
    """Return the regular expression that a field of documents of schema `name` has to match."""
    pattern_text: str = _validator(name).schema["properties"][field]["pattern"]
    return pattern_text


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
    text = _text(path)
    key = name, hashlib.sha256(text.encode()).digest()
    data = _parsed(text, path)
    if key not in _SATISFIED:
        check_values(data, path)
        check(name, data, path)
        _SATISFIED.add(key)
    return data


def ordered(name: str, data: Any) -> Any:
    """Return a document that satisfies schema `name`, with the names in each object in the schema's order; names that
    the schema does not list come last, sorted.
    """
    root = _validator(name).schema

    def order(value: Any, of: Any) -> Any:
        of = root["$defs"][of["$ref"].rpartition("/")[2]] if "$ref" in of else of
        if isinstance(value, list):
            return [order(member, of.get("items", {})) for member in value]
        if not isinstance(value, dict):
            return value
        known, others = of.get("properties", {}), of.get("additionalProperties") or {}
        names = [*(n for n in known if n in value), *sorted(n for n in value if n not in known)]
        return {n: order(value[n], known.get(n, others)) for n in names}

    return order(data, root)


def read(path: pathlib.Path) -> Any:
    """Return the JSON document at `path`, whatever it holds. Raises UserError."""
    data = _parsed(_text(path), path)
    check_values(data, path)
    return data


def _text(path: pathlib.Path) -> str:
    try:
        return read_bytes(path, _MOST_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _parsed(text: str, path: pathlib.Path) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: /: nested too deeply") from None


def read_bytes(path: pathlib.Path, most: int) -> bytes:
    """Return the content of a file. Raises OSError, and UserError if it has more than `most` bytes."""
    with open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"cannot read {path}: it has more than {most / 1e6:g} MB")
    return content


def check_values(data: Any, where: object) -> None:
    """Reject what JSON Schema cannot: duplicate names, numbers too large for a float, deep nesting, characters that no
    text should have.

    Raises UserError naming `where` and the JSON pointer.
    """
    for parts, value in _places(data):
        if why := _why_not(parts, value):
            raise UserError(f"{where}: {_pointer(parts)}: {why}")


class _Twice:
    """Stands for the value of a name that an object has more than once, because it is unclear which one was meant."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        members[_repeated(pairs)] = _Twice()
    return members


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dict, as `object_pairs_hook` of json.loads(). Raises ValueError if a name appears twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError(f"the name {_repeated(pairs)!r:.40} appears twice")
    return members


def _repeated(pairs: list[tuple[str, Any]]) -> str:
    return collections.Counter(name for name, _ in pairs).most_common(1)[0][0]


def _why_not(parts: DocumentPlace, value: object) -> str | None:
    """Return what is wrong with a value or its name, in words; None if nothing is."""
    if isinstance(value, _Twice):
        return "the name appears twice"
    if len(parts) > _DEEPEST:
        return f"nested more than {_DEEPEST} deep"
    if isinstance(value, (int, float)) and not abs(value) < LARGEST:
        return f"{_shorten(str(value), 40)} is not between {-LARGEST:g} and {LARGEST:g}"
    text = "".join(text for text in (*parts[-1:], value) if isinstance(text, str))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "half of a character (a lone surrogate) is not text"  # JSON can escape that: RFC 8259, section 8.2
    return "control characters are not text" if characters.has_control(text) else None


def _pointer(parts: Sequence[str | int]) -> str:
    """Return a JSON pointer (RFC 6901), with unprintable and non-ASCII characters escaped."""
    return "/" + "/".join(
        str(part).replace("~", "~0").replace("/", "~1").encode("unicode_escape").decode() for part in parts
    )


def _places(data: Any) -> Iterator[tuple[DocumentPlace, Any]]:
    """Yield (place, value) for every value in a document, however deep."""
    yield (), data
    rest = [_inner((), data)]  # iterators, because a list of all that is left would take more memory than the document
    while rest:
        for parts, value in rest[-1]:
            yield parts, value
            if isinstance(value, (dict, list)):
                rest.append(_inner(parts, value))
                break
        else:
            rest.pop()


def _inner(parts: DocumentPlace, value: Any) -> Iterator[tuple[DocumentPlace, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return (((*parts, step), inner) for step, inner in items)


def refuse(constant: str) -> NoReturn:
    """Raise ValueError, as `parse_constant` of json.loads(): JSON has no NaN and no infinities."""
    raise ValueError(f"{constant} is not a number")


def _shorten(message: str, limit: int = 200) -> str:
    return message if len(message) <= limit else message[: limit // 2] + " ... " + message[-limit // 2 :]

"""Validate documents against the schemas that ship with the suite; errors name file, place and expectation."""

import functools
import json

from conformance import paths
from conformance.model.errors import UserError

#: of any number: Python's integers know no bounds, what is counted with them does
LARGEST = 1e300


@functools.cache
def _validator(name):
    import jsonschema  # late: the host room is also run where there is only the standard library

    document = json.loads((paths.PACKAGE / "schemas" / f"{name}.json").read_text())
    return jsonschema.Draft202012Validator(document)


def pattern(name, field):
    """The regular expression that a field of documents of schema `name` has to match."""
    return _validator(name).schema["properties"][field]["pattern"]


def check(name, data, where):
    """Raise UserError naming `where`, the JSON pointer and what was expected, unless `data` satisfies schema `name`."""
    from jsonschema.exceptions import best_match

    error = best_match(_validator(name).iter_errors(data))
    if error is not None:
        raise UserError(f"{where}: {_pointer(error.absolute_path)}: {_shorten(error.message)}")


def load(name, path):
    """The JSON document at `path`, checked. Raises UserError."""
    data = read(path)
    check(name, data, path)
    return data


def read(path):
    """The JSON document at `path`, whatever it holds. Raises UserError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: /: nested too deeply") from None
    for parts, value in _numbers(data):
        if not abs(value) < LARGEST:
            raise UserError(f"{path}: {_pointer(parts)}: {_shorten(str(value), 40)} is no number to count with")
    return data


def _pointer(parts):
    """A JSON pointer (RFC 6901), but for what is unprintable."""
    return "/" + "/".join(
        str(part).replace("~", "~0").replace("/", "~1").encode("unicode_escape").decode() for part in parts
    )


def _numbers(data):
    """Yield (where, number) of a document of any depth."""
    rest = [((), data)]
    while rest:
        parts, value = rest.pop()
        if isinstance(value, dict):
            rest += (((*parts, key), inner) for key, inner in value.items())
        elif isinstance(value, list):
            rest += (((*parts, at), inner) for at, inner in enumerate(value))
        elif isinstance(value, (int, float)):
            yield parts, value


def refuse(constant):
    """For json.loads(): JSON has no NaN and no infinities."""
    raise ValueError(f"{constant} is not a number")


def _shorten(message, limit=200):
    return message if len(message) <= limit else message[: limit // 2] + " ... " + message[-limit // 2 :]

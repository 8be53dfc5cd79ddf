"""Validate documents against the schemas that ship with the suite; errors name file, place and expectation."""

import functools
import json

from conformance import paths
from conformance.model.errors import UserError


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
        pointer = "/" + "/".join(str(part) for part in error.absolute_path)
        raise UserError(f"{where}: {pointer}: {_shorten(error.message)}")


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
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None


def _refuse(constant):
    raise ValueError(f"{constant} is not a number")


def _shorten(message, limit=200):
    return message if len(message) <= limit else message[: limit // 2] + " ... " + message[-limit // 2 :]

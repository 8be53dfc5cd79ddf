"""Write the records of a scenario as JSON without fields that have their default value."""

import dataclasses
from typing import Any


def sparse(record: Any) -> dict[str, Any]:
    """Return a record's fields that differ from their defaults, so that a field added later changes no digest."""
    found = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.default is not dataclasses.MISSING and value == field.default:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 10.0 and 10 are one number, and have one digest
        found[field.name] = [_plain(one) for one in value] if isinstance(value, tuple) else _plain(value)
    return found


def _plain(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else value

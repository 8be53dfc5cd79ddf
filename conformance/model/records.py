"""Write the records of a scenario as JSON without fields that have their default value."""

import dataclasses
from typing import Any


def sparse(record: Any) -> dict[str, Any]:
    """Return a record's fields that differ from their defaults, so that a field added later changes no digest."""
    document = {}
    for field in dataclasses.fields(record):
        content = getattr(record, field.name)
        if field.default is not dataclasses.MISSING and content == field.default:
            continue
        if isinstance(content, float) and content.is_integer():
            content = int(content)  # 10.0 and 10 are one number, and have one digest
        document[field.name] = [_plain(part) for part in content] if isinstance(content, tuple) else _plain(content)
    return document


def _plain(content: Any) -> Any:
    return content.to_json() if hasattr(content, "to_json") else content

"""Canonical JSON, and digests of it: equal values have equal digests on every machine."""

import dataclasses
import hashlib
import json
from typing import Any

#: hexadecimal digits kept of a SHA-256: 64 bits, enough to tell apart all that one user ever builds
DIGITS = 16


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces; raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def of_value(value: Any) -> str:
    return of_bytes(canonical(value).encode())


def of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]


def sparse(record: Any) -> dict[str, Any]:
    """Return a dataclass's fields that are not as usual: a field that comes later changes no digest of before."""
    found = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.default is not dataclasses.MISSING and value == field.default:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # 10.0 and 10 are one number, and have one digest
        if isinstance(value, tuple):
            value = [_plain(one) for one in value]
        found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    return value.to_json() if hasattr(value, "to_json") else value

"""Write canonical JSON and digest it: equal values have equal digests on every machine."""

import hashlib
import json
from typing import Any

#: hexadecimal digits of a SHA-256 that are kept: 64 bits, enough to tell apart all that one user ever builds
DIGITS = 16


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces; raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def of_value(value: Any) -> str:
    return of_bytes(canonical(value).encode())


def of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]

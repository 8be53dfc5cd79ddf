"""Read the result line that a client prints. It is untrusted text, so it is read strictly."""

import json
from collections.abc import Mapping
from typing import Any

#: a client's report, as read from JSON
Facts = Mapping[str, Any]


def report_of(stdout: str) -> Facts | None:
    """Return the result line that a client printed last; None if it is not a valid one."""
    try:
        line = stdout.strip().splitlines()[-1]
        report: Facts = json.loads(line, parse_constant=_refuse, object_pairs_hook=_once)
        size, seconds, handshake = (report[k] for k in ("bytes", "completion_s", "handshake_s"))
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        return None
    if not _is_number(size) or not _is_number(seconds) or not (handshake is None or _is_number(handshake)):
        return None
    if seconds > 0 and handshake is not None and not 0 <= handshake <= seconds:
        return None
    return report


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object. Raises ValueError if a key occurs twice, since it is ambiguous which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15

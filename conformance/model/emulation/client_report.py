"""Read what a stack's programs print. It is untrusted text: a client's result line is read strictly."""

import json
import re
from collections.abc import Mapping
from typing import Any

#: a client's report, or what was seen of a process, as read from JSON
Facts = Mapping[str, Any]

#: what a client reports of a connection
_OF_CONNECTION = ("start_s", "handshake_s", "end_s", "early_data", "migration", "resets")
#: {what a client reports of a migration that its server makes impossible: why}
_IMPOSSIBLE = {"forbidden": "forbids migration", "no connection ID": "gives no connection ID to migrate with"}
_MIGRATIONS = (None, "begun", "validated", "failed", *_IMPOSSIBLE)
_EARLY_DATA = (None, "accepted", "refused")
#: a reset's code; results keep it, so it has to be a text that their readers accept
_CODE = re.compile(r"[ -~]{1,60}")
#: how much of a program's output a message quotes
_TAIL = 300


def tail(text: str) -> str:
    """Return the last words of untrusted output, on one line, without control characters."""
    clean = "".join(c if c.isprintable() else " " for c in text.strip())
    return " ".join(clean.split())[-_TAIL:]


def status(process: Facts) -> str:
    """Return how a process (guest/seen.py: ProcessSeen) ended."""
    why = " (its guest's memory ran out)" if process.get("ran_out_of_memory") else ""
    return f"status {process['exit_status']}{why}"


def said(process: Facts) -> str:
    """Return what a process said last, to follow a sentence."""
    words = tail(process["stderr"]) or tail(process["stdout"])
    return f": {words}" if words else ""


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
    if not all(_is_connection(connection) for connection in _connections(report)):
        return None
    return report


def why_unsupported(report: Facts) -> str | None:
    """Return what a client was asked for and the server does not support, as the end of a sentence; None if nothing."""
    words = (_IMPOSSIBLE.get(connection["migration"]) for connection in _connections(report))
    return next(filter(None, words), None)


def _connections(report: Facts) -> list[Any]:
    """Return what a report of the contract's version 3 says of each connection."""
    connections = report.get("connections", [])
    return connections if isinstance(connections, list) else [connections]


def _is_connection(connection: Any) -> bool:
    """Return whether this is a connection's record (docs/contract.md)."""
    try:
        start, handshake, end, early_data, migration, resets = (connection[name] for name in _OF_CONNECTION)
    except (KeyError, TypeError):
        return False
    return (
        all(_is_number(time) for time in (start, handshake, end))
        and 0 <= start <= handshake <= end
        and early_data in _EARLY_DATA
        and migration in _MIGRATIONS
        and isinstance(resets, list)
        and all(isinstance(code, str) and _CODE.fullmatch(code) for code in resets)
    )


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object. Raises ValueError if a key occurs twice, since it is ambiguous which one counts."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key twice")
    return members


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15

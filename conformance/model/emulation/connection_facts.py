"""Check what a client reports of its connections, and record them as a Measurement keeps them.

A client that was told what to do with connections, or when to acknowledge, lists them in its report (version 3 of
docs/contract.md), in seconds of its own clock.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.model.networks.flow_group import Flows

#: how early and how late a connection may be opened, in s
_EARLY_S, _LATE_S = 0.002, 0.25
_TIMES = ("start_s", "handshake_s", "end_s")


def wanted(group: Flows, size: int | None, report: Mapping[str, Any] | None) -> int | None:
    """Return how many bytes a flow's client had to report: `size`, or, where it stops bodies, what came of them."""
    if group.client.stop_bytes is None:
        return size
    least, most = group.client.arrives(group.bodies)
    return report["bytes"] if report and least <= report["bytes"] <= most else size


def lie(group: Flows, report: Mapping[str, Any]) -> str | None:
    """Return why a report of connections cannot be believed, as the end of a sentence; None if it can."""
    return next(_lies(group, report), None)


def _lies(group: Flows, report: Mapping[str, Any]) -> Iterator[str]:
    if not group.client:
        return
    planned, listed = group.client.each, report.get("connections")
    if not isinstance(listed, list):
        yield "does not list its connections: it does not do what version 3 of the contract says"
        return
    if len(listed) != len(planned):
        yield f"reports {len(listed)} connections, but {len(planned)} were to be opened"
        return
    before_s = 0.0
    for number, (plan, connection) in enumerate(zip(planned, listed, strict=True), 1):
        due_s = plan.at_s if plan.after_s is None else before_s + plan.after_s
        start_s, before_s = connection["start_s"], connection["end_s"]
        if not due_s - _EARLY_S <= start_s <= due_s + _LATE_S:
            how = "early" if start_s < due_s else "late"
            yield f"opened connection {number} at {start_s:.3f} s, {how}: it was due at {due_s:.3f}"
            return
        if before_s > report["completion_s"] + _EARLY_S:
            yield f"reports that connection {number} ended at {before_s:.3f} s, after all had ended"
            return


def records(report: Mapping[str, Any] | None, start_s: float) -> list[dict[str, Any]] | None:
    """Return a Measurement's record of each connection, by the trial's clock; the client's begins at `start_s`.

    None if the client did not end, and so reported nothing.
    """
    if report is None:
        return None
    return [
        {
            **{name: round(start_s + connection[name], 6) for name in _TIMES},
            **{name: connection[name] for name in ("early_data", "migration", "resets")},
        }
        for connection in report["connections"]
    ]

"""Check what a client reports about a flow's requests, and record requests as a Measurement keeps them.

Besides the totals, a client's report has a list with [bytes, request_s, first_byte_s, end_s] of each request: when it
was made, and when the first and the last byte of its body came, in seconds of the client's clock (docs/contract.md).
The requests of the kernel's flows are seen by the suite's own program.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformance.model.networks.flow_group import Flows, Request

#: how early and how late a request may be, in s: a report's times are rounded, and a client that has much to do, or a
#: connection with few streams, may be late
_EARLY_S, _LATE_S = 0.002, 0.25
#: with so many bodies still to come on its connection, a request may have to wait for them: servers permit 100 requests
#: at a time (RFC 9114, section 6.1), and permit new ones some at a time
_UNDER_WAY = 50


def lie(group: Flows, report: Mapping[str, Any]) -> str | None:
    """Return why a report about requests cannot be believed, as the end of a sentence; None if it can."""
    return next(_lies(group, report), None)


def _lies(group: Flows, report: Mapping[str, Any]) -> Iterator[str]:
    due_requests = [request for request in group.requests for _ in range(request.times)]
    reported = report.get("requests")
    if not due_requests:
        return
    if not isinstance(reported, list):
        yield f"reports one body, but {len(due_requests)} were requested: it does not read CC_REQUESTS"
        return
    if len(reported) != len(due_requests):
        yield f"reports another number of requests than it was to make: {len(reported)}, not {len(due_requests)}"
        return
    # Each connection has a clock of its own: when all of its bodies so far are there, and when the next is due.
    there: dict[int, float] = {}
    due: dict[int, float] = {}
    for number, (request, times) in enumerate(zip(due_requests, reported, strict=True), 1):
        least, _ = group.client.arrives([request.bytes])
        if not _is_sound(times) or not least <= times[0] <= request.bytes:
            body = f"a body of {request.bytes} bytes and its times"
            yield f"reports request {number} as {times!r:.60}, which is not {body}"
            return
        if times[3] > report["completion_s"] + _EARLY_S:
            yield f"reports that request {number} ended at {times[3]:.3f} s, after all had ended"
            return
        request_s, due_s = times[1], due.get(request.connection)
        if due_s is not None and not due_s - _EARLY_S <= request_s <= due_s + _LATE_S:
            before = zip(due_requests[: number - 1], reported, strict=False)
            how = "early" if request_s < due_s else "late"
            if how == "early" or request_s > _permitted_s(before, request, due_s) + _LATE_S:
                yield f"made request {number} at {request_s:.3f} s, {how}: it was due at {due_s:.3f}"
                return
        began_s = there.get(request.connection, report["handshake_s"] or 0.0)
        there_s = there[request.connection] = max(began_s, times[3])
        # A paced request is due at a fixed time after the one before was due, however late that was made.
        paced_s = request_s if due_s is None else due_s
        due[request.connection] = there_s + request.pause_s if request.every_s is None else paced_s + request.every_s


def _permitted_s(before: Iterable[tuple[Request, Sequence[float]]], request: Request, due_s: float) -> float:
    """Return when a server surely permits a request that is due: once all bodies before have come, if many have not."""
    ends_s = [times[3] for earlier, times in before if earlier.connection == request.connection and times[3] > due_s]
    return max(ends_s) if len(ends_s) >= _UNDER_WAY else due_s


def _is_sound(reported: object) -> bool:
    """Return whether this is a size followed by three times in order."""
    if not isinstance(reported, list) or [type(number) in (int, float) for number in reported] != [True] * 4:
        return False
    return reported[1] >= 0 and all(before <= after for before, after in itertools.pairwise(reported[1:]))


def records(rows: Sequence[Sequence[float | None]], start_s: float = 0.0) -> list[dict[str, Any]]:
    """Return a Measurement's record of each request, by the trial's clock; the client's clock begins at `start_s`."""
    return [
        {
            "bytes": size,
            **{
                name: None if at_s is None else round(start_s + at_s, 6)
                for name, at_s in zip(("start_s", "first_byte_s", "end_s"), times, strict=True)
            },
        }
        for size, *times in rows
    ]


def of_flow(flow: Mapping[str, Any], report: Mapping[str, Any] | None) -> list[dict[str, Any]] | None:
    """Return the records of a flow's requests, as our own program saw them or its client reported them; else None."""
    if flow["requests"] is not None:
        return records(flow["requests"])
    return records(report["requests"], flow["start_s"]) if report else None

"""Check when a client says that its handshake ended: metrics leave out what came before.

A request follows the handshake at once. So the time from the end of the handshake to the last byte is also the time
from the packet that asks for the body to the packet that ends it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

#: by how much a report may differ from the packets, in round trips of the empty path
_SLACK_RTTS = 0.1
#: the body does not begin earlier than this after the packet that asks for it, in round trips of the empty path
_ANSWER_RTTS = 0.9
#: the most bytes that a client receives before its handshake has ended; and how much later than its process the
#: harness's clock may have started, in s
_HANDSHAKE_BYTES, _CLOCK_S = 20_000, 0.05


def lie(report: Mapping[str, Any], exchange: Mapping[str, Any] | None, rtt_s: float) -> str | None:
    """Return why the end of the handshake cannot be believed, as the end of a sentence; None if it can, or is unknown.

    `exchange`: times of packets (guest/seen.py: ExchangeSeen), None if none were noted.
    """
    if report["handshake_s"] is None or exchange is None or not rtt_s:
        return None
    reported_s, slack_s = report["completion_s"] - report["handshake_s"], _SLACK_RTTS * rtt_s
    shown = [
        (exchange["whole_s"] - requested_s, exchange["last_s"] - requested_s)
        for requested_s, answered_s in exchange["asked_s"]
        if answered_s - requested_s >= _ANSWER_RTTS * rtt_s
    ]
    if any(least_s - slack_s <= reported_s <= most_s + slack_s for least_s, most_s in shown):
        return None
    shown_words = f"its packets show {shown[-1][1]:.3f} s" if shown else "no packet asked for the body"
    return f"reports {reported_s:.3f} s from the end of the handshake to the last byte, but {shown_words}"


def too_late(report: Mapping[str, Any], looks: Sequence[tuple[float, float | None]]) -> str | None:
    """Return that a handshake is said to have ended after part of the body had come, as the end of a sentence, or None.

    `looks`: (seconds since the client's process started, bytes that had come).
    """
    handshake_s = report["handshake_s"] or 0.0
    for at_s, count in looks:
        if at_s + _CLOCK_S < handshake_s and (count or 0) > _HANDSHAKE_BYTES:
            return f"reports a handshake of {handshake_s:.3f} s, but after {at_s:.3f} s {count} bytes had come"
    return None

"""Note when a client's packets asked for the body, and when the body came.

A client reports how long its handshake took. A metric that leaves the handshake out has to rest on more than its word.
"""

from __future__ import annotations

from conformance.guest.seen import ExchangeSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: the largest body whose packets are noted: of longer transfers, a handshake is a small part
MOST_BYTES = 4_000_000
#: the most bytes, headers included, that come before the body; and how many come before an answer surely has begun, as
#: a server may send its handshake's packets twice
_HANDSHAKE_BYTES, _ANSWER_BYTES = 20_000, 8_000


def exchange(passed: Iterable[tuple[int, int, str | None]], body_bytes: int) -> ExchangeSeen | None:
    """Return the times of a transfer's packets, each (nanoseconds, bytes, sender), in order; None if no body came."""
    requests: list[tuple[float, int]] = []
    came: list[tuple[float, int]] = []
    total, first_ns = 0, None
    for at_ns, size, sender in passed:
        first_ns = at_ns if first_ns is None else first_ns
        at_s = round((at_ns - first_ns) / 1e9, 6)
        if sender == "server":
            total += size
            came.append((at_s, total))
        elif sender == "client" and 0 < total <= _HANDSHAKE_BYTES:
            requests.append((at_s, total))
    if total < max(body_bytes, _HANDSHAKE_BYTES):
        return None

    def when(least_bytes: int) -> float:
        return next((at_s for at_s, count in came if count >= least_bytes), came[-1][0])

    return ExchangeSeen(
        asked_s=tuple((at_s, when(before + _ANSWER_BYTES)) for at_s, before in requests),
        whole_s=when(body_bytes),
        last_s=came[-1][0],
    )

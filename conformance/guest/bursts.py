"""Measure how many packets leave a server at once.

The bottleneck defines "at once": packets belong to one burst if they leave closer together than a tenth of the time
that one of them takes there. A burst of n packets then builds a queue of nearly n, which is what pacing should prevent
(RFC 9002, section 7.7).
"""

from __future__ import annotations

from conformance.guest.seen import BurstsSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

#: share of a packet's time at the bottleneck within which the next one leaves "at once", and share of the packets that
#: BurstsSeen.usual covers
_AT_ONCE, _USUAL = 0.1, 0.99


def lengths(sent: Iterable[tuple[int, int]], bandwidth_mbps: float) -> list[int]:
    """Return the number of packets in each burst, in order. `sent`: (nanoseconds, bytes) of each packet, in order."""
    burst_lengths: list[int] = []
    before_ns = None
    for at_ns, size in sent:
        own_ns = size * 8e3 / bandwidth_mbps
        if before_ns is not None and at_ns - before_ns <= _AT_ONCE * own_ns:
            burst_lengths[-1] += 1
        else:
            burst_lengths.append(1)
        before_ns = at_ns
    return burst_lengths


def summary(bursts: list[int], unseen: int) -> BurstsSeen | None:
    """Return a summary of the bursts' lengths; None if there are no bursts."""
    if not bursts:
        return None
    total, within = sum(bursts), 0
    for length in sorted(bursts):
        within += length
        if within >= _USUAL * total:
            break
    return BurstsSeen(usual=length, longest=max(bursts), packets=total, unseen=unseen)

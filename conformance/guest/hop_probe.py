"""Record what a hop does to probe packets. The host judges whether this is as requested (emulation/hop_checks.py).

Frames are sent from the interface of the bridge before the hop, bypassing its queue, and captured at the bridge behind
the hop. They hold numbered, ECN-capable UDP packets of several sizes, a millisecond apart.
"""

from __future__ import annotations

import time

from conformance.guest import probe_frames
from conformance.guest.seen import HopSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conformance.guest.netns import Node

#: bytes of the IP packets, in turn: the size of acknowledgements, and sizes below and above usual bounds
SIZES = (60, 1500, 600, 1400, 1281)
_GAP_NS = 1_000_000
#: seconds, longer than any packet waits in a hop beyond the requested delay
_SILENCE_S = 1.5
_ECT0 = 2


def observe(near: tuple[Node, str], far: tuple[Node, str], packets: int, longest_ms: float) -> HopSeen:
    """Send `packets` packets from the (node, interface) `near` to `far`, and return when each was sent and arrived.

    `longest_ms`: the longest time for which the hop holds a packet.
    """
    sender, receiver = probe_frames.sender(*near, bypass=True), probe_frames.receiver(*far)
    offset_ns = time.time_ns() - time.monotonic_ns()
    begin_ns = time.monotonic_ns() + _GAP_NS
    with sender, receiver:
        sent = []
        for number in range(packets):
            pause_ns = begin_ns + number * _GAP_NS - time.monotonic_ns()
            if pause_ns > 0:
                time.sleep(pause_ns / 1e9)
            sent.append(time.monotonic_ns())
            sender.send(probe_frames.frame(number, SIZES[number % len(SIZES)], _ECT0))
        # Read only when all have arrived: reading takes a microsecond a packet, and as the hop's priority is no higher,
        # the last packets would have to wait.
        time.sleep(longest_ms / 1000 + _SILENCE_S)
        rows = list(probe_frames.arrivals(receiver))
    return HopSeen(
        sent_ns=tuple(sent),
        numbers=tuple(number for number, _, _ in rows),
        arrived_ns=tuple(at - offset_ns for _, at, _ in rows),
        ecn=tuple(ecn for _, _, ecn in rows),
    )

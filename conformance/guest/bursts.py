"""A trial in which it is seen how many packets leave the server at once.

What is sent "at once" is defined by the bottleneck: packets that leave closer together than a tenth of the time that
one of them takes there. A burst of n packets then makes a queue of nearly n, which is what pacing is to prevent
(RFC 9002, section 7.7).
"""

from __future__ import annotations

import dataclasses
import socket
import time

from conformance.guest.capture import Capture
from conformance.guest.seen import BurstsSeen
from conformance.guest.trial import run_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.guest.seen import TrialFacts
    from conformance.guest.stage import Stage, Transfer

#: of a packet's time at the bottleneck, and of the packets that `usual` is about
_AT_ONCE, _USUAL = 0.1, 0.99
#: bytes of a frame: an acknowledgement alone is shorter
_LEAST_BYTES = 100
_ETHERNET_BYTES, _SOURCE = 14, slice(26, 30)


def run_watched(stage: Stage, transfer: Transfer, bandwidth_mbps: float) -> TrialFacts:
    """Carry out one trial as run_trial() does, and see the bursts of the server's. Raises Fault.

    Capturing makes no system call while the trial runs: nothing changes in it.
    """
    # Where the server's packets enter the emulator, before any queue: its own link has no delay.
    tap = stage.topology.segments[-1].queues[1]
    capture = Capture(stage.net[tap.node], tap.name, transfer.transfer_bytes, int(time.time()) * 1_000_000_000)
    try:
        facts = run_trial(stage, transfer)
        if facts.transfer is None:
            return facts
        server = socket.inet_aton(stage.topology.addresses["server"])
        sent = (
            (seconds * 10**9 + nanoseconds, length)
            for seconds, nanoseconds, length, frame in capture.frames()
            if length > _LEAST_BYTES and frame[_SOURCE] == server
        )
        bursts = lengths(sent, bandwidth_mbps)
        seen = summary(bursts, capture.unseen())
    finally:
        capture.close()
    return dataclasses.replace(facts, transfer=dataclasses.replace(facts.transfer, bursts=seen))


def lengths(sent: Iterable[tuple[int, int]], bandwidth_mbps: float) -> list[int]:
    """Return the packets of each burst, in order. `sent`: (nanoseconds, bytes) of each packet, in order."""
    found: list[int] = []
    before_ns = None
    for at_ns, size in sent:
        own_ns = size * 8e3 / bandwidth_mbps
        if before_ns is not None and at_ns - before_ns <= _AT_ONCE * own_ns:
            found[-1] += 1
        else:
            found.append(1)
        before_ns = at_ns
    return found


def summary(bursts: list[int], unseen: int) -> BurstsSeen | None:
    """Return what is kept of the bursts' lengths; None where there are none."""
    if not bursts:
        return None
    total, within = sum(bursts), 0
    for length in sorted(bursts):
        within += length
        if within >= _USUAL * total:
            break
    return BurstsSeen(usual=length, longest=max(bursts), packets=total, unseen=unseen)

"""Measure the rate, delay and loss that a direction of an emulated link delivers. The host judges the measurements.

A train of packets measures the rate: it is sent so fast that what random loss leaves of it is one and a half times the
link's rate. Single packets measure the delay, and a long, thin train measures the loss. All packets are single
segments, so loss applies to each packet whatever the offload setting.
"""

from __future__ import annotations

import errno
import select
import time

from conformance.guest import probe_frames
from conformance.guest.probe_frames import ETHERNET_BYTES, frame
from conformance.guest.seen import LinkSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from typing import Any

    from conformance.guest.netns import Node
    from conformance.guest.network_job import LinkProbe
    from conformance.guest.protocol import Probing
    from conformance.guest.topology import Interface

#: bytes of the IP packets of the rate's train, and of all others
_FULL_BYTES, _THIN_BYTES = 1500, 92


def observe(net: Any, egress: Interface, probe: LinkProbe, probing: Probing) -> LinkSeen:
    """Return what probe packets measure from an egress interface to the other end of its link; leave qdiscs empty."""
    sender, receiver = probe_frames.sender(net[egress.node], egress.name), probe_frames.receiver(*_far(net, egress))
    with receiver, sender:
        patience_s = 0.5 + 3 * probe.delay_ms / 1000
        delays = _delays(sender, receiver, patience_s)
        rate = None if probe.rate_mbps is None else _rate(sender, receiver, probe, patience_s)
        lost = _lost(sender, receiver, probing.loss_packets, probe.pace_mbps, patience_s)
    return LinkSeen(rate_mbps=rate, delays_ms=tuple(delays), loss_sent=probing.loss_packets, loss_lost=lost, qdiscs=())


def _far(net: Any, egress: Interface) -> tuple[Node, str]:
    """Return the node and the interface at the other end of an interface's link."""
    near = net[egress.node].intf(egress.name)
    far = near.link.intf2 if near.link.intf1 is near else near.link.intf1
    return far.node, far.name


def _send(sender: socket.socket, number: int, ip_bytes: int) -> None:
    """Send a packet. If the queue is full, it is lost, as any packet would be."""
    try:
        sender.send(frame(number, ip_bytes))
    except OSError as error:
        if error.errno != errno.ENOBUFS:
            raise


def _receive(receiver: socket.socket, patience_s: float) -> Iterator[tuple[int, int]]:
    """Yield (arrival time in ns, number) of each packet, until none has arrived for `patience_s`."""
    poll = select.poll()
    poll.register(receiver, select.POLLIN)
    while poll.poll(patience_s * 1000):
        for number, at_ns, _ in probe_frames.arrivals(receiver):
            yield at_ns, number


def _delays(
    sender: socket.socket, receiver: socket.socket, patience_s: float, wanted: int = 5, tries: int = 40
) -> list[float]:
    """Send at most `tries` single packets. Return the delays, in ms, of the first `wanted` that arrive."""
    delays: list[float] = []
    for number in range(tries):
        sent_at_ns = time.time_ns()
        _send(sender, number, _THIN_BYTES)
        for arrived_at_ns, got in _receive(receiver, patience_s):
            if got == number:
                delays.append((arrived_at_ns - sent_at_ns) / 1e6)
                break
        if len(delays) == wanted:
            break
    return delays


def _rate(sender: socket.socket, receiver: socket.socket, probe: LinkProbe, patience_s: float) -> float | None:
    """Return the rate, in Mbit/s, at which a train faster than the link arrives; None if too few packets arrive."""
    frame_bits = (_FULL_BYTES + ETHERNET_BYTES) * 8
    beyond_loss_mbps = (probe.rate_mbps or 0) / (1 - probe.loss_pct / 100)
    gap_ns = round(frame_bits / (beyond_loss_mbps * 1e6) / 1.5 * 1e9)
    start_ns = time.monotonic_ns()
    for number in range(probe.rate_packets):
        pause_ns = start_ns + number * gap_ns - time.monotonic_ns()
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
        _send(sender, number, _FULL_BYTES)
    arrivals = [at for at, _ in _receive(receiver, patience_s)]
    # The first packets may leave in a token bucket's burst.
    steady = arrivals[len(arrivals) // 2 :]
    if len(steady) < 10 or steady[-1] <= steady[0]:
        return None
    return (len(steady) - 1) * frame_bits * 1000 / (steady[-1] - steady[0])


def _lost(sender: socket.socket, receiver: socket.socket, packets: int, pace_mbps: float, patience_s: float) -> int:
    """Send a long train of small packets at a quarter of a rate. Return how many do not arrive."""
    batch = 4
    frame_bits = (_THIN_BYTES + ETHERNET_BYTES) * 8
    pause_s = batch * frame_bits / (pace_mbps * 1e6) * 4
    for number in range(packets):
        if number % batch == 0:
            time.sleep(pause_s)
        _send(sender, number, _THIN_BYTES)
    got = {number for _, number in _receive(receiver, patience_s)}
    return packets - len(got)

"""Measure the rate, delay and loss that an emulated link delivers. The engine judges the measurements.

Probes cross one link in the direction of the data. A train of datagrams measures the rate: it is sent so fast that what
random loss leaves of it is one and a half times the link's rate. Single datagrams measure the delay, and a long, thin
train measures the loss. All packets are single segments, so loss applies to each packet whatever the offload setting.
"""

from __future__ import annotations

import select
import socket
import struct
import time

from conformance.guest.netns import inside
from conformance.guest.seen import LinkSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.guest.netns import Node
    from conformance.guest.protocol import Link, Probing

_PORT = 9
#: socket options from asm-generic/socket.h that Python does not name
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35
#: bytes of Ethernet, IPv4 and UDP headers around a datagram's payload
_HEADERS_BYTES = 14 + 20 + 8
_FULL_PAYLOAD_BYTES = 1472
_THIN_PAYLOAD_BYTES = 64


def observe(server: Node, client: Node, client_address: str, link: Link, probing: Probing) -> LinkSeen:
    """Return what probe packets measure on the link between two nodes, requested as `link`; leave qdiscs empty."""
    with inside(client):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 23)
        # The kernel timestamps arrivals, so that it does not matter when they are read.
        receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        receiver.bind((client_address, _PORT))
        receiver.setblocking(False)
    with inside(server):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 23)
        sender.connect((client_address, _PORT))
    with receiver, sender:
        patience_s = 0.5 + 3 * link.one_way_delay_ms / 1000
        delays = _delays(sender, receiver, patience_s)
        beyond_loss_mbps = link.bandwidth_mbps / (1 - link.loss_pct / 100)
        rate = _rate(sender, receiver, beyond_loss_mbps, patience_s, probing.rate_packets)
        lost = _lost(sender, receiver, probing.loss_packets, link.bandwidth_mbps, patience_s)
    return LinkSeen(rate_mbps=rate, delays_ms=tuple(delays), loss_sent=probing.loss_packets, loss_lost=lost, qdiscs=())


def _receive(receiver: socket.socket, patience_s: float) -> Iterator[tuple[int, int]]:
    """Yield (arrival time in ns, sequence number) of each datagram, until none has arrived for `patience_s`."""
    poll = select.poll()
    poll.register(receiver, select.POLLIN)
    while poll.poll(patience_s * 1000):
        while True:
            try:
                data, ancillary, _, _ = receiver.recvmsg(2048, 64)
            except BlockingIOError:
                break
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            yield seconds * 10**9 + nanoseconds, struct.unpack_from("I", data)[0]


def _delays(
    sender: socket.socket, receiver: socket.socket, patience_s: float, wanted: int = 5, tries: int = 40
) -> list[float]:
    """Send at most `tries` single datagrams. Return the delays, in ms, of the first `wanted` that arrive."""
    delays: list[float] = []
    for number in range(tries):
        sent_at_ns = time.time_ns()
        sender.send(struct.pack("I", number).ljust(_THIN_PAYLOAD_BYTES, b"\0"))
        for arrived_at_ns, got in _receive(receiver, patience_s):
            if got == number:
                delays.append((arrived_at_ns - sent_at_ns) / 1e6)
                break
        if len(delays) == wanted:
            break
    return delays


def _rate(
    sender: socket.socket, receiver: socket.socket, bandwidth_mbps: float, patience_s: float, packets: int
) -> float | None:
    """Return the rate, in Mbit/s, at which a train faster than the link arrives; None if too few packets arrive."""
    frame_bits = (_FULL_PAYLOAD_BYTES + _HEADERS_BYTES) * 8
    gap_ns = round(frame_bits / (bandwidth_mbps * 1e6) / 1.5 * 1e9)
    start_ns = time.monotonic_ns()
    for number in range(packets):
        pause_ns = start_ns + number * gap_ns - time.monotonic_ns()
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
        sender.send(struct.pack("I", number).ljust(_FULL_PAYLOAD_BYTES, b"\0"))
    arrivals = [at for at, _ in _receive(receiver, patience_s)]
    # The first packets may leave in a token bucket's burst.
    steady = arrivals[len(arrivals) // 2 :]
    if len(steady) < 10 or steady[-1] <= steady[0]:
        return None
    return (len(steady) - 1) * frame_bits * 1000 / (steady[-1] - steady[0])


def _lost(
    sender: socket.socket, receiver: socket.socket, packets: int, bandwidth_mbps: float, patience_s: float
) -> int:
    """Send a long, thin train of small datagrams. Return how many do not arrive."""
    batch = 4
    frame_bits = (_THIN_PAYLOAD_BYTES + _HEADERS_BYTES) * 8
    pause_s = batch * frame_bits / (bandwidth_mbps * 1e6) * 4
    for number in range(packets):
        if number % batch == 0:
            time.sleep(pause_s)
        sender.send(struct.pack("I", number).ljust(_THIN_PAYLOAD_BYTES, b"\0"))
    got = {number for _, number in _receive(receiver, patience_s)}
    return packets - len(got)

"""Record what a hop does to probe packets. The host judges whether this is as requested (emulation/hop_checks.py).

Frames are sent from the interface of the bridge before the hop, bypassing its queue, and captured at the bridge behind
the hop. They hold numbered, ECN-capable UDP packets of several sizes, a millisecond apart.
"""

from __future__ import annotations

import socket
import struct
import time

from conformance.guest.netns import inside
from conformance.guest.shared_job import HopSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conformance.guest.netns import Node

#: bytes of the IP packets, in turn: the size of acknowledgements, and sizes below and above usual bounds
SIZES = (60, 1500, 600, 1400, 1281)
_GAP_NS = 1_000_000
#: seconds, longer than any packet waits in a hop beyond the requested delay
_SILENCE_S = 1.5
_ETH_P_ALL, _SOL_PACKET, _QDISC_BYPASS, _IGNORE_OUTGOING = 0x0003, 263, 20, 23
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_HEAD = struct.Struct(">6s6sH")
_ADDRESSES = bytes([10, 200, 0, 1, 10, 200, 0, 2])
_ECT0 = 2


def observe(near: tuple[Node, str], far: tuple[Node, str], packets: int, longest_ms: float) -> HopSeen:
    """Send `packets` packets from the (node, interface) `near` to `far`, and return when each was sent and arrived.

    `longest_ms`: the longest time for which the hop holds a packet.
    """
    sender, receiver = _socket(*near), _socket(*far)
    receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
    receiver.setblocking(False)
    sender.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
    offset_ns = time.time_ns() - time.monotonic_ns()
    begin_ns = time.monotonic_ns() + _GAP_NS
    with sender, receiver:
        sent = []
        for number in range(packets):
            pause_ns = begin_ns + number * _GAP_NS - time.monotonic_ns()
            if pause_ns > 0:
                time.sleep(pause_ns / 1e9)
            sent.append(time.monotonic_ns())
            sender.send(_frame(number, SIZES[number % len(SIZES)]))
        # Read only when all have arrived: reading takes a microsecond a packet, and as the hop's priority is no higher,
        # the last packets would have to wait.
        time.sleep(longest_ms / 1000 + _SILENCE_S)
        rows = _arrivals(receiver)
    return HopSeen(
        sent_ns=tuple(sent),
        numbers=tuple(number for number, _, _ in rows),
        arrived_ns=tuple(at - offset_ns for _, at, _ in rows),
        ecn=tuple(ecn for _, _, ecn in rows),
    )


def _socket(node: Node, interface: str) -> socket.socket:
    with inside(node):
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    made.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    made.bind((interface, _ETH_P_ALL))
    return made


def _frame(number: int, size: int) -> bytes:
    ip = struct.pack(">BBHHHBBH", 0x45, _ECT0, size, number & 0xFFFF, 0, 64, socket.IPPROTO_UDP, 0) + _ADDRESSES
    words = sum(struct.unpack(">10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack(">H", ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF) + ip[12:]
    body = struct.pack(">I", number).ljust(size - 28, b"\0")
    udp = struct.pack(">HHHH", 9, 9, size - 20, 0)
    return _HEAD.pack(b"\x02\0\0\0\xff\x02", b"\x02\0\0\0\xff\x01", 0x0800) + ip + udp + body


def _arrivals(receiver: socket.socket) -> list[tuple[int, int, int]]:
    """Return (number, time in ns, ECN field) of each packet that has arrived, in order."""
    found: list[tuple[int, int, int]] = []
    while True:
        try:
            data, ancillary, _, _ = receiver.recvmsg(2048, 64)
        except BlockingIOError:
            return found
        if data[26:34] == _ADDRESSES:
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            number = struct.unpack_from(">I", data, 42)[0]
            found.append((number, seconds * 1_000_000_000 + nanoseconds, data[15] & 3))

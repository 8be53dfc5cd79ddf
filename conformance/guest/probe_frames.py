"""Frames that are sent through one link, or through what stands in its middle, to see what becomes of them.

They are numbered UDP packets between addresses that no host has. They leave by the egress interface of one end and are
captured where they arrive, so they cross nothing but the link, whatever network it is part of.
"""

from __future__ import annotations

import socket
import struct

from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.guest.netns import Node

#: bytes of Ethernet's header, and of IPv4's and UDP's
ETHERNET_BYTES, HEADERS_BYTES = 14, 28
_ETH_P_ALL, _SOL_PACKET, _QDISC_BYPASS, _IGNORE_OUTGOING = 0x0003, 263, 20, 23
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35
_HEAD = struct.Struct(">6s6sH")
_ADDRESSES = bytes([10, 200, 0, 1, 10, 200, 0, 2])


def sender(node: Node, interface: str, bypass: bool = False) -> socket.socket:
    """Return a socket that sends frames by an interface; `bypass`: past its queueing discipline."""
    packet_socket = _socket(node, interface)
    packet_socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 23)
    if bypass:
        packet_socket.setsockopt(_SOL_PACKET, _QDISC_BYPASS, 1)
    return packet_socket


def receiver(node: Node, interface: str) -> socket.socket:
    """Return a socket from which arrivals() reads what comes to an interface."""
    packet_socket = _socket(node, interface)
    # The kernel timestamps arrivals, so that it does not matter when they are read.
    packet_socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    packet_socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
    packet_socket.setblocking(False)
    return packet_socket


def _socket(node: Node, interface: str) -> socket.socket:
    with inside(node):
        packet_socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    packet_socket.setsockopt(_SOL_PACKET, _IGNORE_OUTGOING, 1)
    packet_socket.bind((interface, _ETH_P_ALL))
    return packet_socket


def frame(number: int, ip_bytes: int, ecn: int = 0) -> bytes:
    """Return a frame with an IP packet of `ip_bytes` bytes, whose ECN field is `ecn`."""
    ip = struct.pack(">BBHHHBBH", 0x45, ecn, ip_bytes, number & 0xFFFF, 0, 64, socket.IPPROTO_UDP, 0) + _ADDRESSES
    words = sum(struct.unpack(">10H", ip))
    words = (words & 0xFFFF) + (words >> 16)
    ip = ip[:10] + struct.pack(">H", ~((words & 0xFFFF) + (words >> 16)) & 0xFFFF) + ip[12:]
    body = struct.pack(">I", number).ljust(ip_bytes - HEADERS_BYTES, b"\0")
    udp = struct.pack(">HHHH", 9, 9, ip_bytes - 20, 0)
    return _HEAD.pack(b"\x02\0\0\0\xff\x02", b"\x02\0\0\0\xff\x01", 0x0800) + ip + udp + body


def arrivals(receiver: socket.socket) -> Iterator[tuple[int, int, int]]:
    """Yield (number, time in ns since 1970, ECN field) of each frame that has arrived, in order."""
    while True:
        try:
            data, ancillary, _, _ = receiver.recvmsg(2048, 64)
        except BlockingIOError:
            return
        if data[26:34] == _ADDRESSES:
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            yield struct.unpack_from(">I", data, 42)[0], seconds * 1_000_000_000 + nanoseconds, data[15] & 3

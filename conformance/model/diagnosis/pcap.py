"""Packets of a transfer, from a pcap file's bytes as guest/capture.py writes them.

The frames are a stack's, and a stack is not trusted: whatever they hold, the answer is a list of packets or a
UserError, and never more packets than MOST_PACKETS.
"""

import builtins
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from conformance.model.errors import UserError

MOST_PACKETS = 2_000_000
_MAGIC = struct.pack("=I", 0xA1B23C4D)
_FILE_HEADER_BYTES = 24
_RECORD = struct.Struct("=IIII")
_IPV4 = b"\x08\x00"
_ETHERNET_BYTES, _SHORTEST_IPV4_BYTES = 14, 20
_PROTOCOL_AT, _SOURCE_AT = 23, 26
#: headers and the first bytes of what they carry. In TCP, IP's identification and the timestamps tell a retransmission
#: from its original; in QUIC, every packet is encrypted under a number of its own.
_TELLING = slice(_ETHERNET_BYTES, _ETHERNET_BYTES + 96)


class Packet(NamedTuple):
    """`identity` is equal where a packet was seen at another place; bridges change nothing in it."""

    seconds: float
    bytes: int
    identity: "builtins.bytes"


def first_s(data: bytes) -> float:
    """Return the time of a capture's first frame, whatever it is. `data` as packets() takes it. Raises UserError."""
    if len(data) < _FILE_HEADER_BYTES + _RECORD.size:
        raise UserError("the capture holds no frame")
    seconds, nanoseconds, _, _ = _RECORD.unpack_from(data, _FILE_HEADER_BYTES)
    return float(seconds + nanoseconds / 1e9)


def last_s(sides: Iterable[Sequence[Packet]]) -> float:
    """Return the time of the last packet of a capture's two lists, as packets() gives them. Raises UserError."""
    times = [packets[-1].seconds for packets in sides if packets]
    if not times:
        raise UserError("the capture holds no packet")
    return max(times)


def packets(data: bytes, protocol: int, server: bytes) -> tuple[list[Packet], list[Packet]]:
    """Return (the server's packets, those to it), each a list of Packet in order of the file.

    `data`: bytes of a pcap file. Only IPv4 of `protocol` (6 TCP, 17 UDP) counts; `server` is the address, four bytes.
    Raises UserError where it is no such file, or one that ends early.
    """
    if data[:4] != _MAGIC:
        raise UserError("the capture is no pcap file with nanoseconds")
    theirs: list[Packet] = []
    others: list[Packet] = []
    at, end = _FILE_HEADER_BYTES, len(data)
    while at < end:
        if at + _RECORD.size > end:
            raise UserError("the capture ends in the middle of a record")
        seconds, nanoseconds, kept, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + kept > end:
            raise UserError("the capture ends in the middle of a frame")
        frame = data[at : at + min(kept, _TELLING.stop)]
        at += kept
        if len(frame) < _ETHERNET_BYTES + _SHORTEST_IPV4_BYTES or frame[12:14] != _IPV4:
            continue
        if frame[_PROTOCOL_AT] != protocol:
            continue
        side = theirs if frame[_SOURCE_AT : _SOURCE_AT + 4] == server else others
        if len(side) == MOST_PACKETS:
            raise UserError(f"the capture holds more than {MOST_PACKETS} packets")
        side.append(Packet(seconds + nanoseconds / 1e9, length, bytes(frame[_TELLING])))
    return theirs, others

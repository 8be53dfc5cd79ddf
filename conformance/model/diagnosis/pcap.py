"""Read the packets of a transfer from the bytes of a pcap file that guest/capture.py wrote.

The frames come from a stack, which is not trusted: whatever they hold, the result is a list of at most MOST_PACKETS
packets for each direction, or a UserError.
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
#: the bytes of a frame that identify a packet: headers and the first bytes of the payload. In TCP, IP's identification
#: and the timestamps tell a retransmission from its original; in QUIC, each packet is encrypted under its own number.
_TELLING = slice(_ETHERNET_BYTES, _ETHERNET_BYTES + 96)


class Packet(NamedTuple):
    """`identity` is the same wherever a packet is captured, as bridges change nothing in it."""

    seconds: float
    bytes: int
    identity: "builtins.bytes"


def first_s(data: bytes) -> float:
    """Return the time of a capture's first frame, of any kind; `data` as in packets(). Raises UserError without one."""
    if len(data) < _FILE_HEADER_BYTES + _RECORD.size:
        raise UserError("the capture contains no frames")
    seconds, nanoseconds, _, _ = _RECORD.unpack_from(data, _FILE_HEADER_BYTES)
    return float(seconds + nanoseconds / 1e9)


def last_s(sides: Iterable[Sequence[Packet]]) -> float:
    """Return the time of the last packet in the two lists of packets(). Raises UserError if both are empty."""
    times = [packets[-1].seconds for packets in sides if packets]
    if not times:
        raise UserError("the capture contains no packets")
    return max(times)


def packets(
    data: bytes, protocol: int, server: bytes, client: bytes | None = None
) -> tuple[list[Packet], list[Packet]]:
    """Return (packets from the server, packets to it), each a list of Packet in the order of the file.

    `data`: bytes of a pcap file. Only IPv4 packets of `protocol` (6 TCP, 17 UDP) count, and only those between `server`
    and `client`, which are addresses of four bytes; without `client`, those of all clients. Raises UserError if `data`
    is not such a file, or ends early.
    """
    if data[:4] != _MAGIC:
        raise UserError("the capture is not a pcap file with times in nanoseconds")
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
        sender, receiver = frame[_SOURCE_AT : _SOURCE_AT + 4], frame[_SOURCE_AT + 4 : _SOURCE_AT + 8]
        if client is not None and client not in (sender, receiver):
            continue
        side = theirs if sender == server else others
        if len(side) == MOST_PACKETS:
            raise UserError(f"the capture contains more than {MOST_PACKETS} packets")
        side.append(Packet(seconds + nanoseconds / 1e9, length, bytes(frame[_TELLING])))
    return theirs, others

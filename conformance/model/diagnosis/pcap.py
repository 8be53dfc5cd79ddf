"""Read the packets of a transfer from the bytes of a pcap file that guest/capture.py wrote.

The frames come from a stack, which is not trusted: whatever they hold, the result is a list of at most MOST_PACKETS
packets for each direction, or a UserError.
"""

import builtins
import dataclasses
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy
import numpy.typing

from conformance.model.errors import UserError

MOST_PACKETS = 2_000_000
_MAGIC = struct.pack("=I", 0xA1B23C4D)
_FILE_HEADER_BYTES = 24
_RECORD = struct.Struct("=IIII")
#: the field of a record that says how many bytes of its frame are in the file, and where it is
_KEPT, _KEPT_AT = struct.Struct("=I"), 8
_IPV4 = b"\x08\x00"
_ETHERNET_BYTES, _SHORTEST_IPV4_BYTES = 14, 20
_TYPE_AT, _PROTOCOL_AT, _SOURCE_AT, _TARGET_AT = 12, 23, 26, 30
#: the bytes of a frame that identify a packet: headers and the first bytes of the payload. In TCP, IP's identification
#: and the timestamps tell a retransmission from its original; in QUIC, each packet is encrypted under its own number.
_TELLING = slice(_ETHERNET_BYTES, _ETHERNET_BYTES + 96)
#: what of them changes where the client gets another address or port over UDP: IP's checksum and target, UDP's port and
#: checksum
_MOVING = (slice(10, 12), slice(16, 20), slice(22, 24), slice(26, 28))
_UDP = 17
#: a record of the file with the first bytes of its frame
_ROW = numpy.dtype([("seconds", "=u4"), ("ns", "=u4"), ("kept", "=u4"), ("length", "=u4"),
                    ("frame", "u1", (_TELLING.stop,))])  # fmt: skip
#: how many records are read at a time
_ROWS = 1 << 12


class Packet(NamedTuple):
    """`identity` is the same wherever a packet is captured."""

    seconds: float
    bytes: int
    identity: "builtins.bytes"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Frames:
    """Packets in arrays of equal length. `identities`: a row for each, zero after the first `identity_bytes`."""

    seconds: numpy.typing.NDArray[numpy.float64]
    bytes: numpy.typing.NDArray[numpy.int64]
    identities: numpy.typing.NDArray[numpy.uint8]
    identity_bytes: numpy.typing.NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.seconds)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        columns = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: numpy.concatenate([getattr(part, name) for part in parts]) for name in columns})

    def chosen(self, which: numpy.typing.NDArray[numpy.bool_]) -> Self:
        return dataclasses.replace(self, **{name: column[which] for name, column in vars(self).items()})

    @property
    def packets(self) -> list[Packet]:
        identities = texts(self.identities, self.identity_bytes)
        return list(map(Packet, self.seconds.tolist(), self.bytes.tolist(), identities))


def texts(rows: numpy.typing.NDArray[numpy.uint8], sizes: numpy.typing.NDArray[numpy.int64]) -> "list[builtins.bytes]":
    """Return the first `sizes` bytes of each row."""
    whole, width = rows.tobytes(), rows.shape[1]
    return [whole[at : at + size] for at, size in zip(range(0, len(whole), width), sizes.tolist(), strict=True)]


def first_s(data: bytes) -> float:
    """Return the time of a capture's first frame, of any kind; `data` as in packets(). Raises UserError without one."""
    if len(data) < _FILE_HEADER_BYTES + _RECORD.size:
        raise UserError("the capture contains no frames")
    seconds, nanoseconds, _, _ = _RECORD.unpack_from(data, _FILE_HEADER_BYTES)
    return float(seconds + nanoseconds / 1e9)


def last_s(sides: Iterable[Sequence[Packet]]) -> float:
    """Return the time of the last packet in the two lists of packets(). Raises UserError if both are empty."""
    times = [side[-1].seconds for side in sides if side]
    if not times:
        raise UserError("the capture contains no packets")
    return max(times)


def packets(
    data: bytes, protocol: int, server: bytes, clients: Collection[bytes] = (), moves: bool = False
) -> tuple[list[Packet], list[Packet]]:
    """Return what frames() returns as two lists of Packet."""
    theirs, others = frames(data, protocol, server, clients, moves)
    return theirs.packets, others.packets


def frames(
    data: bytes, protocol: int, server: bytes, clients: Collection[bytes] = (), moves: bool = False
) -> tuple[Frames, Frames]:
    """Return (packets from the server, packets to it), in the order of the file.

    `data`: bytes of a pcap file. Only IPv4 packets of `protocol` (6 TCP, 17 UDP) count, and only those between `server`
    and `clients`, which are addresses of four bytes; without `clients`, those of all. `moves`: the client may get
    another address or port on the way, so these identify no packet over UDP. Raises UserError if `data` is not such a
    file, or ends early.
    """
    if data[:4] != _MAGIC:
        raise UserError("the capture is not a pcap file with times in nanoseconds")
    sides: tuple[list[Frames], list[Frames]] = [], []
    for rows in _rows(data):
        frame = rows["frame"]
        counts = (rows["kept"] >= _ETHERNET_BYTES + _SHORTEST_IPV4_BYTES) & (frame[:, _PROTOCOL_AT] == protocol)
        counts &= _holds(frame, _TYPE_AT, _IPV4)
        if clients:
            ends = [_holds(frame, at, client) for at in (_SOURCE_AT, _TARGET_AT) for client in clients]
            counts &= numpy.logical_or.reduce(ends)
        from_server = _holds(frame, _SOURCE_AT, server)
        for side, chosen in zip(sides, (counts & from_server, counts & ~from_server), strict=True):
            side.append(_frames(rows[chosen], moves and protocol == _UDP))
            if sum(map(len, side)) > MOST_PACKETS:
                raise UserError(f"the capture contains more than {MOST_PACKETS} packets")
    theirs, others = (Frames.joined(side) for side in sides)
    return theirs, others


def _rows(data: bytes) -> Iterator[numpy.typing.NDArray[numpy.void]]:
    """Yield the records of a pcap file, some at a time, at least once. Raises UserError if one is cut off."""
    at, end, starts = _FILE_HEADER_BYTES, len(data), list[int]()
    while at < end:
        if at + _RECORD.size > end:
            raise UserError("the capture ends in the middle of a record")
        starts.append(at)
        at += _RECORD.size + _KEPT.unpack_from(data, at + _KEPT_AT)[0]
        if at > end:
            raise UserError("the capture ends in the middle of a frame")
        if len(starts) == _ROWS:
            yield _read(data, starts)
            starts = []
    yield _read(data, starts)


def _read(data: bytes, starts: Sequence[int]) -> numpy.typing.NDArray[numpy.void]:
    """Return the records that begin at these places, in rising order, with zeros after frames that are short."""
    if not starts or starts[-1] + _ROW.itemsize > len(data):
        first = min(starts, default=0)
        data, starts = data[first:] + bytes(_ROW.itemsize), [at - first for at in starts]
    windows = numpy.lib.stride_tricks.sliding_window_view(numpy.frombuffer(data, numpy.uint8), _ROW.itemsize)
    rows = windows[numpy.array(starts, numpy.int64)].view(_ROW).reshape(len(starts))
    short = numpy.flatnonzero(rows["kept"] < _TELLING.stop)
    rows["frame"][short] *= numpy.arange(_TELLING.stop) < rows["kept"][short, None]
    return rows


def _holds(frame: numpy.typing.NDArray[numpy.uint8], at: int, wanted: bytes) -> numpy.typing.NDArray[numpy.bool_]:
    """Return which rows have these bytes at a place."""
    same: numpy.typing.NDArray[numpy.bool_] = (frame[:, at : at + len(wanted)] == list(wanted)).all(axis=1)
    return same


def _frames(rows: numpy.typing.NDArray[numpy.void], moves: bool) -> Frames:
    identities = rows["frame"][:, _TELLING]
    if moves:
        for columns in _MOVING:
            identities[:, columns] = 0
    return Frames(
        seconds=rows["seconds"] + rows["ns"] / 1e9,
        bytes=rows["length"].astype(numpy.int64),
        identities=identities,
        identity_bytes=numpy.minimum(rows["kept"], _TELLING.stop).astype(numpy.int64) - _TELLING.start,
    )

"""Compute when a TCP flow's bytes arrive, and how late, from captures at both ends, whatever splits it in between.

*Byte delay* is the time from when the sender first sends a byte of its stream until that byte is at the receiver's
interface with all bytes before it. A splitter changes sequence numbers and packets but keeps the stream, so a byte is
identified by its position in the stream.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.diagnosis.pcap import Packet
from conformance.model.errors import UserError
from conformance.model.networks.instants import instants
from conformance.model.networks.network import Network

#: step over which bandwidth is averaged, in seconds, as in the published figures 5 to 7 (studies/tng.json)
SERIES_S = 2.5
_WRAP, _SYN, _ACK = 1 << 32, 0x02, 0x10
_QUANTILES = (("p50", 0.5), ("p95", 0.95))
#: (time in s, number of the stream's bytes by then), both rising
Steps = list[tuple[float, int]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Segment:
    seconds: float
    ports: tuple[int, int]
    seq: int
    ack: int
    flags: int
    payload: int


def of_flow(
    network: Network,
    sent: Sequence[Packet],
    came: Sequence[Packet],
    acknowledgements: Sequence[Packet],
    elapsed_s: float,
) -> dict[str, Any]:
    """Return the delivery of the whole trial and of each phase, and series of bandwidth and delay in steps of SERIES_S.

    `sent`, `asked`: packets from and to the sender, at its interface; `came`: the sender's packets at the receiver's
    interface. Times are in seconds from the start of the trial. A phase lasts from one instant to the next; at an
    instant, something in the schedule changes or other flows start. Raises UserError if the captures hold no
    connection.
    """
    first, arrived = _first_sent(sent), _in_order(came)
    pieces = list(_pieces(first, arrived))
    edges = [*(at_s for at_s in instants(network) if at_s < elapsed_s), elapsed_s]
    bins = [n * SERIES_S for n in range(int(elapsed_s / SERIES_S) + 1)]
    return {
        "whole": _span(pieces, arrived, edges[0], elapsed_s),
        "phases": [_span(pieces, arrived, from_s, to_s) for from_s, to_s in itertools.pairwise(edges)],
        "series_mbps": [round(8 * _bytes(arrived, a, b) / SERIES_S / 1e6, 4) for a, b in itertools.pairwise(bins)],
        "series_delay_p50_ms": [_quantile_ms(_within(pieces, a, b), 0.5) for a, b in itertools.pairwise(bins)],
        **_acknowledged(first, arrived, sent, acknowledgements),
    }


def _segments(packets: Sequence[Packet]) -> Iterator[_Segment]:
    for packet in packets:
        ip, header = packet.identity, (packet.identity[0] & 15) * 4
        tcp = ip[header : header + 20]
        if len(tcp) < 20:
            continue
        yield _Segment(
            packet.seconds, (_number(tcp, 0, 2), _number(tcp, 2, 2)), _number(tcp, 4, 4), _number(tcp, 8, 4), tcp[13],
            _number(ip, 2, 2) - header - (tcp[12] >> 4) * 4,
        )  # fmt: skip


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _place(number: int, origin: int, high: int) -> int:
    """Return a sequence number's position in the stream: the one nearest to the highest so far, as numbers wrap."""
    return high + (number - origin - high + _WRAP // 2) % _WRAP - _WRAP // 2


def _stream(packets: Sequence[Packet]) -> Iterator[tuple[float, int, int]]:
    """Yield (time, first byte, byte after the last) of each data segment that the first connection's sender sends.

    Bytes are given by their positions in the stream.
    """
    ports, origin, high = None, 0, 0
    for segment in _segments(packets):
        if ports is None and segment.flags & _SYN:
            ports, origin = segment.ports, segment.seq + 1
        if segment.ports != ports or segment.flags & _SYN or segment.payload <= 0:
            continue
        place = _place(segment.seq, origin, high)
        high = max(high, place + segment.payload)
        yield segment.seconds, place, place + segment.payload
    if ports is None:
        raise UserError("the beginning of the connection was not captured")


def _first_sent(packets: Sequence[Packet]) -> Steps:
    """Return when the sent part of the stream grew, and how long it then was."""
    steps: Steps = []
    for seconds, _, end in _stream(packets):
        if end > (steps[-1][1] if steps else 0):
            steps.append((seconds, end))
    return steps


def _in_order(packets: Sequence[Packet]) -> Steps:
    """Return when the part of the stream that had arrived without a gap grew, and how long it then was."""
    steps: Steps = []
    front, ahead = 0, dict[int, int]()
    for seconds, begin, end in _stream(packets):
        if end <= front:
            continue
        ahead[begin] = max(end, ahead.get(begin, 0))
        before = front
        while reached := [start for start in ahead if start <= front]:
            front = max(front, *(ahead.pop(start) for start in reached))
        if front > before:
            steps.append((seconds, front))
    return steps


def _pieces(first: Steps, arrived: Steps) -> Iterator[tuple[float, int, float]]:
    """Yield (arrival time, bytes, delay in s) of pieces of the stream whose bytes were sent and arrived together."""
    at = done = 0
    for came_s, upto in arrived:
        while done < upto:
            if at == len(first):
                raise UserError("bytes arrived that were never sent")
            sent_s, sent_upto = first[at]
            end = min(upto, sent_upto)
            yield came_s, end - done, came_s - sent_s
            done = end
            at += sent_upto == end


def _within(pieces: Sequence[tuple[float, int, float]], from_s: float, to_s: float) -> list[tuple[float, int]]:
    """Return (delay, bytes) of the pieces that arrived in a span, the least delay first."""
    return sorted((delay_s, size) for came_s, size, delay_s in pieces if from_s <= came_s < to_s)


def _quantile_ms(delays: Sequence[tuple[float, int]], share: float) -> float | None:
    """Return the delay that this share of the bytes had at most; None if there are no bytes."""
    left = share * sum(size for _, size in delays)
    for delay_s, size in delays:
        left -= size
        if left <= 0:
            return round(1000 * delay_s, 4)
    return None


def _bytes(arrived: Steps, from_s: float, to_s: float) -> int:
    def at(t_s: float) -> int:
        return max((upto for came_s, upto in arrived if came_s < t_s), default=0)

    return at(to_s) - at(from_s)


def _span(pieces: Sequence[tuple[float, int, float]], arrived: Steps, from_s: float, to_s: float) -> Mapping[str, Any]:
    inside = _within(pieces, from_s, to_s)
    size = sum(count for _, count in inside)
    times = [from_s, *(came_s for came_s, _ in arrived if from_s <= came_s < to_s), to_s]
    return {
        "from_s": from_s,
        "to_s": round(to_s, 6),
        "bytes": size,
        "mbps": round(8 * size / (to_s - from_s) / 1e6, 6) if to_s > from_s else None,
        **{f"delay_{name}_ms": _quantile_ms(inside, share) for name, share in _QUANTILES},
        "gap_s": round(max(b - a for a, b in itertools.pairwise(times)), 6),
    }


def _acknowledged(
    first: Steps, arrived: Steps, sent: Sequence[Packet], acknowledgements: Sequence[Packet]
) -> dict[str, int | None]:
    """Return how many bytes the sender had seen acknowledged at the end, and how many of these never arrived."""
    opening = next((segment for segment in _segments(sent) if segment.flags & _SYN), None)
    if opening is None:
        raise UserError("the beginning of the connection was not captured")
    origin, back, high = opening.seq + 1, opening.ports[::-1], 0
    for segment in _segments(acknowledgements):
        if segment.ports == back and segment.flags & _ACK and not segment.flags & _SYN:
            high = max(high, _place(segment.ack, origin, high))
    # A FIN is acknowledged like a byte, but it is no byte of the stream.
    acked = min(high, first[-1][1] if first else 0)
    return {"acked_bytes": acked, "acked_undelivered_bytes": max(acked - (arrived[-1][1] if arrived else 0), 0)}

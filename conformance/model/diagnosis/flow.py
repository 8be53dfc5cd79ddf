"""Work out from two captures what became of each packet that a server sent, and so the bytes in flight.

Nothing that a stack reports is used. One capture is taken where the server's packets enter the emulator, the other
where they leave the bottleneck's queue. The server's link has no delay, so the first capture sees packets when they are
sent, and acknowledgements when they arrive. As QUIC is encrypted, only times, sizes and identities of packets are read,
for TCP as well: both are measured alike.

A packet is delivered, or lost. The sender knows of a delivered packet when its acknowledgement can have come back, the
delay of the way back after the packet left the queue. It knows of a lost packet when three packets sent later are known
to be delivered (RFC 5681, 3.2; RFC 9002, 6.1.1). Acknowledgements that are lost or delayed come later than that; the
flight is exact whenever one arrives.
"""

import collections
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy
import numpy.typing

from conformance.model.diagnosis.pcap import Packet
from conformance.model.errors import UserError
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.network import Network

Floats = numpy.typing.NDArray[Any]
#: a packet counts as lost when this many packets sent later are delivered (QUIC's kPacketThreshold, duplicate ACKs)
_REORDERING = 3
#: a transfer has at least this many delivered packets
_FEWEST_PACKETS = 20
#: seconds by which acknowledgements are taken to arrive earlier: each arrives at the same time as the packet that it
#: releases is sent, and rounding must not decide which came first
_KNOWN_FIRST_S = 1e-6
#: share of packets that may leave the queue without having entered it: with more, captures are not of one transfer
_MOST_STRANGE = 0.001


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flow:
    """The server's packets in the order sent. Arrays have the same length; times are in seconds since the first packet.

    `out_s`: when the packet left the queue, NaN if it was lost. `known_s`: when the sender can have known whether it
    was. `flight`: bytes in flight just after it was sent, itself included. `rtt_s`: the path's round-trip time then,
    queue included.
    """

    sent_s: Floats
    bytes: Floats
    out_s: Floats
    known_s: Floats
    flight: Floats
    rtt_s: Floats
    #: the size of a full packet
    full_bytes: int
    #: when the server got the request for the transfer
    request_s: float
    #: the delays of the empty path, from the server to the client and back
    forward_s: float
    back_s: float
    bytes_per_s: float
    #: when the first packet was sent, in seconds since the capture's first frame
    began_s: float
    #: packets from the client, which acknowledge, for each packet from the server
    ack_ratio: float
    #: bytes of a packet that are not payload
    header_bytes: int = 0

    @property
    def lost(self) -> numpy.typing.NDArray[numpy.bool_]:
        """Whether each packet was lost."""
        return numpy.isnan(self.out_s)

    @property
    def base_rtt_s(self) -> float:
        return self.forward_s + self.back_s

    @property
    def bdp_bytes(self) -> float:
        return self.base_rtt_s * self.bytes_per_s

    def window(self, start_s: float, end_s: float) -> float:
        """Return the largest flight in [start_s, end_s), in full packets; NaN if nothing was sent then."""
        a, b = numpy.searchsorted(self.sent_s, (start_s, end_s))
        return float(self.flight[a:b].max()) / self.full_bytes if b > a else numpy.nan

    def window_after(self, start_s: float, end_s: float) -> float:
        """Return window(), or the flight at the next sending if nothing was sent then.

        A sender that sends nothing has a window smaller than what is in flight, which the next sending shows.
        """
        window = self.window(start_s, end_s)
        at = numpy.searchsorted(self.sent_s, end_s)
        return float(self.flight[at]) / self.full_bytes if numpy.isnan(window) and at < len(self.sent_s) else window


def delays_s(network: Network, group: Flows, off_s: float) -> tuple[float, float]:
    """Return the delays of a group's empty path, forward and back, for the Flow of a trial.

    `off_s`: how much later than requested packets arrive in that trial, either way (job.delay_off_ns); where nothing is
    delayed, they are as early as ever.
    """
    delayed = any(link.direction(way).delay_ms for link, way in network.towards_server(group))
    back_s = network.back_s(group)
    forward_s = network.rtt_s(group) - back_s
    forward_s, back_s = (way_s + (off_s if delayed else 0.0) - _KNOWN_FIRST_S for way_s in (forward_s, back_s))
    return forward_s, back_s


def matched(sent: Sequence[Packet], came: Sequence[Packet]) -> tuple[Floats, int]:
    """Return when each packet of `sent` came out, NaN if it did not; and how many packets came out but were never sent.

    Both are lists of pcap.Packet, in order. Packets of equal identity are matched in that order, as no queue here
    reorders.
    """
    # Each list is in reverse order, so that pop() takes the first packet: deques would take seven times the memory.
    where: dict[bytes, list[int]] = collections.defaultdict(list)
    for at in range(len(sent) - 1, -1, -1):
        where[sent[at].identity].append(at)
    out_s = numpy.full(len(sent), numpy.nan)
    strange = 0
    for packet in came:
        candidates = where.get(packet.identity)
        if candidates:
            out_s[candidates.pop()] = packet.seconds
        else:
            strange += 1
    return out_s, strange


def known(out_s: Floats, back_s: float) -> Floats:
    """Return when the sender can have known what became of each packet; see the module's docstring.

    `out_s` is (n,), NaN where lost, and ends with a delivered packet. If fewer than three packets that were sent later
    are delivered, the last one tells.
    """
    lost = numpy.isnan(out_s)
    delivered = numpy.flatnonzero(~lost)
    acked_s = out_s + back_s
    # Packets may overtake each other in a queue that is not FIFO, but what the sender knows stays known.
    in_order_s = numpy.maximum.accumulate(acked_s[delivered])
    later = numpy.searchsorted(delivered, numpy.flatnonzero(lost)) + _REORDERING - 1
    known_s = acked_s.copy()
    known_s[lost] = in_order_s[numpy.minimum(later, len(delivered) - 1)]
    return known_s


def in_flight(sent_s: Floats, sizes: Floats, known_s: Floats) -> Floats:
    """Return the bytes in flight just after each packet was sent, itself included. All arrays are (n,).

    These are the bytes sent less those of packets whose fate is known.
    """
    order = numpy.argsort(known_s, kind="stable")
    resolved = numpy.concatenate(([0], numpy.cumsum(sizes[order])))
    return numpy.cumsum(sizes) - resolved[numpy.searchsorted(known_s[order], sent_s, side="right")]


def flow(
    sent: Sequence[Packet],
    came: Sequence[Packet],
    acknowledgements: Sequence[Packet],
    *,
    forward_s: float,
    back_s: float,
    bytes_per_s: float,
    first_s: float = 0.0,
    header_bytes: int = 0,
) -> Flow:
    """Return the Flow of a transfer.

    `sent`, `came`: the server's packets, before and after the queue; `acknowledgements`: the client's packets, as they
    reached the server. These are lists of pcap.Packet. `forward_s`, `back_s`: see Flow, and delays_s(). `first_s`: the
    time of the first captured frame. `header_bytes`: bytes of a packet that are not payload. Raises UserError if the
    packets are not of one transfer.

    Packets sent after the last delivered one are left out, as it is unknown what would have become of them.
    """
    out_s, strange = matched(sent, came)
    if strange > 10 + _MOST_STRANGE * len(came):
        raise UserError(f"{strange} of {len(came)} packets that came out of the queue never entered it")
    return of_arrays(
        numpy.array([packet.seconds for packet in sent]),
        numpy.array([packet.bytes for packet in sent], dtype=numpy.int64),
        out_s,
        numpy.array([packet.seconds for packet in acknowledgements]),
        numpy.array([packet.bytes for packet in acknowledgements], dtype=numpy.int64),
        forward_s=forward_s, back_s=back_s, bytes_per_s=bytes_per_s, first_s=first_s, header_bytes=header_bytes,
    )  # fmt: skip


def of_arrays(
    sent_s: Floats,
    sizes: Floats,
    out_s: Floats,
    client_s: Floats,
    client_bytes: Floats,
    *,
    forward_s: float,
    back_s: float,
    bytes_per_s: float,
    first_s: float = 0.0,
    header_bytes: int = 0,
) -> Flow:
    """Return the Flow of packets that are matched already; see flow().

    `sent_s`, `sizes`, `out_s` are (n,), with NaN in `out_s` where lost; `client_s`, `client_bytes` are (m,), of the
    client's packets.
    """
    delivered = numpy.flatnonzero(~numpy.isnan(out_s))
    if len(delivered) < _FEWEST_PACKETS:
        raise UserError(f"{len(delivered)} packets were delivered", "that is too few to say anything")
    end = delivered[-1] + 1
    began_s = sent_s[0]
    sent_s, sizes, out_s = sent_s[:end] - began_s, sizes[:end], out_s[:end] - began_s
    if numpy.any(numpy.diff(sent_s) < 0) or numpy.any(out_s < sent_s):
        raise UserError("the captures' clocks disagree")
    known_s = known(out_s, back_s)
    travel_s = numpy.interp(sent_s, sent_s[delivered], (out_s - sent_s)[delivered])
    full_bytes = int(numpy.percentile(sizes, 99, method="lower"))
    return Flow(
        sent_s=sent_s, bytes=sizes, out_s=out_s, known_s=known_s, flight=in_flight(sent_s, sizes, known_s),
        rtt_s=travel_s + back_s, full_bytes=full_bytes,
        request_s=_request_s(sent_s, sizes, client_s - began_s, client_bytes), forward_s=forward_s,
        back_s=back_s, bytes_per_s=bytes_per_s, began_s=float(began_s) - first_s,
        ack_ratio=len(client_s) / len(sent_s), header_bytes=header_bytes,
    )  # fmt: skip


#: a packet with only an acknowledgement is shorter, as long as nothing is lost: 66 bytes in TCP, about 80 in QUIC
_REQUEST_BYTES = 100
#: more bytes than the server sends in any handshake here, as its certificate is short
_CERTAINLY_RESPONSE_BYTES = 6000


def _request_s(sent_s: Floats, sizes: Floats, client_s: Floats, client_bytes: Floats) -> float:
    """Return when the client's last packet other than an acknowledgement came before the server sent the response.

    The response has begun when the server has sent more than a handshake. Later packets may be probes for a larger MTU.
    """
    at = min(int(numpy.searchsorted(numpy.cumsum(sizes), _CERTAINLY_RESPONSE_BYTES)), len(sent_s) - 1)
    times = client_s[(client_bytes > _REQUEST_BYTES) & (client_s <= sent_s[at])]
    return float(times.max()) if len(times) else 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class LossEvent:
    """Losses that call for one reduction: all packets sent before the first loss was known (RFC 9002, 7.3.2).

    `known_s`: when the first loss was known. `before`, `after`: the window in full packets, in the round trip before
    that and in the second round trip after it.
    """

    first: int
    losses: int
    known_s: float
    rtt_s: float
    before: float
    after: float

    @property
    def kept(self) -> float:
        """The share of the window that the losses left."""
        return self.after / self.before


def loss_events(flow: Flow) -> list[LossEvent]:
    """Return the LossEvents of a Flow, in order."""
    events: list[LossEvent] = []
    lost = numpy.flatnonzero(flow.lost)
    at = 0
    while at < len(lost):
        first = lost[at]
        # If a queue reorders, other losses of the burst may be known earlier; the packet that was sent first counts.
        known_s = flow.known_s[first]
        end = at + 1
        while end < len(lost) and flow.sent_s[lost[end]] < known_s:
            end += 1
        rtt_s = float(flow.rtt_s[first])
        events.append(
            LossEvent(
                first=int(first), losses=end - at, known_s=float(known_s), rtt_s=rtt_s,
                before=flow.window(known_s - rtt_s, known_s),
                after=flow.window_after(known_s + rtt_s, known_s + 2 * rtt_s),
            )
        )  # fmt: skip
        at = end
    return events

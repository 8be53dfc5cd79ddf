"""Simulated window-based senders, whose rules are known, over a bottleneck with a tail-drop queue."""

import collections
import dataclasses
import heapq

import numpy

from conformance.model.captures import packets as kept
from conformance.model.diagnosis import flow as flows
from conformance.model.diagnosis.pcap import Packet

FULL_BYTES = 1514


@dataclasses.dataclass(kw_only=True)
class Sender:
    """A sender, whose window a loss event multiplies by `beta`; `increase`: packets per round trip without loss.

    `increase` is for congestion avoidance; `initial_window`, `ssthresh`: packets. `lost`: indices of packets that the
    path loses. `every_loss`: whether each lost packet multiplies the window by beta, and not only each loss event.
    `beta_below`: beta of a loss in a window smaller than at the last one; None: the same.
    """

    beta: float = 0.5
    increase: float = 1.0
    initial_window: int = 10
    ssthresh: float = 40
    lost: frozenset = frozenset()
    every_loss: bool = False
    beta_below: float | None = None
    packets: int = 6000
    full_bytes: int = FULL_BYTES


def transfer(sender, *, one_way_s=0.02, bytes_per_s=1.25e6, queue_packets=33, back_s=None):
    """Simulate a transfer; return (sent, came, asked) as pcap.packets() gives them.

    `back_s`: the delay of acknowledgements, if it is not one_way_s.
    """
    back_s = one_way_s if back_s is None else back_s
    step_s = sender.full_bytes / bytes_per_s
    events, order = [], 0
    window, ssthresh = float(sender.initial_window), float(sender.ssthresh)
    sent, came, departures, acked_by = [], [], collections.deque(), {}
    in_flight, now, recovery_until, last_departure_s = set(), 0.0, -1, 0.0
    last_window = 0.0
    resolved = set()

    def send_all(now):
        nonlocal order, last_departure_s
        while len(in_flight) < int(window) and len(sent) < sender.packets:
            index = len(sent)
            identity = index.to_bytes(8, "big")
            sent.append(Packet(now, sender.full_bytes, identity))
            in_flight.add(index)
            arrives_s = now + one_way_s
            while departures and departures[0] <= arrives_s:
                departures.popleft()
            if index in sender.lost or len(departures) >= queue_packets:
                continue
            last_departure_s = max(arrives_s, last_departure_s + step_s)
            departures.append(last_departure_s)
            came.append(Packet(last_departure_s, sender.full_bytes, identity))
            heapq.heappush(events, (last_departure_s + back_s, order, index))
            order += 1

    send_all(now)
    while events:
        now, _, index = heapq.heappop(events)
        in_flight.discard(index)
        resolved.add(index)
        acked_by[index] = now
        missing = sorted(i for i in in_flight if i < index and i + 3 <= index)
        missing = [i for i in missing if sum(i < j <= index and j in resolved for j in range(i + 1, index + 1)) >= 3]
        for gone in missing:
            in_flight.discard(gone)
            if gone > recovery_until or sender.every_loss:
                below = window < last_window and sender.beta_below is not None
                last_window, beta = window, sender.beta_below if below else sender.beta
                window = ssthresh = max(window * beta, 2.0)
            if gone > recovery_until:
                recovery_until = len(sent) - 1
        if not missing and index > recovery_until:
            window += 1.0 if window < ssthresh else sender.increase / window
        send_all(now)
    return sent, came, []


def flow(sender, one_way_s=0.02, bytes_per_s=1.25e6, queue_packets=33):
    """Return the Flow of a transfer."""
    found = transfer(sender, one_way_s=one_way_s, bytes_per_s=bytes_per_s, queue_packets=queue_packets)
    return flows.flow(*found, forward_s=one_way_s, back_s=one_way_s, bytes_per_s=bytes_per_s)


def every(n, packets=6000, first=300):
    """Return indices of lost packets, one in `n`."""
    return frozenset(range(first, packets, n))


def packets(sender, **network):
    """Return the Packets of the same transfer, as a measurement keeps them."""
    sent, came, _ = transfer(sender, **network)
    out_s = {packet.identity: packet.seconds for packet in came}
    began_s = sent[0].seconds

    def ns(seconds):
        return round((seconds - began_s) * 1e9)

    def column(values):
        return numpy.array(values, dtype=numpy.int64)

    return kept.Packets(
        began_ns=0, sent_ns=column([ns(p.seconds) for p in sent]), bytes=column([p.bytes for p in sent]),
        out_ns=column([ns(out_s[p.identity]) if p.identity in out_s else kept.LOST for p in sent]),
        ecn_sent=column([0] * len(sent)), ecn_out=column([0] * len(sent)),
        client_ns=column([]), client_bytes=column([]),
    )  # fmt: skip

"""Simulate transfers that follow the equations of RFC 5681 and RFC 9438 alone, packet by packet, as a basis of zones.

They are a third witness besides a kernel and a closed formula. Each packet is lost by chance, as in the emulator, and
the sender then does what the document says. There is no implementation, there are no delayed acknowledgements, and
there are no timeouts except for RFC 5348, which covers them. The spread between such transfers is what chance does to a
perfect sender.

One step is one round trip: a window of packets leaves, each is lost or not, and the acknowledgements of the round move
the window. A round with a loss is followed by one reduction, however many packets it lost (RFC 5681, section 4.3;
RFC 6675); what was lost is sent again later. If a round holds more than the path does, the link's rate makes it longer;
packets that exceed path and queue together are lost.

Response functions say in closed form what the documents predict under random loss. Reno: an average window of 1.22 /
sqrt(p) segments (M. Mathis et al., The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, CCR 27(3), 1997;
RFC 3649, section 2; the reaction to loss is RFC 5681's). CUBIC: RFC 9438, section 5.1: 1.054 (RTT / p)^(3/4) with C =
0.4 and beta = 0.7, and never less than Reno's, by its Reno-friendly region (section 4.3). Both assume a loss every 1 /
p packets; if each packet is lost or not by chance, what is played says more.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator

#: the initial window of RFC 6928
INITIAL_WINDOW_PACKETS = 10.0
#: what a retransmission timer adds to the round trip, in seconds, as in Linux
_TIMER_S = 0.2
#: the greatest share of the time in timeouts for which RFC 5348 is used. With more, it says more about the timer than
#: about congestion control, and overstates the timer: its sender has neither limited transmit (RFC 3042) nor tail loss
#: probes (RFC 8985).
_MOST_TIMEOUTS = 0.2
_LEAST_WINDOW_PACKETS = 2.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlayedPath:
    """The path of a simulated transfer: a link's rate, the round trip of the empty path, and a chance of loss.

    `loss`: the chance that a packet is lost, from 0 to 1. `packet_bytes`: a packet's payload; `wire_bytes`: the same
    with its headers. `queue_packets`: how many packets the queue holds.
    """

    bandwidth_mbps: float
    rtt_s: float
    loss: float
    packet_bytes: int
    wire_bytes: int
    queue_packets: float
    transfer_bytes: int


class Reno:
    """RFC 5681's window in packets: it halves after a loss, and beyond slow start grows by one each round trip."""

    def __init__(self) -> None:
        self.window = INITIAL_WINDOW_PACKETS
        self._threshold = math.inf

    def lost(self, now_s: float) -> None:
        """Reduce the window once, for one congestion event."""
        self.window = self._threshold = max(self.window / 2, _LEAST_WINDOW_PACKETS)

    def acknowledged(self, packets: float, now_s: float, rtt_s: float) -> None:
        """Grow by what one round trip's acknowledgements allow."""
        if self.window < self._threshold:
            self.window = min(self.window + packets, max(self._threshold, self.window))
        else:
            self.window += packets / self.window


class Cubic(Reno):
    """RFC 9438's window in packets, with its Reno-friendly region and fast convergence (sections 4.2 to 4.7)."""

    C, BETA = 0.4, 0.7
    ALPHA = 3 * (1 - BETA) / (1 + BETA)

    def __init__(self) -> None:
        super().__init__()
        self._w_max = self._epoch_s = self._k_s = self._friendly = self._prior = 0.0

    def lost(self, now_s: float) -> None:
        """Reduce the window once, for one congestion event."""
        # Section 4.7: a flow that has not reached its last maximum makes room.
        self._w_max = self.window * (1 + self.BETA) / 2 if self.window < self._w_max else self.window
        self._prior = self.window
        self.window = self._threshold = max(self.window * self.BETA, _LEAST_WINDOW_PACKETS)
        self._k_s = math.cbrt(max(self._w_max - self.window, 0.0) / self.C)
        self._epoch_s, self._friendly = now_s, self.window

    def acknowledged(self, packets: float, now_s: float, rtt_s: float) -> None:
        """Grow by what one round trip's acknowledgements allow."""
        if self.window < self._threshold:
            self.window = min(self.window + packets, max(self._threshold, self.window))
            return
        # Section 4.3: once the window is as large as before the loss, it grows with Reno's own slope.
        window = self.window
        self._friendly += (self.ALPHA if self._friendly < self._prior else 1.0) * packets / window
        since_s = now_s - self._epoch_s
        if self.C * (since_s - self._k_s) ** 3 + self._w_max < self._friendly:
            if self._friendly > window:
                self.window = self._friendly
            return
        target = self.C * (since_s + rtt_s - self._k_s) ** 3 + self._w_max
        if target > window:
            self.window += (min(target, 1.5 * window) - window) * packets / window


#: document -> the window that it describes
CONTROLLERS: dict[str, Callable[[], Reno]] = {"RFC 5681": Reno, "RFC 9438": Cubic, "RFC 5348": Reno}


def documents(algorithm: str, path: PlayedPath) -> tuple[str, ...]:
    """Return the documents that say what an algorithm does over a path with random losses, the algorithm's own first.

    RFC 5348 applies to Reno, and to CUBIC where CUBIC does as Reno does. It is used only where timeouts are few.
    """
    document = {"reno": "RFC 5681", "cubic": "RFC 9438"}.get(algorithm)
    if document is None or not path.rtt_s:  # without a delay there are no round trips to count in
        return ()
    like_reno = algorithm == "reno" or reno_friendly(path.loss, path.rtt_s)
    return (document, "RFC 5348") if like_reno and timeouts_share(path) <= _MOST_TIMEOUTS else (document,)


def timeouts_share(path: PlayedPath) -> float:
    """Return the share of a transfer's time that is spent in timeouts, by RFC 5348's equation (section 3.1)."""
    timer_s = path.rtt_s + _TIMER_S
    with_them, without = (rfc5348_segments_a_second(path.loss, path.rtt_s, timer) for timer in (timer_s, 0.0))
    return 1 - with_them / without


def utilization(document: str, path: PlayedPath, passing: Iterator[float]) -> float:
    """Simulate one transfer as a document has it, and return its goodput over the link's rate.

    RFC 5348 has an equation and no window, so Reno's window is simulated, and timeouts take the share of the time that
    the equation gives. `passing`: yields, again and again, how many packets pass before the next that is lost by
    chance. Raises KeyError for a document that is not simulated here.
    """
    controller = CONTROLLERS[document]()
    packet_s = path.wire_bytes * 8 / (path.bandwidth_mbps * 1e6)
    room_packets = path.rtt_s / packet_s + path.queue_packets
    # A handshake of one round trip, and one from the request to the first byte.
    now_s, delivered, owed = 2 * path.rtt_s, 0, math.ceil(path.transfer_bytes / path.packet_bytes)
    carry = 0.0
    # Zones rest on thousands of transfers of a thousand rounds each, so a round makes as few calls as it can.
    rtt_s, acknowledged, until_loss = path.rtt_s, controller.acknowledged, next(passing)
    while delivered < owed:
        whole = controller.window + carry
        sent = int(whole)
        carry = whole - sent
        sent = min(sent, owed - delivered) or 1
        lost = 0
        while until_loss < sent:
            lost += 1
            until_loss += 1 + next(passing)
        until_loss -= sent
        if sent > room_packets:
            overflow = sent - room_packets
            lost += int(overflow)
            through_s = (sent - overflow) * packet_s
        else:
            through_s = sent * packet_s
        took_s = through_s if through_s > rtt_s else rtt_s
        now_s += took_s
        if lost:
            delivered += max(sent - lost, 0)
            controller.lost(now_s)
        else:
            delivered += sent
            acknowledged(sent, now_s, took_s)
    if document == "RFC 5348":
        now_s /= 1 - timeouts_share(path)
    return path.transfer_bytes * 8 / (now_s * path.bandwidth_mbps * 1e6)


def reno_window_segments(loss: float) -> float:
    """Return Reno's average congestion window at this loss probability, in segments."""
    return 1.22 / math.sqrt(loss)


def cubic_window_segments(loss: float, rtt_s: float) -> float:
    """Return CUBIC's average congestion window at this loss probability and round-trip time, in segments."""
    return max(1.054 * math.pow(rtt_s / loss, 0.75), reno_window_segments(loss))


def reno_friendly(loss: float, rtt_s: float) -> bool:
    """Say whether CUBIC does as Reno does, because its own curve would be slower."""
    return cubic_window_segments(loss, rtt_s) <= reno_window_segments(loss)


def rfc5348_segments_a_second(loss: float, rtt_s: float, timer_s: float) -> float:
    """Return RFC 5348's X_Bps / s (section 3.1), with b = 1: Reno's rate with timeouts after `timer_s`."""
    timeouts = timer_s * 3 * math.sqrt(3 * loss / 8) * loss * (1 + 32 * loss**2)
    return 1 / (rtt_s * math.sqrt(2 * loss / 3) + timeouts)

"""Mutants that only clauses are tested with, and what they are mutants of: NewReno and CUBIC that keep their documents.

They stand beside ../aioquic, whose results are kept under the digest of its folder. References: ../clauses.json.
"""

import newreno
from aioquic.quic import recovery
from aioquic.quic.congestion.base import register_congestion_control

#: RFC 9438, 4.1, 4.2 and 4.6; windows in packets, times in seconds
C, BETA, MOST_GROWTH = 0.4, 0.7, 1.5
#: seconds that a probe waits for room in the window
BLOCKED_S = 4
#: seconds until the first probe of a handshake
HANDSHAKE_S = 16


class Used(newreno.NewReno):
    """Grow only where the window is used (RFC 9002, 7.8): more than half of it, as aioquic's pacer leaves some free."""

    used = False

    def on_packet_acked(self, *, now, packet):
        self.used = 2 * self.bytes_in_flight > self.congestion_window
        super().on_packet_acked(now=now, packet=packet)

    def grow(self, acked_bytes):
        if self.used:
            super().grow(acked_bytes)


class ReducesLate(Used):
    """The flight is as before until recovery is over."""

    pending = False

    def reduce(self):
        self.pending = True

    def on_packet_acked(self, *, now, packet):
        if self.pending and not self.in_recovery(packet.sent_time):
            self.pending = False
            newreno.NewReno.reduce(self)
        super().on_packet_acked(now=now, packet=packet)


class ThreeProbes(Used):
    """A probe timeout sends three packets. A process serves one algorithm, so that the class may be changed."""

    def __init__(self, **options):
        super().__init__(**options)
        one = recovery.QuicPacketRecovery.reschedule_data

        def three(own, *, now, speed_up_handshake=False):
            for _ in range(3):
                one(own, now=now, speed_up_handshake=speed_up_handshake)

        if one.__name__ != three.__name__:
            recovery.QuicPacketRecovery.reschedule_data = three


class TimeoutReduces(Used):
    """A probe timeout passes for a loss."""

    def __init__(self, **options):
        super().__init__(**options)
        timeout = recovery.QuicPacketRecovery.on_loss_detection_timeout

        def reduces(own, *, now):
            if own._get_loss_space() is None and own.handshake_confirmed:
                own._cc.recovery_start = now
                own._cc.reduce()
            timeout(own, now=now)

        if timeout.__name__ != reduces.__name__:
            recovery.QuicPacketRecovery.on_loss_detection_timeout = reduces


def replaced(owner, name, by):
    """Let `by(before)` take the place of a method, once a process, as a process serves one algorithm."""
    before = getattr(owner, name)
    if before.__module__ != __name__:
        setattr(owner, name, by(before))


class CountsProbes(Used):
    """What a probe replaces stays counted as outstanding for ever, so that the timer never rests."""

    def __init__(self, **options):
        super().__init__(**options)

        def counts(before):
            def reschedule(own, *, now, speed_up_handshake=False):
                before(own, now=now, speed_up_handshake=speed_up_handshake)
                if own.handshake_confirmed:
                    own.spaces[-1].ack_eliciting_in_flight += 1

            return reschedule

        replaced(recovery.QuicPacketRecovery, "reschedule_data", counts)


class BlocksProbes(Used):
    """A probe waits for four seconds, as if the window had no room for it."""

    def __init__(self, **options):
        super().__init__(**options)

        def blocks(before):
            def reschedule(own, *, now, speed_up_handshake=False):
                if not own.handshake_confirmed or now - own._time_of_last_sent_ack_eliciting_packet >= BLOCKED_S:
                    before(own, now=now, speed_up_handshake=speed_up_handshake)

            return reschedule

        replaced(recovery.QuicPacketRecovery, "reschedule_data", blocks)


class WaitsAtLeast(Used):
    """With the least window, the pacer waits for a second after each packet."""

    def __init__(self, **options):
        super().__init__(**options)

        def rate(before):
            def update(own, congestion_window, smoothed_rtt):
                own.least = congestion_window <= newreno.MINIMUM_PACKETS * own._max_datagram_size
                before(own, congestion_window=congestion_window, smoothed_rtt=smoothed_rtt)

            return update

        def sent(before):
            def update(own, now):
                own.sent = now
                before(own, now=now)

            return update

        def next_time(before):
            def find(own, now):
                waits = getattr(own, "least", False) and now < own.sent + 1
                return own.sent + 1 if waits else before(own, now=now)

            return find

        replaced(recovery.QuicPacketPacer, "update_rate", rate)
        replaced(recovery.QuicPacketPacer, "update_after_send", sent)
        replaced(recovery.QuicPacketPacer, "next_send_time", next_time)


class RestartsLinearly(Used):
    """After persistent congestion the window grows as in congestion avoidance."""

    def on_persistent_congestion(self):
        super().on_persistent_congestion()
        self.ssthresh = self.congestion_window


class LateHandshake(Used):
    """Before a round trip is known, the period of probes is sixteen seconds."""

    def __init__(self, **options):
        super().__init__(**options)

        def late(before):
            return lambda own, **options: before(own, **options) if own._rtt_initialized else HANDSHAKE_S

        replaced(recovery.QuicPacketRecovery, "get_probe_timeout", late)


class Cubic(Used):
    """CUBIC of RFC 9438, without HyStart++ and fast convergence; times when it is limited do not count (4.2, 5.8)."""

    factor = BETA
    most_growth = MOST_GROWTH
    epoch = w_max = k = estimate = 0.0
    now = rtt = 0.0

    def reduce(self):
        self.w_max = self.congestion_window / self.packet
        super().reduce()
        self.epoch = 0.0

    def on_persistent_congestion(self):
        super().on_persistent_congestion()
        self.epoch = 0.0

    def on_rtt_measurement(self, *, now, rtt):
        self.rtt = min(self.rtt or rtt, rtt)

    def on_packet_acked(self, *, now, packet):
        self.now = now
        super().on_packet_acked(now=now, packet=packet)

    def on_packet_sent(self, *, packet):
        if self.bytes_in_flight == 0 and self.epoch:
            self.shift(packet.sent_time - self.now)
        super().on_packet_sent(packet=packet)

    def shift(self, idle_s):
        self.epoch += idle_s

    def grow(self, acked_bytes):
        if self.ssthresh is None or self.congestion_window < self.ssthresh or not self.used:
            super().grow(acked_bytes)
            return
        window = self.congestion_window / self.packet
        if not self.epoch:
            self.epoch, self.estimate = self.now, window
            self.w_max = max(self.w_max, window)
            self.k = ((self.w_max - window) / C) ** (1 / 3)
        acked = acked_bytes / self.packet
        self.estimate += 3 * (1 - BETA) / (1 + BETA) * acked / window
        t = self.now - self.epoch
        target = C * (t + self.rtt - self.k) ** 3 + self.w_max
        target = max(window, min(target, self.most_growth * window))
        window = max(window + (target - window) / window * acked, self.estimate)
        self.congestion_window = int(window * self.packet)


class IdleCounts(Cubic):
    """The time of the cubic goes on while nothing is sent."""

    def shift(self, idle_s):
        pass


class NoLimit(Cubic):
    """The target may be any number of windows."""

    most_growth = 1e9


#: what CC_CALLED names -> the controller
CONTROLLERS = {
    "used": Used,
    "reduces-late": ReducesLate,
    "three-probes": ThreeProbes,
    "timeout-reduces": TimeoutReduces,
    "counts-probes": CountsProbes,
    "blocks-probes": BlocksProbes,
    "waits-at-least": WaitsAtLeast,
    "restarts-linearly": RestartsLinearly,
    "late-handshake": LateHandshake,
    "cubic-used": Cubic,
    "idle-counts": IdleCounts,
    "no-limit": NoLimit,
}
for name, controller in CONTROLLERS.items():
    register_congestion_control(name, controller)

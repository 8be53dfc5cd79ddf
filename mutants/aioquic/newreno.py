"""NewReno of RFC 9002, appendix B, for aioquic, and mutants of it: each a bug that QUIC libraries had.

aioquic's own Reno also ends slow start when the RTT grows (adapters/aioquic/EVIDENCE.txt), which RFC 9002 does not
have; this one does not, so that what a mutant does differently is its bug alone. References: ../mutants.json.
"""

from aioquic.quic import recovery
from aioquic.quic.congestion.base import QuicCongestionControl, register_congestion_control

INITIAL_PACKETS, MINIMUM_PACKETS = 10, 2
LOSS_REDUCTION_FACTOR = 0.5


class NewReno(QuicCongestionControl):
    """As in RFC 9002, B.4 to B.8; windows in bytes."""

    initial_packets = INITIAL_PACKETS
    factor = LOSS_REDUCTION_FACTOR

    def __init__(self, *, max_datagram_size):
        super().__init__(max_datagram_size=max_datagram_size)
        self.packet = max_datagram_size
        self.congestion_window = self.initial_packets * self.packet
        self.recovery_start = 0.0
        self.credit = 0

    def in_recovery(self, sent_time):
        return sent_time <= self.recovery_start

    def on_packet_sent(self, *, packet):
        self.bytes_in_flight += packet.sent_bytes

    def on_packet_acked(self, *, now, packet):
        self.bytes_in_flight -= packet.sent_bytes
        if not self.in_recovery(packet.sent_time):
            self.grow(packet.sent_bytes)

    def grow(self, acked_bytes):
        if self.ssthresh is None or self.congestion_window < self.ssthresh:
            self.congestion_window += acked_bytes
            return
        # A packet for each window acknowledged: RFC 9002, 7.3.3.
        self.credit += acked_bytes
        if self.credit >= self.congestion_window:
            self.credit -= self.congestion_window
            self.congestion_window += self.packet

    def on_packets_expired(self, *, packets):
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes

    def on_packets_lost(self, *, now, packets):
        packets = list(packets)
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
        if not self.in_recovery(max(packet.sent_time for packet in packets)):
            self.recovery_start = now
            self.reduce()

    def reduce(self):
        self.ssthresh = max(int(self.congestion_window * self.factor), MINIMUM_PACKETS * self.packet)
        self.congestion_window = self.ssthresh
        self.credit = 0

    def on_persistent_congestion(self):
        self.congestion_window = MINIMUM_PACKETS * self.packet
        self.recovery_start = 0.0

    def on_rtt_measurement(self, *, now, rtt):
        pass


class Beta(NewReno):
    factor = 0.7


class EveryLoss(NewReno):
    def on_packets_lost(self, *, now, packets):
        for packet in packets:
            self.bytes_in_flight -= packet.sent_bytes
            self.recovery_start = now
            self.reduce()


class NoReduction(NewReno):
    def reduce(self):
        # It leaves slow start, at least.
        self.ssthresh = self.congestion_window


class InitialWindow(NewReno):
    initial_packets = 200


class CountsTwice(NewReno):
    def grow(self, acked_bytes):
        super().grow(2 * acked_bytes)


class GrowsByByte(NewReno):
    """In congestion avoidance a byte for each window acknowledged."""

    def grow(self, acked_bytes):
        before, packet = self.congestion_window, self.packet
        self.packet = 1 if self.ssthresh is not None and before >= self.ssthresh else packet
        super().grow(acked_bytes)
        self.packet = packet


class Collapses(NewReno):
    def reduce(self):
        super().reduce()
        self.congestion_window = MINIMUM_PACKETS * self.packet


class GrowsInRecovery(NewReno):
    """ACKs of what was sent before the reduction grow the window again."""

    def on_packet_acked(self, *, now, packet):
        self.bytes_in_flight -= packet.sent_bytes
        self.grow(packet.sent_bytes)


class PersistentAtOnce(NewReno):
    """Two packets lost at a time pass for persistent congestion."""

    def on_packets_lost(self, *, now, packets):
        packets = list(packets)
        super().on_packets_lost(now=now, packets=packets)
        if len(packets) > 1:
            self.on_persistent_congestion()


class Unpaced(NewReno):
    """The pacer never waits. A process serves one algorithm, so that its class may be changed."""

    def __init__(self, **options):
        super().__init__(**options)
        recovery.QuicPacketPacer.next_send_time = lambda pacer, now: None


class ProbesSteadily(NewReno):
    """Probe timeouts are not counted, so that none is longer than the one before."""

    def __init__(self, **options):
        super().__init__(**options)
        recovery.QuicPacketRecovery._pto_count = property(lambda own: 0, lambda own, count: None)


class EarlyLoss(NewReno):
    """A packet is lost once a later one is acknowledged."""

    def __init__(self, **options):
        super().__init__(**options)
        recovery.K_PACKET_THRESHOLD = 1


class TakesBack(NewReno):
    """Losses of up to five packets pass for spurious, once what was sent after them is acknowledged."""

    before = few = 0

    def on_packets_lost(self, *, now, packets):
        packets = list(packets)
        before, began = self.congestion_window, self.recovery_start
        super().on_packets_lost(now=now, packets=packets)
        if self.recovery_start != began:
            self.before, self.few = before, 0
        self.few += len(packets)

    def on_packet_acked(self, *, now, packet):
        super().on_packet_acked(now=now, packet=packet)
        if self.before and not self.in_recovery(packet.sent_time):
            if self.few <= 5:
                self.congestion_window = max(self.congestion_window, self.before)
                self.ssthresh = self.congestion_window
            self.before = 0


class NoPersistent(NewReno):
    def on_persistent_congestion(self):
        pass


#: what CC_CALLED names -> the controller
CONTROLLERS = {
    "newreno": NewReno,
    "beta": Beta,
    "every-loss": EveryLoss,
    "no-reduction": NoReduction,
    "initial-window": InitialWindow,
    "counts-twice": CountsTwice,
    "grows-by-byte": GrowsByByte,
    "collapses": Collapses,
    "grows-in-recovery": GrowsInRecovery,
    "persistent-at-once": PersistentAtOnce,
    "unpaced": Unpaced,
    "probes-steadily": ProbesSteadily,
    "early-loss": EarlyLoss,
    "takes-back": TakesBack,
    "no-persistent": NoPersistent,
}
for name, controller in CONTROLLERS.items():
    register_congestion_control(name, controller)

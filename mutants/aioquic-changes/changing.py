"""A NewReno that keeps section 7.8 of RFC 9002, for aioquic, and mutants that changes alone show.

They stand apart from ../aioquic/newreno.py, whose results are recorded by a digest of its file. References:
../changes.json.
"""

from aioquic.quic import recovery
from aioquic.quic.congestion.base import register_congestion_control
from newreno import NewReno

#: a sender that sent nothing for so long was silent
SILENT_S = 0.5
#: a silence doubles the window so many times at most
MOST_DOUBLINGS = 4
SELDOM_S = 10.0


class Used(NewReno):
    """A window grows only while half of it at least is in flight (RFC 9002, 7.8; as Linux does in slow start)."""

    def on_packet_acked(self, *, now, packet):
        used = 2 * self.bytes_in_flight >= self.congestion_window
        before, credit = self.congestion_window, self.credit
        super().on_packet_acked(now=now, packet=packet)
        if not used:
            self.congestion_window, self.credit = before, credit


class GrowsUnused(NewReno):
    """Acknowledgements grow the window, whether or not it is used."""


class IdleGrows(Used):
    """Each round trip of silence counts as one of slow start."""

    last_sent_s = rtt_s = None

    def on_rtt_measurement(self, *, now, rtt):
        self.rtt_s = rtt

    def on_packet_sent(self, *, packet):
        if self.rtt_s and self.last_sent_s is not None and packet.sent_time - self.last_sent_s > SILENT_S:
            rounds = int((packet.sent_time - self.last_sent_s) / self.rtt_s)
            self.congestion_window <<= min(rounds, MOST_DOUBLINGS)
            self.ssthresh = None
        self.last_sent_s = packet.sent_time
        super().on_packet_sent(packet=packet)


class IdleUnpaced(Used):
    """The pacer's credit has no bound, so that a silence is made up for at once."""

    def __init__(self, **options):
        super().__init__(**options)
        usual = recovery.QuicPacketPacer.update_rate

        def unbounded(pacer, **about):
            time = pacer.bucket_time
            usual(pacer, **about)
            pacer.bucket_max, pacer.bucket_time = float("inf"), time

        # A process serves one algorithm, so that its class may be changed.
        recovery.QuicPacketPacer.update_rate = unbounded


class ReducesSeldom(Used):
    """A loss within ten seconds of a reduction reduces nothing."""

    reduced_s = None
    now_s = 0.0

    def on_packets_lost(self, *, now, packets):
        self.now_s = now
        super().on_packets_lost(now=now, packets=packets)

    def reduce(self):
        if self.reduced_s is None or self.now_s - self.reduced_s >= SELDOM_S:
            self.reduced_s = self.now_s
            super().reduce()


#: what CC_CALLED names -> the controller
CONTROLLERS = {
    "used": Used,
    "grows-unused": GrowsUnused,
    "idle-grows": IdleGrows,
    "idle-unpaced": IdleUnpaced,
    "reduces-seldom": ReducesSeldom,
}
for name, controller in CONTROLLERS.items():
    register_congestion_control(name, controller)

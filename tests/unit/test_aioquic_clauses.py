"""The controllers that only clauses judge, tested by themselves, without aioquic, which only guests have."""

import importlib
import re
import sys
import types

import pytest

from conformance.support import paths, schema

FOLDER = paths.PACKAGE.parent / "mutants"
PACKET, RTT_S = 1200, 0.1


class Base:
    """The base class of aioquic's controllers."""

    def __init__(self, *, max_datagram_size):
        self.bytes_in_flight, self.congestion_window, self.ssthresh = 0, 0, None


@pytest.fixture
def controllers(monkeypatch):
    """Load the controllers with stand-ins for aioquic's modules; `registered` has those that were registered."""
    registered = {}
    recovery = types.ModuleType("aioquic.quic.recovery")
    recovery.QuicPacketRecovery = type(
        "QuicPacketRecovery",
        (),
        {
            "reschedule_data": lambda own, *, now, speed_up_handshake=False: own.sent.append(now),
            "on_loss_detection_timeout": lambda own, *, now: own.sent.append(now),
            "_get_loss_space": lambda own: None,
            "get_probe_timeout": lambda own, *, include_max_ack_delay=True: 0.1,
        },
    )
    recovery.QuicPacketPacer = type(
        "QuicPacketPacer",
        (),
        {
            "update_rate": lambda own, *, congestion_window, smoothed_rtt: None,
            "update_after_send": lambda own, *, now: None,
            "next_send_time": lambda own, *, now: None,
        },
    )
    base = types.ModuleType("aioquic.quic.congestion.base")
    base.QuicCongestionControl, base.register_congestion_control = Base, registered.__setitem__
    quic = types.ModuleType("aioquic.quic")
    quic.recovery = recovery
    for name, module in {
        "aioquic": types.ModuleType("aioquic"), "aioquic.quic": quic, "aioquic.quic.recovery": recovery,
        "aioquic.quic.congestion": types.ModuleType("aioquic.quic.congestion"), "aioquic.quic.congestion.base": base,
    }.items():  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    for folder in ("aioquic", "aioquic-clauses"):
        monkeypatch.syspath_prepend(str(FOLDER / folder))
    for name in ("newreno", "controllers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("controllers")
    module.registered, module.recovery = registered, recovery
    yield module
    for name in ("newreno", "controllers"):
        sys.modules.pop(name, None)


class Packet:
    def __init__(self, sent_time):
        self.sent_time, self.sent_bytes = sent_time, PACKET


def rounds(controller, count, now=0.0, share=1.0):
    """Send a share of the window in each round trip and acknowledge it; return (windows in packets, time)."""
    found = []
    for _ in range(count):
        controller.on_rtt_measurement(now=now, rtt=RTT_S)
        packets = [Packet(now) for _ in range(int(share * controller.congestion_window / PACKET))]
        for packet in packets:
            controller.on_packet_sent(packet=packet)
        now += RTT_S
        for packet in packets:
            controller.on_packet_acked(now=now, packet=packet)
        found.append(controller.congestion_window / PACKET)
    return found, now


def lose(controller, now):
    packet = Packet(now)
    controller.on_packet_sent(packet=packet)
    controller.on_packets_lost(now=now, packets=[packet])


def test_the_adapter_names_the_controllers_that_there_are(controllers):
    named = schema.load("adapter", FOLDER / "aioquic-clauses/adapter.json")["algorithms"].values()
    source = (FOLDER / "aioquic-clauses/controllers.py").read_text()
    assert {one["called"] for one in named} == set(controllers.CONTROLLERS)
    assert set(controllers.CONTROLLERS) <= set(controllers.registered)
    assert set(re.findall(r'^    "([a-z-]+)": \w+,$', source, re.MULTILINE)) == set(controllers.CONTROLLERS)


def test_a_window_that_is_not_used_does_not_grow(controllers):
    used, unused = (controllers.Used(max_datagram_size=PACKET) for _ in range(2))
    assert rounds(used, 3)[0][-1] > 15
    assert rounds(unused, 5, share=0.3)[0] == [10] * 5


def test_a_late_reduction_comes_when_recovery_is_over(controllers):
    late = controllers.ReducesLate(max_datagram_size=PACKET)
    _, now = rounds(late, 2)
    before = late.congestion_window
    lose(late, now)
    assert late.congestion_window == before
    rounds(late, 1, now + 0.001)
    assert late.congestion_window < 0.6 * before


def test_timeouts_send_three_packets_or_halve_the_window(controllers):
    recovery = controllers.recovery.QuicPacketRecovery()
    recovery.sent, recovery.handshake_confirmed = [], True
    for _ in range(2):  # a second connection in the process has no further effect
        controllers.ThreeProbes(max_datagram_size=PACKET)
    recovery.reschedule_data(now=1.0)
    assert recovery.sent == [1.0] * 3
    for _ in range(2):
        recovery._cc = controllers.TimeoutReduces(max_datagram_size=PACKET)
    recovery.on_loss_detection_timeout(now=2.0)
    assert recovery.sent[3:] == [2.0] and recovery._cc.congestion_window == 5 * PACKET


def recovering(controllers, kind):
    """Return a recovery with a controller of this kind; a second connection in the process has no further effect."""
    recovery = controllers.recovery.QuicPacketRecovery()
    recovery.sent, recovery.handshake_confirmed = [], True
    for _ in range(2):
        recovery._cc = kind(max_datagram_size=PACKET)
    return recovery


def test_a_probe_stays_counted_once_the_handshake_is_over(controllers):
    recovery = recovering(controllers, controllers.CountsProbes)
    recovery.spaces = [types.SimpleNamespace(ack_eliciting_in_flight=0)]
    recovery.reschedule_data(now=1.0)
    assert recovery.sent == [1.0] and recovery.spaces[0].ack_eliciting_in_flight == 1
    recovery.handshake_confirmed = False
    recovery.reschedule_data(now=2.0)
    assert recovery.sent == [1.0, 2.0] and recovery.spaces[0].ack_eliciting_in_flight == 1


def test_a_full_window_blocks_probes_for_four_seconds(controllers):
    recovery = recovering(controllers, controllers.BlocksProbes)
    recovery.congestion_window = recovery.bytes_in_flight = 10 * PACKET
    recovery._time_of_last_sent_ack_eliciting_packet = 1.0
    recovery.reschedule_data(now=2.0)
    assert recovery.sent == []
    recovery.reschedule_data(now=5.0)
    recovery.bytes_in_flight = 5 * PACKET
    recovery.reschedule_data(now=5.1)
    assert recovery.sent == [5.0, 5.1]


def test_the_pacer_waits_for_a_second_with_the_least_window_alone(controllers):
    controllers.WaitsAtLeast(max_datagram_size=PACKET)
    pacer = controllers.recovery.QuicPacketPacer()
    pacer._max_datagram_size = PACKET
    assert pacer.next_send_time(now=0.0) is None
    for window, waits_until_s in ((2, 2.0), (3, None)):
        pacer.update_rate(congestion_window=window * PACKET, smoothed_rtt=RTT_S)
        pacer.update_after_send(now=1.0)
        assert pacer.next_send_time(now=1.5) == waits_until_s
        assert pacer.next_send_time(now=2.0) is None


def test_the_period_of_probes_is_sixteen_seconds_at_first(controllers):
    recovery = recovering(controllers, controllers.LateHandshake)
    recovery._rtt_initialized = False
    assert recovery.get_probe_timeout(include_max_ack_delay=False) == 16
    recovery._rtt_initialized = True
    assert recovery.get_probe_timeout() == pytest.approx(0.1)


def test_a_window_that_begins_again_doubles_but_for_the_mutant(controllers):
    doubled, linear = (kind(max_datagram_size=PACKET) for kind in (controllers.Used, controllers.RestartsLinearly))
    for one in (doubled, linear):
        _, now = rounds(one, 4)
        lose(one, now)
        one.on_persistent_congestion()
    grown, slowly = (rounds(one, 8, now + 0.001)[0][-1] for one in (doubled, linear))
    assert grown >= 2 * slowly


def after_a_loss(controller):
    _, now = rounds(controller, 4)
    lose(controller, now)
    return now + 0.001


def test_the_cubic_returns_to_its_window_after_k_and_grows_by_half_at_most(controllers):
    cubic = controllers.Cubic(max_datagram_size=PACKET)
    now = after_a_loss(cubic)
    w_max = cubic.w_max
    k_s = (0.3 * w_max / 0.4) ** (1 / 3)
    windows, _ = rounds(cubic, round(k_s / RTT_S) + 60, now)
    assert windows[0] == pytest.approx(0.7 * w_max, rel=0.1)
    assert windows[round(k_s / RTT_S)] == pytest.approx(w_max, rel=0.05)
    assert windows[-1] > 1.5 * w_max
    grown = []
    for kind in (controllers.NoLimit, controllers.Cubic):
        one = kind(max_datagram_size=PACKET)
        _, now = rounds(one, 1, after_a_loss(one))
        before, one.epoch = one.congestion_window, one.epoch - 30  # as if it had been sending for a long time
        rounds(one, 1, now)
        grown.append(one.congestion_window / before)
    assert grown[0] > 2 and grown[1] <= 1.5


def test_idle_time_moves_the_epoch_but_for_the_mutant(controllers):
    grown = []
    for kind in (controllers.Cubic, controllers.IdleCounts):
        one = kind(max_datagram_size=PACKET)
        now = after_a_loss(one)
        (before,), now = rounds(one, 1, now)
        (after,), _ = rounds(one, 1, now + 10)
        grown.append(after / before)
    assert grown[0] < 1.05 < 1.15 < grown[1]

"""Round trips of data packets as conformance/load/trips.c counts them, with frames that are made here."""

import ctypes
import socket
import struct
import subprocess

import pytest

from conformance.guest import round_trips
from conformance.guest.topology import Host, Interface, Place
from conformance.support import paths

ACK = 0x10
PACKET = 1000


class Trips(ctypes.Structure):
    """The `struct trips` of trips.h."""

    _fields_ = [("packets", ctypes.c_uint64), ("sum_ns", ctypes.c_int64), ("least_ns", ctypes.c_int64),
                ("most_ns", ctypes.c_int64), ("from", ctypes.c_uint32), ("to", ctypes.c_uint32),
                ("from_port", ctypes.c_uint16), ("to_port", ctypes.c_uint16)]  # fmt: skip


@pytest.fixture
def trips(tmp_path):
    """Return the compiled code, with no connection yet."""
    target = tmp_path / "trips.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", target, paths.PACKAGE / "load" / "trips.c"], check=True)
    found = ctypes.CDLL(str(target))
    found.trips_sent.argtypes = found.trips_acknowledged.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64]
    found.trips_of.restype, found.trips_count.restype = ctypes.POINTER(Trips), ctypes.c_size_t
    return found


def frame(source, sink, seq=0, ack=0, payload=0, options=b""):
    """Return a frame without its payload, as a capture of headers holds it."""
    tcp = struct.pack(
        "!HHIIBBHHH", source[1], sink[1], seq % 2**32, ack % 2**32, (5 + len(options) // 4) << 4, ACK, 1, 0, 0
    )
    addresses = [socket.inet_aton(one[0]) for one in (source, sink)]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(options) + payload, 1, 0, 64, 6, 0, *addresses)
    return bytes(12) + b"\x08\x00" + ip + tcp + options


def sack(*blocks):
    body = b"".join(struct.pack("!II", *(one % 2**32 for one in block)) for block in blocks)
    return b"\x01\x01" + bytes([5, 2 + len(body)]) + body


class Flow:
    """A connection that sends packets of PACKET bytes, which are referred to by number."""

    def __init__(self, code, number=0, first=1):
        self.code, self.first = code, first
        self.ends = ("10.0.0.1", 20_000 + number), ("10.1.0.1", 5001)

    def sends(self, number, at_ns):
        data = frame(*self.ends, seq=self.first + number * PACKET, payload=PACKET)
        assert self.code.trips_sent(data, len(data), at_ns) == 0

    def hears(self, number, at_ns, *blocks):
        """Acknowledge all packets before `number`, and those in the SACK blocks (from, to)."""
        options = sack(*((self.first + a * PACKET, self.first + b * PACKET) for a, b in blocks)) if blocks else b""
        data = frame(*self.ends[::-1], ack=self.first + number * PACKET, options=options)
        self.code.trips_acknowledged(data, len(data), at_ns)


def seen(code, number=0):
    one = code.trips_of(number).contents
    return one.packets, one.sum_ns, one.least_ns, one.most_ns


def test_each_packet_waits_for_the_first_acknowledgement_that_covers_it(trips):
    flow = Flow(trips)
    flow.sends(0, 100)
    flow.sends(1, 200)
    flow.hears(2, 1000)
    flow.hears(2, 5000)
    flow.sends(2, 1100)
    flow.hears(3, 1400)
    assert seen(trips) == (3, 900 + 800 + 300, 300, 900)


def test_what_was_sent_again_does_not_count_and_makes_nothing_else_late(trips):
    flow = Flow(trips)
    for number in range(4):
        flow.sends(number, 100)
    flow.hears(0, 600, (1, 2))
    flow.hears(0, 610, (1, 4))
    flow.sends(0, 700)
    flow.hears(4, 1200)
    assert seen(trips) == (3, 500 + 510 + 510, 500, 510)


def test_sequence_numbers_come_round(trips):
    flow = Flow(trips, first=2**32 - 2500)
    for number in range(6):
        flow.sends(number, number)
    flow.hears(4, 100)
    flow.hears(6, 100)
    assert seen(trips)[:2] == (6, 600 - 15)


def test_many_packets_of_many_flows_are_told_apart(trips):
    flows = [Flow(trips, number) for number in range(3)]
    for number in range(5000):
        for at, flow in enumerate(flows):
            flow.sends(number, 10 * number)
            if number >= 20:
                flow.hears(number - 19, 10 * number + at)
    assert trips.trips_count() == 3
    assert [seen(trips, at) for at in range(3)] == [(4980, 4980 * (200 + at), 200 + at, 200 + at) for at in range(3)]


@pytest.mark.parametrize("data", [b"", bytes(60), frame(("1.2.3.4", 1), ("4.3.2.1", 2))[:-1]])
def test_what_is_no_segment_is_nothing_to_it(trips, data):
    assert trips.trips_sent(data, len(data), 1) == 0
    trips.trips_acknowledged(data, len(data), 1)
    assert trips.trips_count() == 0


def test_options_that_end_too_early_are_no_acknowledgement(trips):
    flow = Flow(trips)
    flow.sends(0, 100)
    for options in (b"\x05\x40\x00\x00", b"\x05\x00\x00\x00", b"\x01\x01\x01\x05", b"\x00\x05\x0a\x00"):
        data = frame(*flow.ends[::-1], ack=1, options=options)
        trips.trips_acknowledged(data, len(data), 200)
    assert seen(trips)[0] == 0


def test_flows_are_known_by_their_group_and_number(trips):
    flow = Flow(trips, number=3)
    flow.sends(0, 100)
    flow.hears(1, 150)
    data = ctypes.string_at(trips.trips_of(0), ctypes.sizeof(Trips))

    def host(name, address):
        return Host(node=name, interface="up", address=address, mac="", port=Interface("bridge", name))

    place = Place(
        chain=False, senders=(host("s0", "10.0.0.1"),), receivers=((host("c0", "10.1.0.1"),),),
        directions=(), hops=(), bond=None, splitters=(),
    )  # fmt: skip
    assert list(round_trips.of_flows(place, [False], data)) == [(0, 3, 1, 50, 50, 50)]
    assert list(round_trips.of_flows(place, [True], data)) == [(0, 0, 1, 50, 50, 50)]
    # A hop has given the client another address (load/rebind.c).
    moved = data.replace(socket.inet_aton("10.1.0.1"), socket.inet_aton("10.1.0.101"))
    assert moved != data
    assert list(round_trips.of_flows(place, [True], moved)) == [(0, 0, 1, 50, 50, 50)]

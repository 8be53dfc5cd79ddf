"""Does an emulator deliver what was asked? Observations only; the engine judges them.

Over one link, in the direction of the data: a train of datagrams at one and a half times the link's rate, beyond
what is lost at random, tells the rate; lone datagrams the delay; a long thin train the loss. All packets are single
segments, so the loss is per packet whatever the offload setting.
"""

import select
import socket
import struct
import time

from conformance.guest.netns import inside

_PORT = 9
#: asm-generic/socket.h; Python does not name them
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 32, 33, 35
#: bytes of Ethernet, IPv4 and UDP headers around a datagram's payload
_HEADERS_BYTES = 14 + 20 + 8
_FULL_PAYLOAD_BYTES = 1472
_THIN_PAYLOAD_BYTES = 64


def observe(server, client, client_address, cell, rate_packets, loss_packets):
    """{"rate_mbps", "delays_ms", "loss_sent", "loss_lost"} of a link; rate is None where too little arrived.

    `server` and `client` are the nodes at its ends, `cell` is what was asked of it.
    """
    bandwidth_mbps, one_way_delay_ms = cell["bandwidth_mbps"], cell["one_way_delay_ms"]
    with inside(client):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 23)
        # The kernel stamps arrivals, so that reading late changes nothing.
        receiver.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        receiver.bind((client_address, _PORT))
        receiver.setblocking(False)
    with inside(server):
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 23)
        sender.connect((client_address, _PORT))
    with receiver, sender:
        patience_s = 0.5 + 3 * one_way_delay_ms / 1000
        delays = _delays(sender, receiver, patience_s)
        rate = _rate(sender, receiver, bandwidth_mbps / (1 - cell["loss_pct"] / 100), patience_s, rate_packets)
        sent, lost = _loss(sender, receiver, loss_packets, bandwidth_mbps, patience_s)
    return {"rate_mbps": rate, "delays_ms": delays, "loss_sent": sent, "loss_lost": lost}


def _receive(receiver, patience_s):
    """Every (arrival time in ns, sequence number) until `patience_s` of silence."""
    poll = select.poll()
    poll.register(receiver, select.POLLIN)
    while poll.poll(patience_s * 1000):
        while True:
            try:
                data, ancillary, _, _ = receiver.recvmsg(2048, 64)
            except BlockingIOError:
                break
            seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
            yield seconds * 10**9 + nanoseconds, struct.unpack_from("I", data)[0]


def _delays(sender, receiver, patience_s, wanted=5, tries=40):
    delays = []
    for number in range(tries):
        sent_at_ns = time.time_ns()
        sender.send(struct.pack("I", number).ljust(_THIN_PAYLOAD_BYTES, b"\0"))
        for arrived_at_ns, got in _receive(receiver, patience_s):
            if got == number:
                delays.append((arrived_at_ns - sent_at_ns) / 1e6)
                break
        if len(delays) == wanted:
            break
    return delays


def _rate(sender, receiver, bandwidth_mbps, patience_s, packets):
    frame_bits = (_FULL_PAYLOAD_BYTES + _HEADERS_BYTES) * 8
    gap_ns = round(frame_bits / (bandwidth_mbps * 1e6) / 1.5 * 1e9)
    start_ns = time.monotonic_ns()
    for number in range(packets):
        pause_ns = start_ns + number * gap_ns - time.monotonic_ns()
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
        sender.send(struct.pack("I", number).ljust(_FULL_PAYLOAD_BYTES, b"\0"))
    arrivals = [at for at, _ in _receive(receiver, patience_s)]
    # The first ones may leave on a token bucket's burst.
    steady = arrivals[len(arrivals) // 2 :]
    if len(steady) < 10 or steady[-1] <= steady[0]:
        return None
    return (len(steady) - 1) * frame_bits * 1000 / (steady[-1] - steady[0])


def _loss(sender, receiver, packets, bandwidth_mbps, patience_s, batch=4):
    frame_bits = (_THIN_PAYLOAD_BYTES + _HEADERS_BYTES) * 8
    pause_s = batch * frame_bits / (bandwidth_mbps * 1e6) * 4
    for number in range(packets):
        if number % batch == 0:
            time.sleep(pause_s)
        sender.send(struct.pack("I", number).ljust(_THIN_PAYLOAD_BYTES, b"\0"))
    got = {number for _, number in _receive(receiver, patience_s)}
    return packets, packets - len(got)

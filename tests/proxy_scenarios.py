"""Scenarios that the splitting proxy must pass: `proxy_scenarios.py SPLITTER NAME` runs one in its own namespaces."""

import contextlib
import fcntl
import hashlib
import pathlib
import random
import resource
import select
import socket
import struct
import sys
import termios
import threading
import time

from conformance.guest import netns
from conformance.guest.netlink import TcpInfoReader
from conformance.lab.proxy_network import CLIENT, PORT, SERVER, ProxyNetwork, wait

MB = 1 << 20


def receive(connection, size=None):
    """Receive all bytes until the end, or `size` of them."""
    data = bytearray()
    while (size is None or len(data) < size) and (got := connection.recv(1 << 18)):
        data += got
    return bytes(data)


def reset(connection):
    """End a connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def is_reset(connection):
    """Return whether this socket receives a reset."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        return True
    return False


def connects_to_a_reset(network, address):
    """Return whether a client is reset as soon as it is connected, or even before connect() returns."""
    with netns.inside(network.client):
        connection = socket.socket()
    connection.settimeout(20)
    try:
        connection.connect((address, PORT))
    except ConnectionResetError:
        return True
    return is_reset(connection)


def processor_ticks(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def rests(network):
    """Assert that the proxy uses no processor time while nothing happens."""
    time.sleep(0.2)
    before = processor_ticks(network.proxy)
    time.sleep(0.5)
    assert processor_ticks(network.proxy) - before <= 1


def queued(connection):
    """Return how many bytes this socket has received that have not been read."""
    return struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, bytes(4)))[0]


def fill(connection):
    """Send until the socket has taken nothing for half a second; return how many bytes it took."""
    connection.setblocking(False)
    sent, poll = 0, select.poll()
    poll.register(connection, select.POLLOUT)
    while poll.poll(500):
        try:
            sent += connection.send(bytes(1 << 16))
        except BlockingIOError:
            continue
    connection.settimeout(20)
    return sent


def addresses(splitter):
    """The client sees the server's address, the server the client's address and port; other ports are only routed."""
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        near, far = network.pair(listener)
        assert near.getpeername() == (SERVER, PORT)
        assert far.getpeername() == near.getsockname()
        assert far.getpeername()[0] == CLIENT
        with netns.inside(network.server):
            other = socket.create_server((SERVER, PORT + 1))
        with netns.inside(network.client):
            socket.create_connection((SERVER, PORT + 1), 20).close()
        other.accept()[0].close()
        said, status = network.stop()
        assert (said["connections"], status) == (1, 0)


def both_ways_at_once(splitter):
    """Every byte arrives in order, whatever the sizes of writes, in both directions at once."""
    size, rng = 8 * MB, random.Random(1)
    data = [rng.randbytes(size), rng.randbytes(size)]
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        ends = network.pair(listener)
        digests = [None, None]

        def send(i):
            at = 0
            for step in iter(lambda: rng.randint(1, 70_000), None):
                if at >= size:
                    break
                ends[i].sendall(data[i][at : at + step])
                at += step
            ends[i].shutdown(socket.SHUT_WR)

        def take(i):
            digests[i] = hashlib.sha256(receive(ends[i])).hexdigest()

        threads = [threading.Thread(target=work, args=(i,)) for work in (send, take) for i in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert digests == [hashlib.sha256(data[1]).hexdigest(), hashlib.sha256(data[0]).hexdigest()]
        assert wait(lambda: len(list(pathlib.Path(f"/proc/{network.proxy.pid}/fd").iterdir())) < 12)
        said, _ = network.stop()
        assert (said["bytes_to_client"], said["bytes_to_server"], said["resets"]) == (size, size, 0)


def half_closes(splitter):
    """A side that has closed its direction can still receive, whichever side it is."""
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        for first in (0, 1):
            ends = network.pair(listener)
            early, late = ends[first], ends[1 - first]
            early.sendall(b"question")
            early.shutdown(socket.SHUT_WR)
            assert receive(late) == b"question"
            rests(network)
            late.sendall(bytes(MB))
            late.close()
            assert len(receive(early)) == MB
        said, _ = network.stop()
        assert said["resets"] == 0


def resets(splitter):
    """A reset of one side resets the other, also while data are queued between them, and after a half-close."""
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        for first in (0, 1):
            ends = network.pair(listener)
            reset(ends[first])
            assert is_reset(ends[1 - first])
        for first in (0, 1):
            ends = network.pair(listener)
            fill(ends[1 - first])
            reset(ends[first])
            assert is_reset(ends[1 - first])
        for first in (0, 1):
            ends = network.pair(listener)
            ends[1 - first].shutdown(socket.SHUT_WR)
            assert receive(ends[first]) == b""
            fill(ends[first])
            rests(network)
            reset(ends[first])
            # The receiver notices although it reads nothing, which would let the proxy go on.
            notices = select.poll()
            notices.register(ends[1 - first], 0)
            assert notices.poll(5000)
            assert is_reset(ends[1 - first])
        rests(network)
        said, _ = network.stop()
        assert said["resets"] == 6


def urgent_bytes(splitter):
    """An urgent byte is passed on as one, in its place; it neither stops nor ends the bytes after it."""
    with ProxyNetwork(splitter, ["-S", "65536", "-R", "65536"]) as network, network.listener() as listener:
        for first in (0, 1):
            ends = network.pair(listener)
            sender, receiver = ends[first], ends[1 - first]
            sender.sendall(b"before")
            sender.sendall(b"!", socket.MSG_OOB)
            sender.sendall(b"after")
            assert wait(lambda receiver=receiver: queued(receiver) == len(b"before"))  # what precedes the mark
            assert receive(receiver, len(b"before")) == b"before"
            assert wait(lambda receiver=receiver: select.select([], [], [receiver], 0)[2])
            assert receiver.recv(1, socket.MSG_OOB) == b"!"
            rests(network)
            sender.shutdown(socket.SHUT_WR)
            assert receive(receiver) == b"after"
        for first in (0, 1):
            ends = network.pair(listener)
            sender, receiver = ends[first], ends[1 - first]
            receiver.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)

            def send(sender=sender):
                for _ in range(4):
                    sender.sendall(bytes(MB))
                    sender.sendall(b"!", socket.MSG_OOB)
                sender.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=send)
            thread.start()
            time.sleep(0.3)  # all buffers are full
            assert receive(receiver) == (bytes(MB) + b"!") * 4
            thread.join()
        said, _ = network.stop()
        each = len(b"before!after") + 4 * (MB + 1)
        assert (said["bytes_to_client"], said["bytes_to_server"]) == (each, each)


def a_server_that_refuses(splitter):
    """If no server listens, the client, whose handshake the proxy has completed, is reset."""
    with ProxyNetwork(splitter) as network:
        assert connects_to_a_reset(network, SERVER)
        said, _ = network.stop()
        assert (said["connections"], said["resets"]) == (1, 1)


def the_router_itself(splitter):
    """A connection to the proxy's own port on the router is refused, and does not loop."""
    with ProxyNetwork(splitter) as network:
        assert connects_to_a_reset(network, "10.0.0.2")
        said, _ = network.stop()
        assert (said["connections"], said["refused"]) == (0, 1)


def a_receiver_that_does_not_read(splitter):
    """The sender is stopped, and the proxy holds little data and rests; when the receiver reads, it gets everything."""
    with ProxyNetwork(splitter, ["-S", "65536", "-R", "65536"]) as network, network.listener() as listener:
        near, far = network.pair(listener)
        sent = fill(far)
        status = pathlib.Path(f"/proc/{network.proxy.pid}/status").read_text()
        resident_kb = int(status.split("VmRSS:")[1].split()[0])
        assert resident_kb < 8192, resident_kb
        # Both directions have ended except for unread data. The sender's socket is now closed both ways, which must
        # neither keep the proxy busy nor count as a reset.
        far.shutdown(socket.SHUT_WR)
        near.shutdown(socket.SHUT_WR)
        assert receive(far) == b""
        rests(network)
        assert len(receive(near)) == sent
        said, _ = network.stop()
        assert (said["bytes_to_client"], said["resets"]) == (sent, 0)


def back_pressure(splitter):
    """The proxy takes at most `limit` bytes that the receiver has not acknowledged, and loses none."""
    limit = 50_000
    with ProxyNetwork(splitter, ["-b", str(limit)]) as network, network.listener() as listener:
        with netns.inside(network.client):
            near = socket.socket()
        near.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 10_000)
        near.settimeout(20)
        near.connect((SERVER, PORT))
        far, _ = listener.accept()
        sent = fill(far)
        assert sent > limit
        rests(network)
        acknowledged = queued(near)
        info = TcpInfoReader()
        in_flight = info.busiest(PORT)["bytes_acked"]
        info.close()
        assert in_flight == acknowledged
        far.shutdown(socket.SHUT_WR)
        assert len(receive(near)) == sent
        # Fill a second connection; the proxy's final counts say how much it has taken.
        near2, far2 = network.pair(listener)
        fill(far2)
        held = queued(near2)
        said, _ = network.stop()
        taken = said["bytes_to_client"] - sent
        assert held <= taken <= held + limit, (held, taken)


def back_pressure_while_others_are_active(splitter):
    """With full buffers the kernel drops its notes of acknowledgements, or these themselves; the proxy goes on."""
    with ProxyNetwork(splitter, ["-b", "3000"]) as network, network.listener() as listener:
        near, far = network.pair(listener)
        for _ in range(5):  # in about half of these the last note is dropped
            ends = network.pair(listener)
            sent, received = [0, 0], [0, 0]
            for end in ends:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                end.setblocking(False)
            # Small packets fill receive buffers to the last byte.
            until = time.monotonic() + 2
            while time.monotonic() < until:
                for i in (0, 1):
                    with contextlib.suppress(BlockingIOError):
                        sent[i] += ends[i].send(bytes(7))

            # Without notes it is slow, so wait only for whether it still goes on after 8 s. A packet that found the
            # buffer full is sent again after a timeout that doubles, so a pause of seconds is TCP's own.
            began = last = time.monotonic()
            while received != sent and last < began + 8:
                near.sendall(b"x")
                assert far.recv(1) == b"x"
                time.sleep(0.02)
                for i in (0, 1):
                    with contextlib.suppress(BlockingIOError):
                        received[1 - i] += len(ends[i].recv(1 << 20))
                        last = time.monotonic()
                assert time.monotonic() < last + 30, (received, sent)


def congestion_control(splitter):
    """The proxy uses one algorithm towards clients and another towards servers."""
    with ProxyNetwork(splitter, ["-c", "cubic", "-s", "reno"]) as network, network.listener() as listener:
        near, far = network.pair(listener)
        for end in (near, far):
            end.sendall(b"x")
        near.recv(1), far.recv(1)
        info = TcpInfoReader()
        assert info.busiest(PORT)["congestion_control"] == "cubic"
        assert info.busiest(near.getsockname()[1])["congestion_control"] == "reno"
        info.close()


def a_thousand(splitter):
    """A thousand connections are open at once, each carries bytes both ways, and then all of them end."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a login's is 1024
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        near, far = [], []
        for _ in range(1000):
            near.append(network.connect())
        for _ in range(1000):
            far.append(listener.accept()[0])
        rests(network)
        by_port = {end.getpeername()[1]: end for end in far}
        assert len(by_port) == 1000
        for number, end in enumerate(near):
            end.sendall(b"%d" % number)
        for number, end in enumerate(near):
            answer = by_port[end.getsockname()[1]]
            assert receive(answer, len(b"%d" % number)) == b"%d" % number
            answer.sendall(b"yes")
            answer.close()
            assert receive(end) == b"yes"
            end.close()
        assert wait(lambda: len(list(pathlib.Path(f"/proc/{network.proxy.pid}/fd").iterdir())) < 200)
        rests(network)
        said, status = network.stop()
        assert (said["connections"], said["most_at_once"], said["resets"], status) == (1000, 1000, 0, 0)


def more_than_there_may_be_files_for(splitter):
    """Connections for which the proxy has no file descriptors wait until it has; it neither dies nor spins."""
    with ProxyNetwork(["prlimit", "--nofile=300:300", *splitter]) as network, network.listener() as listener:
        near = [network.connect() for _ in range(20)]
        far = [listener.accept()[0]]
        listener.settimeout(0.5)
        try:
            while True:
                far.append(listener.accept()[0])
        except TimeoutError:
            pass
        assert 1 <= len(far) < 20
        rests(network)
        served = len(far)
        for end in near:
            end.close()
        for end in far:
            end.close()
        listener.settimeout(20)
        for _ in range(20 - served):
            listener.accept()[0].close()
        said, _ = network.stop()
        assert said["connections"] == 20


def asked_to_end(splitter):
    """On SIGTERM the proxy resets open connections, so that none looks complete, and exits with status 0."""
    with ProxyNetwork(splitter) as network, network.listener() as listener:
        near, far = network.pair(listener)
        near.sendall(b"x")
        assert far.recv(1) == b"x"
        said, status = network.stop()
        assert (status, said["resets"]) == (0, 1)
        assert is_reset(near)
        assert is_reset(far)


SCENARIOS = (
    addresses, both_ways_at_once, half_closes, resets, urgent_bytes, a_server_that_refuses, the_router_itself,
    a_receiver_that_does_not_read, back_pressure, back_pressure_while_others_are_active, congestion_control, a_thousand,
    more_than_there_may_be_files_for, asked_to_end,
)  # fmt: skip

if __name__ == "__main__":
    chosen = {scenario.__name__: scenario for scenario in SCENARIOS}[sys.argv[2]]
    chosen([sys.argv[1]])

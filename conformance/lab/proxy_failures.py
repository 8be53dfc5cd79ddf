"""Show on this machine's kernel what becomes of a connection when its proxy dies, restarts, or loses a link.

As a program, `-m conformance.lab.proxy_failures CASE`, inside proxy_network.UNSHARE, it carries out one case and prints
the result as a line of JSON. The case is given as JSON: {"case": one of CASES, "command": the proxy's command, empty
for no proxy, ...}. Times are in seconds of this machine's clock.
"""

import contextlib
import fcntl
import json
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from conformance.lab.proxy_network import ProxyNetwork

FailureCase = Mapping[str, Any]
#: bytes that are sent in a tick, and the length of a tick in s: together a megabyte a second
_TICK_BYTES, _TICK_S = 10_000, 0.01
_BEFORE_S, _NOTICED_S, _RESUMED_S = 1.0, 20.0, 60.0
#: for how long, and how often, a new connection is tried, in s
_SERVED_S, _TRY_S = 20.0, 0.05
_STALLED_S = 0.5
#: Buffers are full when nothing more was acknowledged for this long, in s: a packet that found no room comes again when
#: TCP probes the closed window, after 0.2, 0.4 and 0.8 s.
_FULL_S = 2.0
#: the stream that is sent: each byte is determined by its position
_PATTERN = bytes(range(251)) * 1000


class _SocketReader(threading.Thread):
    """Reads a socket to its end: notes how much came and when, whether it is the stream, and how it ended."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(daemon=True)
        self._connection = connection
        self.bytes, self.right = 0, True
        self.times: list[float] = []
        self.ended: tuple[float, str] | None = None
        connection.settimeout(None)

    def run(self) -> None:
        """See Thread."""
        while True:
            try:
                got = self._connection.recv(1 << 16)
            except OSError as error:
                self.ended = time.monotonic(), _how(error)
                return
            if not got:
                self.ended = time.monotonic(), "end"
                return
            self.times.append(time.monotonic())
            at = self.bytes % 251
            self.right = self.right and got == _PATTERN[at : at + len(got)]
            self.bytes += len(got)


class _Sender(threading.Thread):
    """Sends the stream at a steady pace until it is told to stop, or cannot go on."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(daemon=True)
        self._connection, self._over = connection, threading.Event()
        self.bytes = 0
        self.ended: tuple[float, str] | None = None
        connection.settimeout(None)

    def run(self) -> None:
        """See Thread."""
        while not self._over.wait(_TICK_S):
            at = self.bytes % 251
            try:
                self._connection.sendall(_PATTERN[at : at + _TICK_BYTES])
            except OSError as error:
                self.ended = time.monotonic(), _how(error)
                return
            self.bytes += _TICK_BYTES

    def stop(self) -> None:
        """Stop sending, and close this direction of the connection."""
        self._over.set()
        self.join()
        self._connection.shutdown(socket.SHUT_WR)


def _how(error: OSError) -> str:
    return "reset" if isinstance(error, (ConnectionResetError, BrokenPipeError)) else str(error.strerror or error)


def _network(case: FailureCase) -> ProxyNetwork:
    return ProxyNetwork(case["command"], case["options"], hand_over=bool(case["command"]))


def _stream(network: ProxyNetwork, listener: socket.socket, upload: bool = False) -> tuple[_SocketReader, _Sender]:
    """Begin a stream from the server, or to it, and let it run for a while."""
    near, far = network.pair(listener)
    reader, sender = (_SocketReader(far), _Sender(near)) if upload else (_SocketReader(near), _Sender(far))
    reader.start()
    sender.start()
    time.sleep(_BEFORE_S)
    return reader, sender


def killed(case: FailureCase) -> dict[str, Any]:
    """Kill the proxy in the middle of a stream; return how and when each end notices. Without a proxy, kill nothing.

    There is a stream to each end, on a connection of its own: whoever reads and sends may learn of a reset by either.
    """
    with _network(case) as network, network.listener() as listener:
        client, _ = _stream(network, listener)
        server, _ = _stream(network, listener, upload=True)
        at_s = time.monotonic()
        if case["command"]:
            network.kill()
        _wait_for_ends(case, client, server)
        return {
            "goes_on": all(end.ended is None and end.times[-1] > at_s for end in (client, server)),
            **{f"{name}_{what}": value for name, end in (("client", client), ("server", server))
               for what, value in _end(end.ended, at_s).items()},
            "right": client.right and server.right,
        }  # fmt: skip


def _wait_for_ends(case: FailureCase, *ends: threading.Thread) -> None:
    """Wait until both ends have noticed. Without a proxy there is nothing to notice, so wait for a fixed time."""
    if not case["command"]:
        time.sleep(_BEFORE_S)
        return
    for end in ends:
        end.join(_NOTICED_S)


def _end(ended: tuple[float, str] | None, at_s: float) -> dict[str, Any]:
    return {"noticed_s": None, "how": "nothing"} if ended is None else {
        "noticed_s": round(max(ended[0] - at_s, 0), 3), "how": ended[1]
    }  # fmt: skip


def undelivered(case: FailureCase) -> dict[str, Any]:
    """Kill the proxy when all buffers are full, as its client reads nothing; return what was acknowledged but lost."""
    with _network(case) as network, network.listener() as listener:
        near, far = network.pair(listener)
        far.setblocking(False)
        sent, acked, since_s = 0, 0, time.monotonic()
        while time.monotonic() < since_s + _FULL_S:
            with contextlib.suppress(BlockingIOError):
                sent += far.send(bytes(1 << 16))
            before, acked = acked, sent - _count(far, termios.TIOCOUTQ)
            if acked > before:
                since_s = time.monotonic()
            time.sleep(_TICK_S)  # a burst fills the receive buffer with fewer bytes
        came = _count(near, termios.FIONREAD)
        if case["command"]:
            network.kill()
        near.settimeout(_STALLED_S)
        read = 0
        try:
            while got := near.recv(1 << 20):
                read += len(got)
                if not case["command"] and read >= acked:
                    break  # nothing ends the connection
        except OSError:
            pass
        return {"acked_bytes": acked, "undelivered_bytes": max(acked - max(read, came), 0)}


def _count(connection: socket.socket, what: int) -> int:
    number: int = struct.unpack("i", fcntl.ioctl(connection, what, bytes(4)))[0]
    return number


def restarted(case: FailureCase) -> dict[str, Any]:
    """Kill the proxy and restart it after a while; return when a new connection is served, and how the old one ends.

    Without a proxy, kill nothing.
    """
    with _network(case) as network, network.listener() as listener:
        reader, sender = _stream(network, listener)
        if case["command"]:
            network.kill()
        meanwhile = _served(network, listener, time.monotonic(), _BEFORE_S)
        at_s = time.monotonic()
        if case["command"]:
            network.start()
        served_s = _served(network, listener, at_s, _SERVED_S)
        _wait_for_ends(case, reader, sender)
        ends = [end.ended[1] if end.ended else "nothing" for end in (reader, sender)]
        return {"served_meanwhile": meanwhile is not None, "served_s": served_s, "client_how": ends[0],
                "server_how": ends[1]}  # fmt: skip


def _served(network: ProxyNetwork, listener: socket.socket, since_s: float, within_s: float) -> float | None:
    """Return after how long, in s, a byte came from the server over a new connection; None if none did."""
    listener.settimeout(1)
    while time.monotonic() < since_s + within_s:
        try:
            with network.connect(timeout=1) as near:
                far, _ = listener.accept()
                with far:
                    far.sendall(b"x")
                    near.settimeout(1)
                    if near.recv(1) == b"x":
                        return round(time.monotonic() - since_s, 3)
        except OSError:
            time.sleep(_TRY_S)
    return None


def down(case: FailureCase) -> dict[str, Any]:
    """Lose all packets of a section for a while; return whether the stream goes on, complete, and after how long."""
    with _network(case) as network, network.listener() as listener:
        reader, sender = _stream(network, listener)
        with network.down(case["section"]):
            time.sleep(case["seconds"])
        resumed_s = _after(reader, time.monotonic())
        sender.stop()
        reader.join(_NOTICED_S)
        whole = reader.right and reader.bytes == sender.bytes and reader.ended is not None
        return {"resumed_s": resumed_s, "whole": whole, "client_how": reader.ended[1] if reader.ended else "nothing"}


def _after(reader: _SocketReader, since_s: float) -> float | None:
    """Return how long after a time, in s, new bytes came; None if none did."""
    while time.monotonic() < since_s + _RESUMED_S and reader.ended is None:
        if reader.times and reader.times[-1] > since_s:
            return round(next(at_s for at_s in reader.times if at_s > since_s) - since_s, 3)
        time.sleep(_TICK_S)
    return None


CASES: Mapping[str, Callable[[FailureCase], dict[str, Any]]] = {
    "killed": killed,
    "undelivered": undelivered,
    "restarted": restarted,
    "down": down,
}

if __name__ == "__main__":
    _asked = json.loads(sys.argv[1])
    print(json.dumps(CASES[_asked["case"]](_asked)))

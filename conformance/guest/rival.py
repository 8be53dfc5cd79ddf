"""The rival: a bulk transfer of the kernel's own TCP that shares the bottleneck with the transfer under test.

It starts before the transfer under test and outlasts it. Its sender and receiver are children of the harness that run
at a stack's priority, not at the harness's. They make few, long system calls, because a trial's cost is that of its
system calls.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import time

from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.guest.netns import Node

_PORT = 5001
_CHUNK_BYTES = 1 << 18
#: least and most seconds for which the rival has the path to itself. The trial's seed draws the time: what a newcomer
#: gets depends on where in its sawtooth the rival is.
_HEAD_START_S = (5, 10)


class Rival:
    """A transfer with the kernel's `algorithm` from node `source` to `address` of node `sink`. Call `end()`.

    Raises OSError if the kernel does not have the algorithm.
    """

    def __init__(self, source: Node, sink: Node, address: str, algorithm: str) -> None:
        self._pids: list[int] = []
        with inside(sink):
            listener = socket.create_server((address, _PORT))
        with inside(source):
            sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        with listener, sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
            sender.connect((address, _PORT))
            receiver, _ = listener.accept()
            with receiver:
                self._fork(_receive, receiver, listener, sender)
                self._fork(_send, sender, listener, receiver)

    def _fork(self, work: Callable[[socket.socket], None], connection: socket.socket, *others: socket.socket) -> None:
        pid = os.fork()
        if pid:
            self._pids.append(pid)
            return
        try:
            for other in others:
                other.close()
            work(connection)
        finally:
            os._exit(1)

    @property
    def running(self) -> bool:
        """Whether sender and receiver are both still running."""
        ended = [pid for pid in self._pids if os.waitpid(pid, os.WNOHANG) != (0, 0)]
        self._pids = [pid for pid in self._pids if pid not in ended]
        return not ended

    def end(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        self._pids = []


def head_start(seed: int) -> None:
    """Sleep for as long as the rival has the path to itself in the trial with this seed."""
    time.sleep(random.Random(seed).uniform(*_HEAD_START_S))


def _send(connection: socket.socket) -> None:
    zeros = bytes(_CHUNK_BYTES)
    while True:
        connection.sendall(zeros)


def _receive(connection: socket.socket) -> None:
    buffer = bytearray(_CHUNK_BYTES)
    # With MSG_WAITALL the kernel still accepts data as they arrive; the call just does not return for each packet.
    while connection.recv_into(buffer, 0, socket.MSG_WAITALL):
        pass

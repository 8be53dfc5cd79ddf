"""Query TCP connections and queues by netlink, cheaply enough to do so a hundred times a second.

Starting a process costs a guest some 15 ms, a netlink exchange 0.1 ms; hence no `ss` and no `tc` here.
Layouts: include/uapi/linux/{inet_diag,tcp,rtnetlink,pkt_sched,gen_stats}.h.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_NETLINK_ROUTE, _NETLINK_SOCK_DIAG = 0, 4
#: without ECHO, the kernel sends the answer about a queue only to listeners of the multicast group
_REQUEST, _ECHO, _DUMP = 0x001, 0x008, 0x300
_DONE, _ERROR = 3, 2
_RTM_GETQDISC = 38
SOCK_DIAG_BY_FAMILY = 20
_TCA_STATS2, _TCA_STATS_BASIC, _TCA_STATS_QUEUE = 7, 1, 3
INET_DIAG_INFO, _INET_DIAG_VEGASINFO, INET_DIAG_CONG, INET_DIAG_BBRINFO = 2, 3, 4, 16
#: bytes that mainline's BBR reports about itself; Google's reports more
BBR_INFO_BYTES = 20
#: the minimum round-trip time, in us, of a connection that has not measured any
NO_RTT_US = 0xFFFFFFFF
#: the kinds of attributes requested, as bits. There is room for the first eight kinds only; the bit for Vegas requests
#: the attributes of any congestion control.
_EXTENSIONS = 1 << (INET_DIAG_INFO - 1) | 1 << (_INET_DIAG_VEGASINFO - 1) | 1 << (INET_DIAG_CONG - 1)
#: the requested states, as bits: ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT, LAST_ACK
_TCP_STATES = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


class _Netlink:
    """A netlink socket of the namespace it is made in."""

    protocol: int

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, self.protocol)
        self._socket.bind((0, 0))

    def close(self) -> None:
        self._socket.close()

    def _ask(self, kind: int, body: bytes, dump: bool = False) -> list[bytes]:
        """Send a request. Return the whole answer, as message bodies; it is empty if what was requested does not exist.

        The kernel refuses the next dump while one is half read. Raises OSError for any other refusal.
        """
        flags = _REQUEST | (_DUMP if dump else _ECHO)
        self._socket.send(struct.pack("IHHII", 16 + len(body), kind, flags, 0, 0) + body)
        messages: list[bytes] = []
        while True:
            data = self._socket.recv(1 << 16)
            at = 0
            while at < len(data):
                length, got = struct.unpack_from("IH", data, at)
                if got == _ERROR:
                    code = -struct.unpack_from("i", data, at + 16)[0]
                    if code in (errno.ENOENT, errno.ENODEV):
                        return []
                    raise OSError(code, "netlink")
                if got == _DONE:
                    return messages
                messages.append(data[at + 16 : at + length])
                at += (length + 3) & ~3
            if not dump:
                return messages


class TcpInfoReader(_Netlink):
    """TCP_INFO of the connections of a namespace."""

    protocol = _NETLINK_SOCK_DIAG

    def __init__(self) -> None:
        super().__init__()
        self._known: tuple[int, bytes] | None = None

    def busiest(self, local_port: int) -> dict[str, Any] | None:
        """Return TCP_INFO and congestion control of the connection from a port that had most bytes acknowledged.

        Return None if there is no connection. Keys carry units; times are in milliseconds, windows in segments as the
        kernel counts them. Once found, the connection is requested by its addresses, so that the kernel need not search
        its tables.
        """
        if self._known:
            family, socket_id = self._known
            for message in self._ask(SOCK_DIAG_BY_FAMILY, self._request(family, socket_id)):
                return self._info(message)
            return None
        best = None
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in self._ask(SOCK_DIAG_BY_FAMILY, self._request(family, bytes(48)), dump=True):
                info = self._info(message)
                if struct.unpack_from(">H", message, 4)[0] != local_port or info is None:
                    continue
                if best is None or info["bytes_acked"] > best["bytes_acked"]:
                    best = info
                    if info["bytes_acked"] > 100_000:  # the transfer, and not some other connection
                        self._known = family, message[4:52]
            if best is not None:
                break
        return best

    @staticmethod
    def _request(family: int, socket_id: bytes) -> bytes:
        return struct.pack("BBBBI", family, socket.IPPROTO_TCP, _EXTENSIONS, 0, _TCP_STATES) + socket_id

    @staticmethod
    def _info(message: bytes) -> dict[str, Any] | None:
        info: dict[str, Any] = {}
        for kind, data in attributes(message[72:]):
            if kind == INET_DIAG_INFO and len(data) >= 160:
                info |= _parse_tcp_info(data)
            elif kind == INET_DIAG_CONG:
                info["congestion_control"] = data.rstrip(b"\0").decode("ascii", "replace")
            elif kind == INET_DIAG_BBRINFO and len(data) >= BBR_INFO_BYTES:
                info["bbr"] = parse_bbr_info(data)
        return info if "bytes_acked" in info else None


def parse_bbr_info(data: bytes) -> dict[str, Any]:
    """Parse a struct tcp_bbr_info. Mainline's ends after the gains; Google's adds bounds and, at byte 39, a version."""
    pacing_gain, cwnd_gain = struct.unpack_from("II", data, 12)
    return {
        "info_bytes": len(data),
        "version": data[39] if len(data) > 39 else None,
        "pacing_gain": pacing_gain / 256,
        "cwnd_gain": cwnd_gain / 256,
    }


def _parse_tcp_info(data: bytes) -> dict[str, Any]:
    words = struct.unpack_from("24I", data, 8)
    bytes_acked = struct.unpack_from("Q", data, 120)[0]
    min_rtt_us = struct.unpack_from("I", data, 148)[0]
    return {
        "mss_bytes": words[2],
        "in_flight_segments": words[4],
        "rtt_ms": words[15] / 1000,
        "ssthresh_segments": words[17],
        "cwnd_segments": words[18],
        "retransmitted_segments": words[23],
        "bytes_acked": bytes_acked,
        "min_rtt_ms": min_rtt_us / 1000,
    }


class QueueStatistics(_Netlink):
    """The kernel's counters of one queue of a namespace, and of the root of the qdisc chain that it is part of.

    Two queries go out in one send, and two answers come in one recvmmsg: each system call costs a trial 1 us of virtual
    time. A sample must not cost more than it did before the root was queried, or the results of all trials would
    change.
    """

    protocol = _NETLINK_ROUTE
    _ROOT = 0xFFFFFFFF  # TC_H_ROOT

    def __init__(self, interface_index: int, handle: int) -> None:
        super().__init__()
        self._request = b"".join(
            struct.pack("IHHIIBxxxiIII", 36, _RTM_GETQDISC, _REQUEST | _ECHO, 0, 0, 0, interface_index, *which, 0)
            for which in ((handle, 0), (0, self._ROOT))
        )
        self._answers = _Answers(2)

    def read(self) -> dict[str, Any] | None:
        """Return the counters as a dict, or None if there is no such queue.

        backlog: (bytes, packets) now in the queue; out_bytes: bytes that have left it so far, headers included;
        dropped_packets: packets that it has dropped so far; chain_dropped_packets: the same of the root, which counts
        the drops of all qdiscs below it and, being netem, its own random losses. A packet is what the queue handles as
        one: with segmentation offload that may be several segments.
        """
        self._socket.send(self._request)
        queue, root = (_queue_statistics(data) for data in self._answers.receive(self._socket))
        if queue is None:
            return None
        return {**queue, "chain_dropped_packets": root["dropped_packets"] if root else None}


def _queue_statistics(data: bytes) -> dict[str, Any] | None:
    """Return the counters in one RTM_NEWQDISC; None if there is no such queue. Raises OSError for any other error."""
    if struct.unpack_from("H", data, 4)[0] == _ERROR:
        code = -struct.unpack_from("i", data, 16)[0]
        if code in (errno.ENOENT, errno.ENODEV):
            return None
        raise OSError(code, "netlink")
    queue: dict[str, Any] = {}
    for kind, nested in attributes(data[36:]):
        if kind == _TCA_STATS2:
            for inner, stats in attributes(nested):
                if inner == _TCA_STATS_BASIC:
                    queue["out_bytes"] = struct.unpack_from("Q", stats)[0]
                elif inner == _TCA_STATS_QUEUE:
                    packets, size, queue["dropped_packets"] = struct.unpack_from("III", stats)
                    queue["backlog"] = size, packets
    return queue if len(queue) == 3 else None


class _IoVec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Header(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32), ("vectors", ctypes.POINTER(_IoVec)),
        ("vector_count", ctypes.c_size_t), ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )  # fmt: skip


class _Message(ctypes.Structure):
    """struct mmsghdr: a struct msghdr and the length of what was received."""

    _fields_ = (("header", _Header), ("length", ctypes.c_uint32))


class _Answers:
    """A receiver of `count` messages by one recvmmsg(2), which Python's socket module lacks."""

    _BYTES = 1 << 14

    def __init__(self, count: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._buffers = [ctypes.create_string_buffer(self._BYTES) for _ in range(count)]
        self._vectors = [_IoVec(ctypes.addressof(buffer), self._BYTES) for buffer in self._buffers]
        self._messages = (_Message * count)(
            *(_Message(_Header(vectors=ctypes.pointer(vector), vector_count=1), 0) for vector in self._vectors)
        )

    def receive(self, source: socket.socket) -> list[bytes]:
        """Return the answers as bytes, in order; blocks until all are there. Raises OSError."""
        count = len(self._buffers)
        got = self._libc.recvmmsg(source.fileno(), self._messages, count, 0, None)
        if got != count:
            raise OSError(ctypes.get_errno() if got < 0 else errno.EBADMSG, "netlink")
        return [buffer.raw[: message.length] for buffer, message in zip(self._buffers, self._messages, strict=True)]

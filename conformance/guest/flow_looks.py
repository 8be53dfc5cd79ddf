"""Sample what the kernel reports about many flows and queues, and keep it as tables by columns."""

from __future__ import annotations

import socket
import struct

from conformance.guest import netlink, seen
from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from conformance.guest.netns import Node

FLOW_COLUMNS = ("t_s", "acked_bytes", "rtt_ms", "cwnd_segments")
LINK_COLUMNS = ("t_s", "queue_bytes", "queue_packets", "out_bytes", "dropped_packets", "chain_dropped_packets")


class Connections(netlink.TcpInfoReader):
    """TCP_INFO of all connections from a port of a namespace, by the other end's address."""

    def of_clients(self, local_port: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield (address, TCP_INFO) of each connection; of several with the same address, the busiest comes last."""
        sockets = []
        # A server may listen on IPv6 and be contacted over IPv4.
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in self._ask(netlink.SOCK_DIAG_BY_FAMILY, self._request(family, bytes(48)), dump=True):
                info = _info(message)
                if struct.unpack_from(">H", message, 4)[0] == local_port and info is not None:
                    address = message[24:28] if family == socket.AF_INET else message[36:40]
                    sockets.append((socket.inet_ntoa(address), info))
        yield from sorted(sockets, key=lambda address_info: address_info[1]["acked_bytes"])


def _info(message: bytes) -> dict[str, Any] | None:
    info: dict[str, Any] = {"bbr": None}
    for kind, data in netlink.attributes(message[72:]):
        if kind == netlink.INET_DIAG_INFO and len(data) >= 216:
            words = struct.unpack_from("24I", data, 8)
            acked, _, out, _, _, min_rtt_us = struct.unpack_from("QQIIII", data, 120)
            info |= {
                "rtt_ms": words[15] / 1000, "cwnd_segments": words[18], "retransmitted_segments": words[23],
                # The kernel's count includes the SYN.
                "acked_bytes": max(acked - 1, 0), "out_segments": out,
                "min_rtt_ms": min_rtt_us / 1000 if min_rtt_us < netlink.NO_RTT_US else None,
                "marked_segments": struct.unpack_from("I", data, 196)[0],
                "sent_bytes": struct.unpack_from("Q", data, 200)[0],
                "retransmitted_bytes": struct.unpack_from("Q", data, 208)[0],
            }  # fmt: skip
        elif kind == netlink.INET_DIAG_CONG:
            info["congestion_control"] = data.rstrip(b"\0").decode("ascii", "replace")
        elif kind == netlink.INET_DIAG_BBRINFO and len(data) >= netlink.BBR_INFO_BYTES:
            info["bbr"] = netlink.parse_bbr_info(data)
    return info if "acked_bytes" in info else None


class Algorithm:
    """The kernel's names of a sender's congestion control, and the gains that BBR was seen to use."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._bbr: dict[str, Any] | None = None
        self._gains: tuple[set[float], set[float]] = set(), set()

    def see(self, info: dict[str, Any]) -> None:
        name = info.get("congestion_control")
        if name and name not in self._names:
            self._names.append(name)
        if bbr := info["bbr"]:
            self._bbr = bbr
            if bbr["pacing_gain"]:
                self._gains[0].add(bbr["pacing_gain"])
                self._gains[1].add(bbr["cwnd_gain"])

    def found(self) -> seen.CongestionControlSeen | None:
        if not self._names:
            return None
        bbr = self._bbr and seen.BbrSeen(
            info_bytes=self._bbr["info_bytes"], version=self._bbr["version"],
            pacing_gains=tuple(sorted(self._gains[0])), cwnd_gains=tuple(sorted(self._gains[1])),
        )  # fmt: skip
        return seen.CongestionControlSeen(name=self._names[-1], names=tuple(self._names), bbr=bbr or None)


class QueueLooks:
    """Samples of the queue of one direction of a link."""

    def __init__(self, node: Node, interface: str, handle: int) -> None:
        with inside(node):
            self._queue = netlink.QueueStatistics(socket.if_nametoindex(interface), handle)
        self._rows: list[tuple[float | None, ...]] = []

    def look(self, t_s: float) -> None:
        reading = self._queue.read()
        if reading:
            backlog, packets = reading["backlog"]
            rest = (reading["out_bytes"], reading["dropped_packets"], reading["chain_dropped_packets"])
            self._rows.append((t_s, backlog, packets, *rest))

    def table(self) -> dict[str, tuple[float | None, ...]]:
        return table(LINK_COLUMNS, self._rows)

    def close(self) -> None:
        self._queue.close()


def table(columns: tuple[str, ...], rows: list[tuple[float | None, ...]]) -> dict[str, tuple[float | None, ...]]:
    """Return rows as a table by columns."""
    return dict(zip(columns, zip(*rows, strict=True), strict=True)) if rows else {name: () for name in columns}

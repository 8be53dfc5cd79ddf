"""Configure and query queues by rtnetlink, for what tc(8) does not support.

The kernel's answers are converted to what newer versions of tc show. Layouts:
include/uapi/linux/{rtnetlink,pkt_sched}.h.
"""

from __future__ import annotations

import os
import socket
import struct

from conformance.guest.netlink import attributes
from conformance.guest.netns import inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from conformance.guest.netns import Node

#: offset in bytes of a message's interface index: after struct nlmsghdr and the family of struct tcmsg
INDEX_AT = 16 + 4
_ERROR = 2
_RTM_GETTCLASS, _RTM_GETQDISC, _REQUEST_ECHO = 42, 38, 0x1 | 0x8
_TCA_OPTIONS, _TCA_STATS2, _TCA_STATS_BASIC, _TCA_STATS_QUEUE, _TCA_STATS_APP, _TCA_STATS_PKT64 = 2, 7, 1, 3, 4, 8
_NETEM_LATENCY64, _NETEM_OPTIONS_BYTES, _HTB_PARMS, _HTB_RATE64 = 10, 24, 1, 6
#: (message type, handle, parent) of the queries about a direction of a link: about the root of its qdisc chain, its
#: queue, and the class of its rate limiter (model/emulation/shaping.py)
_QUESTIONS = ((_RTM_GETQDISC, 0, 0xFFFFFFFF), (_RTM_GETQDISC, 0x100000, 0), (_RTM_GETTCLASS, 0x50001, 0))
#: dualpi2's options, in the order of their attribute numbers; the last ones are one byte long
_OPTIONS = (
    "limit", "memory_limit", "target_us", "tupdate_us", "alpha", "beta", "step_thresh_packets", "step_thresh_us",
    "min_qlen_step", "coupling", "drop_overload", "drop_early", "c_protection", "ecn_mask", "split_gso",
)  # fmt: skip
_COUNTS = (
    "prob", "delay_c_us", "delay_l_us", "packets_in_c", "packets_in_l", "maxq", "ecn_mark", "step_marks", "credit",
    "memory_used", "max_memory_used", "memory_limit",
)  # fmt: skip


def send(node: Node, interface: str, text: str) -> None:
    """Send a message (hexadecimal) about an interface of a node. Raises RuntimeError if the kernel refuses it."""
    _answer(node, interface, bytearray.fromhex(text))


def dualpi2(node: Node, interface: str, handle: int) -> dict[str, Any]:
    """Return options and counters of the dualpi2 qdisc `handle`, as a newer tc shows them. Raises RuntimeError."""
    answer = _answer(node, interface, bytearray(_question(_RTM_GETQDISC, handle, 0)))
    queue: dict[str, Any] = {"options": {}}
    for kind, nested in attributes(answer[36:]):
        if kind == _TCA_OPTIONS:
            for number, value in attributes(nested):
                if 1 <= number <= len(_OPTIONS):
                    queue["options"][_OPTIONS[number - 1]] = int.from_bytes(value, "little")
        elif kind == _TCA_STATS2:
            for inner, counts in attributes(nested):
                if inner == _TCA_STATS_APP:
                    queue.update(zip(_COUNTS, struct.unpack_from("=8Ii3I", counts), strict=True))
    return queue


def class_rate(node: Node, interface: str) -> int | None:
    """Return the rate of the rate limiter's class at an interface, in bytes per second. Raises RuntimeError."""
    answer = _answer(node, interface, bytearray(_question(*_QUESTIONS[-1])))
    return _rate(dict(attributes(answer[36:])))


def _answer(node: Node, interface: str, message: bytearray) -> bytes:
    """Return the kernel's answer to a message about an interface. Raises RuntimeError if it is an error."""
    answer = _exchange(node, interface, message)
    if struct.unpack_from("H", answer, 4)[0] == _ERROR and (code := -struct.unpack_from("i", answer, 16)[0]):
        raise RuntimeError(f"rtnetlink: {interface}: {os.strerror(code)}")
    return answer


def _exchange(node: Node, interface: str, message: bytearray) -> bytes:
    with inside(node), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as s:
        struct.pack_into("=i", message, INDEX_AT, socket.if_nametoindex(interface))
        s.send(message)
        return s.recv(1 << 16)


def questions(indices: Sequence[int]) -> bytes:
    """Return messages that query the settings in force and the counters at interfaces.

    They are numbered from 1 on, and load/change.c keeps the answers by these numbers.
    """
    messages, number = b"", 0
    for index in indices:
        for kind, handle, parent in _QUESTIONS:
            number += 1
            messages += _question(kind, handle, parent, number, index)
    return messages


def _question(kind: int, handle: int, parent: int, number: int = 0, index: int = 0) -> bytes:
    """Return a message that queries a qdisc or class of an interface: struct nlmsghdr and struct tcmsg."""
    return struct.pack("=IHHIIBxxxiIII", 36, kind, _REQUEST_ECHO, number, 0, 0, index, handle, parent, 0)


def counted(answers: Sequence[str]) -> list[dict[str, int | None]]:
    """Return a dict for each interface from the answers to questions(), with None for what is not there.

    out_packets, dropped_packets and standing_packets (still queued) count for the whole chain, queue_dropped_packets
    for its queue alone. delay_ns and loss (2^32 - 1 is 100 %) are those of a netem at the root, rate_bytes_per_s that
    of the rate limiter's class.
    """
    counts = []
    for at in range(0, len(answers), len(_QUESTIONS)):
        root, queue, limiter = (_attributes(text) for text in answers[at : at + len(_QUESTIONS)])
        out, dropped, standing = _statistics(root)
        _, queue_dropped, _ = _statistics(queue)
        delay_ns, loss = _netem(root)
        counts.append(
            {
                "out_packets": out, "dropped_packets": dropped, "standing_packets": standing,
                "queue_dropped_packets": queue_dropped, "delay_ns": delay_ns, "loss": loss,
                "rate_bytes_per_s": _rate(limiter),
            }
        )  # fmt: skip
    return counts


def _attributes(text: str) -> dict[int, bytes]:
    """Return the attributes of an answer: an empty dict if it is an error or never came."""
    data = b"" if text == "-" else bytes.fromhex(text)
    if len(data) < 36 or struct.unpack_from("H", data, 4)[0] == _ERROR:
        return {}
    return dict(attributes(data[36:]))


def _statistics(of: dict[int, bytes]) -> tuple[int | None, int | None, int | None]:
    """Return how many packets left, were dropped, and are queued; None for each if the answer lacks them."""
    statistics = dict(attributes(of.get(_TCA_STATS2, b"")))
    if _TCA_STATS_BASIC not in statistics or _TCA_STATS_QUEUE not in statistics:
        return None, None, None
    out: int = struct.unpack_from("=QI", statistics[_TCA_STATS_BASIC])[1]
    if _TCA_STATS_PKT64 in statistics:
        out = struct.unpack_from("=Q", statistics[_TCA_STATS_PKT64])[0]
    standing, _, dropped = struct.unpack_from("=3I", statistics[_TCA_STATS_QUEUE])
    return out, dropped, standing


def _netem(of: dict[int, bytes]) -> tuple[int | None, int | None]:
    options = of.get(_TCA_OPTIONS, b"")
    if len(options) < _NETEM_OPTIONS_BYTES:
        return None, None
    loss = struct.unpack_from("=3I", options)[2]
    latency = dict(attributes(options[_NETEM_OPTIONS_BYTES:])).get(_NETEM_LATENCY64)
    return (None if latency is None else struct.unpack_from("=q", latency)[0]), loss


def _rate(of: dict[int, bytes]) -> int | None:
    options = dict(attributes(of.get(_TCA_OPTIONS, b"")))
    if _HTB_RATE64 in options:
        rate: int = struct.unpack_from("=Q", options[_HTB_RATE64])[0]
        return rate
    # In struct tc_ratespec, the rate follows the first eight bytes.
    return struct.unpack_from("=I", options[_HTB_PARMS], 8)[0] if _HTB_PARMS in options else None

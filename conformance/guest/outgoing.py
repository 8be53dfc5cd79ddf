"""Count what nodes send, and the TCP segments that their kernels say they sent, and the connections they opened."""

from __future__ import annotations

import dataclasses

from conformance.guest import netns
from conformance.guest.seen import SentSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.guest.netns import Node


class Outgoing:
    """What nodes have sent since this was made."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._before = [_total(node) for node in nodes]

    def seen(self) -> tuple[SentSeen, ...]:
        """Return what each node has sent."""
        sent = []
        for node, before in zip(self._nodes, self._before, strict=True):
            grown = {name: count - getattr(before, name) for name, count in dataclasses.asdict(_total(node)).items()}
            sent.append(SentSeen(**grown))
        return tuple(sent)


def _total(node: Node) -> SentSeen:
    # The interfaces come first: a segment is counted before its packet, so what is sent meanwhile has been explained.
    out = netns.interface_counters(node).values()
    snmp = netns.snmp_counters(node, ("Tcp.OutSegs", "Tcp.RetransSegs", "Tcp.ActiveOpens"))
    return SentSeen(
        packets=sum(interface_counters.tx_packets for interface_counters in out),
        bytes=sum(interface_counters.tx_bytes for interface_counters in out),
        segments=snmp["Tcp.OutSegs"] + snmp["Tcp.RetransSegs"],
        opened=snmp["Tcp.ActiveOpens"],
    )

"""Check that the kernel's TCP explains what left a node, and that a server opened no connection.

A stack may send a body by UDP beside its connection, or over a connection that its server opens to the client. These
bytes cross the link like others, but the congestion control under test does not govern them.
"""

from collections.abc import Mapping
from typing import Any

#: bytes of the largest frame that holds one segment: Ethernet's header and an MTU of 1500
_FRAME_BYTES = 1514
#: how many packets may not be TCP's, such as ICMP's: a number, and a share of the segments
_OTHERS, _OTHERS_SHARE = 8, 0.01


def problem(sent: Mapping[str, int]) -> str | None:
    """Return why the segments of a node do not explain what left it, as the end of a sentence; None if they do.

    `sent`: its "packets" and "bytes", headers included, and its TCP "segments", with those that it sent again.
    """
    packets, size, segments = (sent[name] for name in ("packets", "bytes", "segments"))
    # A packet may hold several segments (segmentation offload), or a segment few bytes, so both are compared.
    if max(packets, size / _FRAME_BYTES) <= segments * (1 + _OTHERS_SHARE) + _OTHERS:
        return None
    return f"sent beside its connection: {packets} packets with {size} bytes, but only {segments} TCP segments"


def opened(sent: Mapping[str, int]) -> str | None:
    """Return that a server opened connections, as the end of a sentence; None if it only accepted some.

    Nobody looks at the congestion control of such a connection: its local port is not the server's.
    """
    return f"opened connections itself ({sent['opened']})" if sent["opened"] else None


def sent(counters: Mapping[str, Any], node: str) -> dict[str, int]:
    """Return what the others need of a node, from its counters before and after a transfer (guest/seen.py: Span)."""
    after, before = (_total(counters[when]["interfaces"][node], counters[when][node]) for when in ("after", "before"))
    return {name: count - before[name] for name, count in after.items()}


def _total(interfaces: Mapping[str, Mapping[str, int]], snmp: Mapping[str, int]) -> dict[str, int]:
    return {
        "packets": sum(counted["tx_packets"] for counted in interfaces.values()),
        "bytes": sum(counted["tx_bytes"] for counted in interfaces.values()),
        "segments": snmp["Tcp.OutSegs"] + snmp["Tcp.RetransSegs"],
        "opened": snmp["Tcp.ActiveOpens"],
    }

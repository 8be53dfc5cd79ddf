"""Check that the kernel's TCP explains what left a node.

A stack may send a body by UDP beside its connection. These bytes cross the link like others, but the congestion control
under test does not govern them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.networks.network import Network

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


def problems(stack: str, network: Network, seen: Sequence[Mapping[str, int]]) -> Iterator[str]:
    """Yield sentences about nodes of a shared network that sent beside their connections.

    `seen`: what left the servers of the stack's groups, and then the splitters (guest/network_job.py: SentSeen).
    """
    servers = [f"the server of {stack} (group {group.name})" for group in network.flows if group.is_stack]
    splitters = [f"the splitter at {splitter.node}" for splitter in network.splitters]
    for name, sent_by_it in zip([*servers, *splitters], seen, strict=True):
        if why := problem(sent_by_it):
            yield f"{name} {why}"


def sent(counters: Mapping[str, Any], node: str) -> dict[str, int]:
    """Return what problem() needs of a node, from its counters before and after a transfer (guest/seen.py: Span)."""
    after, before = (_total(counters[when]["interfaces"][node], counters[when][node]) for when in ("after", "before"))
    return {name: count - before[name] for name, count in after.items()}


def _total(interfaces: Mapping[str, Mapping[str, int]], snmp: Mapping[str, int]) -> dict[str, int]:
    return {
        "packets": sum(counted["tx_packets"] for counted in interfaces.values()),
        "bytes": sum(counted["tx_bytes"] for counted in interfaces.values()),
        "segments": snmp["Tcp.OutSegs"] + snmp["Tcp.RetransSegs"],
    }

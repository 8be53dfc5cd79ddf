"""Assign round trips of data packets, which a queue's watch counts by connection (load/trips.c), to flows."""

from __future__ import annotations

import socket
import struct

from conformance.guest.kernel_flows import FIRST_LOCAL_PORT
from conformance.guest.topology import by_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.guest.topology import Place

#: struct trips: packets; total, least and most ns; addresses and ports of sender and receiver, in network byte order
_TRIPS = struct.Struct("=Qqqq4s4sHH4x")


def of_flows(place: Place, stacks: Sequence[bool], data: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield (group, flow, packets, total ns, least ns, most ns) of each flow whose packets were acknowledged.

    `stacks`: for each group, whether it is the stack's; `data`: what a watch wrote about connections.
    """
    senders = {host.address: group for group, host in enumerate(place.senders)}
    clients = [by_address(hosts) for hosts in place.receivers]
    for packets, total_ns, least_ns, most_ns, source, sink, port, _ in _TRIPS.iter_unpack(data):
        group = senders.get(socket.inet_ntoa(source))
        if group is None or not packets:
            continue
        if stacks[group]:
            # Each client of the stack has a host of its own.
            flow = clients[group][socket.inet_ntoa(sink)]
        else:
            flow = socket.ntohs(port) - FIRST_LOCAL_PORT
        yield group, flow, packets, total_ns, least_ns, most_ns

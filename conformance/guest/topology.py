"""Describe where the parts of a network are; topologies/network.py decides it, and builds the network."""

from __future__ import annotations

import dataclasses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


#: names of a hop's interfaces, towards the client and towards the server
TO_CLIENT, TO_SERVER = "near", "far"


@dataclasses.dataclass(frozen=True)
class Interface:
    """An interface of a node."""

    node: str
    name: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Host:
    """A host of a group: its node and interface in Mininet, its address, and the bridge's port that leads to it."""

    node: str
    interface: str
    address: str
    mac: str
    port: Interface


@dataclasses.dataclass(frozen=True, kw_only=True)
class BondPlace:
    """Where the parts of a bond are. `ends`: the bridges at its ends.

    `joints`: bridges' ports, and the interfaces of SPLIT and MERGE that they lead to. `ways`: {(bridge, bridge at an
    end of the bond): the former's port that leads to the latter}. `gates`: the bridges' ports by which data reach SPLIT
    and MERGE.
    """

    ends: tuple[str, str]
    joints: tuple[tuple[Interface, Interface], ...]
    ways: Mapping[tuple[str, str], str]
    gates: tuple[Interface, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitterPlace:
    """Where a splitter is: a Mininet node with two legs, each described like a host."""

    near: Host
    far: Host

    @property
    def node(self) -> str:
        return self.near.node

    @property
    def legs(self) -> tuple[Host, Host]:
        return self.near, self.far


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Where the parts of a network are: each group's sender and receivers, the egress of each direction of a link.

    `chain`: whether each link is one bridge, so that no host has a port of its own. `hops`: for each link, the node in
    its middle, with an interface towards the client and one towards the server; None if it has no hop. `bond`: None if
    there is none. `splitters`: in the network's order.
    """

    chain: bool
    senders: tuple[Host, ...]
    receivers: tuple[tuple[Host, ...], ...]
    directions: tuple[tuple[Interface, Interface], ...]
    hops: tuple[str | None, ...]
    bond: BondPlace | None
    splitters: tuple[SplitterPlace, ...]

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (*self.senders, *(host for group in self.receivers for host in group))

    def taps(self, group: int, flow: int, detailed: bool) -> Mapping[str, Interface]:
        """Return {name of a capture: its interface} of a flow: what its server sends, and what of that arrives.

        `detailed`: of a flow that is recorded in detail, all other queues on its way are captured, too.
        """
        # All of the kernel's flows of a group have one receiver.
        sent, came = self.senders[group].port, self.receivers[group][min(flow, len(self.receivers[group]) - 1)].port
        if not detailed:
            return {"sent": sent, "came": came}
        inner = {port for both in self.directions for port in both} - {sent, came} if self.chain else ()
        others = sorted(inner, key=lambda port: (port.node, port.name))
        return {
            "emulator-to_client": came, "emulator-to_server": sent,
            **{f"{port.node}-{port.name}": port for port in others},
        }  # fmt: skip


def rebound(address: str) -> str:
    """Return the address that a client has after a hop has given it another one (load/rebind.c: HIGHER_OCTET)."""
    network, _, last = address.rpartition(".")
    return f"{network}.{int(last) + 100}"


def by_address(clients: Sequence[Host]) -> dict[str, int]:
    """Return {address: number} of a group's clients, including the addresses that hops may give them."""
    return {form(host.address): number for form in (str, rebound) for number, host in enumerate(clients)}

"""Build the network that flows share: bridges at the ends of links, and two or more hosts for each group.

Every bridge is told which of its ports leads to which host, and does not learn addresses. A learning bridge would flood
a frame for a host that it has forgotten over all links, and what it has forgotten would depend on what happened before
the trial.
"""

from __future__ import annotations

import dataclasses
import subprocess

from conformance.guest import bonding, splitting, tc
from conformance.guest.netns import inside
from conformance.guest.topology import Host, Interface

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from conformance.guest.shared_job import SharedNetwork

_HOST_INTERFACE = "up"
#: names of a hop's interfaces, towards the client and towards the server
TO_CLIENT, TO_SERVER = "near", "far"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Where the parts of a network are: each group's sender and receivers, the egress of each direction of a link.

    `hops`: for each link, the node in its middle, with an interface towards the client and one towards the server; None
    if it has no hop. `bond`: None if there is none. `splitters`: in the network's order.
    """

    senders: tuple[Host, ...]
    receivers: tuple[tuple[Host, ...], ...]
    directions: tuple[tuple[Interface, Interface], ...]
    hops: tuple[str | None, ...]
    bond: bonding.BondPlace | None
    splitters: tuple[splitting.SplitterPlace, ...]

    @property
    def hosts(self) -> tuple[Host, ...]:
        return (*self.senders, *(host for group in self.receivers for host in group))


def place(network: SharedNetwork) -> Place:
    """Return where the parts of a network will be, before it is built."""
    senders, receivers = [], []
    for at, group in enumerate(network.groups):
        clients = [
            Host(
                node=f"c{at}x{number}", address=f"10.1.{at}.{number + 1}", mac=f"02:00:00:01:{at:02x}:{number + 1:02x}",
                port=Interface(_bridge(group.ends[0]), f"c{at}x{number}"),
            )
            for number in range(group.clients if group.stack else 1)
        ]  # fmt: skip
        receivers.append(tuple(clients))
        senders.append(
            Host(
                node=f"s{at}", address=f"10.0.{at}.1", mac=f"02:00:00:00:{at:02x}:01",
                port=Interface(_bridge(group.ends[1]), f"s{at}"),
            )
        )  # fmt: skip
    # The egress of data is at a link's end on the server's side.
    directions = tuple(
        (Interface(_bridge(link.ends[1]), f"data{at}"), Interface(_bridge(link.ends[0]), f"acks{at}"))
        for at, link in enumerate(network.links)
    )
    hops = tuple(f"h{at}" if any(link.impaired) else None for at, link in enumerate(network.links))
    bond = None
    if network.bond is not None:
        client, server = map(_bridge, network.bond.ends)
        bond = bonding.place(network.bond, (client, server), directions)
    splitters = tuple(
        splitting.SplitterPlace(near=_leg(at, splitter.node, 0), far=_leg(at, splitter.node, 1))
        for at, splitter in enumerate(network.splitters)
    )
    return Place(
        senders=tuple(senders), receivers=tuple(receivers), directions=directions, hops=hops, bond=bond,
        splitters=splitters,
    )  # fmt: skip


def _leg(at: int, node: str, way: int) -> Host:
    name = (splitting.NEAR, splitting.FAR)[way]
    return Host(
        node=f"p{at}", address=f"10.2.{at}.{way + 1}", mac=f"02:00:00:02:{at:02x}:{way + 1:02x}",
        port=Interface(_bridge(node), f"p{at}{name}"),
    )  # fmt: skip


def build(network: SharedNetwork, where: Place) -> Any:
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    joints = where.bond.joints if where.bond else ()
    ends = where.bond.ends if where.bond else ()
    bridges = list(dict.fromkeys([*(port.node for pair in where.directions for port in pair), *ends]))
    for bridge in bridges:
        topo.addHost(bridge, ip=None)
    for host in where.hosts:
        topo.addHost(host.node, ip=f"{host.address}/8", mac=host.mac)
        topo.addLink(host.node, host.port.node, intfName1=_HOST_INTERFACE, intfName2=host.port.name)
    for splitter in where.splitters:
        topo.addHost(splitter.node, ip=None)
        for name, leg in splitter.legs:
            topo.addLink(splitter.node, leg.port.node, intfName1=name, intfName2=leg.port.name)
    for (data, acks), hop in zip(where.directions, where.hops, strict=True):
        if hop is None:
            topo.addLink(acks.node, data.node, intfName1=acks.name, intfName2=data.name)
        else:
            topo.addHost(hop, ip=None)
            topo.addLink(acks.node, hop, intfName1=acks.name, intfName2=TO_CLIENT)
            topo.addLink(hop, data.node, intfName1=TO_SERVER, intfName2=data.name)
    for node in dict.fromkeys(own.node for _, own in joints):
        topo.addHost(node, ip=None)
    for port, own in joints:
        topo.addLink(port.node, own.node, intfName1=port.name, intfName2=own.name)
    net = Mininet(topo, controller=None)
    for _, own in joints:
        _batch(net[own.node], "ip", [f"link set {own.name} up"])
    if where.bond:
        bonding.connect(net)
    for link, hop in zip(network.links, where.hops, strict=True):
        if hop is not None:
            _batch(net[hop], "ip", [f"link set {name} up" for name in (TO_CLIENT, TO_SERVER)])
            _pass_on(net[hop], link.impaired)
    for splitter in where.splitters:
        lines = [f"link set {name} address {leg.mac} up" for name, leg in splitter.legs]
        _batch(net[splitter.node], "ip", ["link set lo up", *lines])
    legs = [leg for splitter in where.splitters for _, leg in splitter.legs]
    ways = {bridge: _ways(bridge, where.directions) for bridge in bridges}
    for bridge in bridges:
        ports = [port.name for pair in where.directions for port in pair if port.node == bridge]
        ports += [host.port.name for host in (*where.hosts, *legs) if host.port.node == bridge]
        ports += [port.name for port, _ in joints if port.node == bridge]
        lines = [
            "link add bridge0 type bridge mcast_snooping 0",
            *(f"link set {port} master bridge0" for port in ports),
        ]
        lines += [f"link set {port} type bridge_slave learning off flood off" for port in ports]
        _batch(net[bridge], "ip", [*lines, "link set bridge0 up"])
        out = {host.mac: _port(bridge, host, ways[bridge], where.bond) for host in (*where.hosts, *legs)}
        _batch(net[bridge], "bridge", [f"fdb add {mac} dev {port} master static" for mac, port in out.items() if port])
    for group, sender, clients in zip(network.groups, where.senders, where.receivers, strict=True):
        told: dict[str, list[str]] = {}
        for host in clients:
            for node, interface, address, mac in splitting.hops(group, where.splitters, host, sender):
                told.setdefault(node, []).extend(_reached(address, mac, interface))
                if any(where.hops) and address == host.address:
                    told[node].extend(_reached(_rebound(address), mac, interface))
        for node, lines in told.items():
            _batch(net[node], "ip", lines)
    return net


def _pass_on(hop: Any, impaired: tuple[bool, bool]) -> None:
    """Let the kernel forward what arrives at a hop in a direction that no program handles."""
    for own, (come, go) in zip(impaired, ((TO_SERVER, TO_CLIENT), (TO_CLIENT, TO_SERVER)), strict=True):
        if not own:
            whole = f"dev {come} parent ffff: protocol all matchall action mirred egress redirect dev {go}"
            tc.run(hop, [f"qdisc add dev {come} handle ffff: ingress", f"filter add {whole}"])


def _bridge(node: str) -> str:
    return f"n-{node}"


def _rebound(address: str) -> str:
    """Return the address that a client has after a hop has given it another one (load/rebind.c: HIGHER_OCTET)."""
    network, _, last = address.rpartition(".")
    return f"{network}.{int(last) + 100}"


def by_address(clients: Sequence[Host]) -> dict[str, int]:
    """Return {address: number} of a group's clients, including the addresses that hops may give them."""
    return {form(host.address): number for form in (str, _rebound) for number, host in enumerate(clients)}


def _reached(address: str, mac: str, leg: str) -> list[str]:
    """Return the ip(8) commands that let a node reach an address; `leg`: a splitter's interface, "" for hosts."""
    # Neighbour entries are static: an ARP request could be lost in an emulator.
    told = f"neigh replace {address} lladdr {mac} dev {leg or _HOST_INTERFACE} nud permanent"
    return [f"route replace {address} dev {leg}", told] if leg else [told]


def _ways(bridge: str, directions: Sequence[tuple[Interface, Interface]]) -> Mapping[str, str]:
    """Return {other bridge: the interface of `bridge` that leads there}."""
    found: dict[str, str] = {}
    todo: list[tuple[str, str | None]] = [(bridge, None)]
    while todo:
        node, by = todo.pop()
        for one, other in (pair for two in directions for pair in (two, two[::-1])):
            if one.node == node and other.node not in found and other.node != bridge:
                found[other.node] = by or one.name
                todo.append((other.node, by or one.name))
    return found


def _port(bridge: str, host: Host, ways: Mapping[str, str], bond: bonding.BondPlace | None) -> str | None:
    if host.port.node == bridge:
        return host.port.name
    if bond and host.port.node in bond.ends:
        return bond.ways.get((bridge, host.port.node))
    return ways.get(host.port.node)


def _batch(node: Any, program: str, lines: Sequence[str]) -> None:
    """Run commands of ip(8) or bridge(8) on a node. Raises RuntimeError with its error message."""
    with inside(node):
        done = subprocess.run(
            [program, "-batch", "-"], input="".join(f"{line}\n" for line in lines), capture_output=True, text=True
        )
    if done.returncode != 0:
        raise RuntimeError(f"{program}: {' '.join(done.stderr.split())}")

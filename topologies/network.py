"""Build a network: bridges at the ends of links, and two or more hosts for each group of flows.

A node that joins two ports only needs no bridge: in a chain, each link is one bridge, whose ports' egresses are its two
directions. Every other bridge is told which of its ports leads to which host, and does not learn addresses. A learning
bridge would flood a frame for a host that it has forgotten over all links, and what it has forgotten would depend on
what happened before the trial.
"""

from __future__ import annotations

import subprocess

from conformance.guest import bonding, splitting, tc
from conformance.guest.netns import inside
from conformance.guest.topology import TO_CLIENT, TO_SERVER, BondPlace, Host, Interface, Place, SplitterPlace, rebound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from conformance.guest.network_job import NetworkJob

#: of a network whose first flow is recorded in detail, (node, address, Ethernet address) of each group's receiver and
#: sender: results have these names since before flows could share a network
_DETAILED_HOSTS = (
    (("client", "10.0.0.1", "00:00:00:00:00:01"), ("server", "10.0.0.3", "00:00:00:00:00:03")),
    (("sink", "10.0.0.2", "00:00:00:00:00:02"), ("source", "10.0.0.4", "00:00:00:00:00:04")),
)


def place(network: NetworkJob) -> Place:
    """Return where the parts of a network will be, before it is built."""
    directions = tuple(_directions(network, at) for at in range(len(network.links)))
    senders, receivers = [], []
    for at, group in enumerate(network.groups):
        clients = [
            _host(network, at, 1, f"c{at}x{number}", f"10.1.{at}.{number + 1}", f"01:{at:02x}:{number + 1:02x}")
            for number in range(group.clients if group.stack else 1)
        ]
        receivers.append(tuple(clients))
        senders.append(_host(network, at, 0, f"s{at}", f"10.0.{at}.1", f"00:{at:02x}:01"))
    hops = tuple(f"h{at}" if any(link.impaired) else None for at, link in enumerate(network.links))
    bond = None
    if network.bond is not None:
        client, server = map(_bridge, network.bond.ends)
        bond = bonding.place(network.bond, (client, server), directions)
    splitters = tuple(
        SplitterPlace(near=_leg(network, at, splitter.node, 0), far=_leg(network, at, splitter.node, 1))
        for at, splitter in enumerate(network.splitters)
    )
    return Place(
        chain=_is_chain(network), senders=tuple(senders), receivers=tuple(receivers), directions=directions, hops=hops,
        bond=bond, splitters=splitters,
    )  # fmt: skip


def _directions(network: NetworkJob, at: int) -> tuple[Interface, Interface]:
    """Return the egress of a link's data, which is at its end on the server's side, and that of its acks."""
    data, acks = f"data{at}", f"acks{at}"
    if network.detailed:
        data = "to_client" if at == 0 else "down_to_router"
        acks = "to_server" if at == len(network.links) - 1 else "up_to_router"
    if _is_chain(network):
        emulator = _emulator(network, at)
        return Interface(emulator, data), Interface(emulator, acks)
    near, far = network.links[at].ends
    return Interface(_bridge(far), data), Interface(_bridge(near), acks)


def _is_chain(network: NetworkJob) -> bool:
    """Return whether every node joins two ports only: then none gets a bridge, but each link is one with two ports."""
    ports = [node for link in network.links for node in link.ends]
    for group in network.groups:
        ports += [group.ends[1], *[group.ends[0]] * (group.clients if group.stack else 1)]
    # A link's hop stands between two bridges.
    others = network.own_ports or network.bond or any(any(link.impaired) for link in network.links)
    return not others and all(ports.count(node) == 2 for node in ports)


def _emulator(network: NetworkJob, at: int) -> str:
    """Return the bridge that is a whole link of a chain."""
    return "emulator" if len(network.links) == 1 else f"emulator{at + 1}"


def _port(network: NetworkJob, node: str, name: str, way: int) -> Interface:
    """Return the port by which a host or a splitter is connected at a node: `name` of its bridge.

    In a chain, it is the end there of the link in direction `way` from it: 0 towards the client, 1 towards the server.
    """
    if not _is_chain(network):
        return Interface(_bridge(node), name)
    at = next(at for at, link in enumerate(network.links) if link.ends[1 - way] == node)
    return _directions(network, at)[1 - way]


def _host(network: NetworkJob, group: int, way: int, name: str, address: str, mac: str) -> Host:
    """Return a host of a group, from which the network leads in direction `way`; see _port()."""
    node, interface, mac = network.groups[group].ends[1 - way], "up", f"02:00:00:{mac}"
    if network.detailed:
        name, address, mac = _DETAILED_HOSTS[group][1 - way]
        interface = f"{name}-eth0"
    return Host(node=name, interface=interface, address=address, mac=mac, port=_port(network, node, name, way))


def _leg(network: NetworkJob, at: int, node: str, way: int) -> Host:
    name, interface = f"p{at}", ("near", "far")[way]
    if network.detailed:
        name, interface = "router", ("client_side", "server_side")[way]
    return Host(
        node=name, interface=interface, address=f"10.2.{at}.{way + 1}",
        mac=f"02:00:00:02:{at:02x}:{way + 1:02x}",
        port=_port(network, node, f"{name}{interface}", way),
    )  # fmt: skip


def build(network: NetworkJob, where: Place) -> Any:
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    joints = where.bond.joints if where.bond else ()
    ends = where.bond.ends if where.bond else ()
    chain = where.chain
    bridges = list(dict.fromkeys([*(port.node for pair in where.directions for port in pair), *ends]))
    for bridge in bridges:
        topo.addHost(bridge, ip=None)
    for host in where.hosts:
        topo.addHost(host.node, ip=f"{host.address}/8", mac=host.mac)
        topo.addLink(host.node, host.port.node, intfName1=host.interface, intfName2=host.port.name)
    for splitter in where.splitters:
        topo.addHost(splitter.node, ip=None)
        for leg in splitter.legs:
            topo.addLink(splitter.node, leg.port.node, intfName1=leg.interface, intfName2=leg.port.name)
    for near, far in _wires(network, where) if chain else ():
        topo.addLink(near.node, far.node, intfName1=near.name, intfName2=far.name)
    for (data, acks), hop in zip(where.directions, where.hops, strict=True) if not chain else ():
        if hop is None:
            topo.addLink(acks.node, data.node, intfName1=acks.name, intfName2=data.name)
        else:
            topo.addHost(hop, ip=None)
            topo.addLink(acks.node, hop, intfName1=acks.name, intfName2=TO_CLIENT)
            topo.addLink(hop, data.node, intfName1=TO_SERVER, intfName2=data.name)
    for node in dict.fromkeys(interface.node for _, interface in joints):
        topo.addHost(node, ip=None)
    for port, interface in joints:
        topo.addLink(port.node, interface.node, intfName1=port.name, intfName2=interface.name)
    net = Mininet(topo, controller=None)
    for _, interface in joints:
        _batch(net[interface.node], "ip", [f"link set {interface.name} up"])
    if where.bond:
        bonding.connect(net)
    for link, hop in zip(network.links, where.hops, strict=True):
        if hop is not None:
            _batch(net[hop], "ip", [f"link set {name} up" for name in (TO_CLIENT, TO_SERVER)])
            _pass_on(net[hop], link.impaired)
    for splitter in where.splitters:
        lines = [f"link set {leg.interface} address {leg.mac} up" for leg in splitter.legs]
        _batch(net[splitter.node], "ip", ["link set lo up", *lines])
    if chain:
        for data, acks in where.directions:
            _bridge_ports(net[data.node], [data.name, acks.name])
    else:
        _bridge_all(net, bridges, where)
    _introduce(net, network, where)
    return net


def _wires(network: NetworkJob, where: Place) -> Iterator[tuple[Interface, Interface]]:
    """Yield what connects two links of a chain directly: the one's end at a node, and the other's."""
    split = {splitter.node for splitter in network.splitters}
    for link, (_, acks) in zip(network.links, where.directions, strict=True):
        for other, (data, _) in zip(network.links, where.directions, strict=True):
            if other.ends[0] == link.ends[1] and link.ends[1] not in split:
                yield acks, data


def _bridge_ports(node: Any, ports: Sequence[str], how: str = "", each: str = "") -> None:
    """Make a bridge of a node's ports; `how`, `each`: ip(8)'s options of the bridge, and of each port."""
    lines = [f"link add bridge0 type bridge{how}", *(f"link set {port} master bridge0" for port in ports)]
    lines += [f"link set {port} type bridge_slave{each}" for port in ports if each]
    _batch(node, "ip", [*lines, "link set bridge0 up"])


def _bridge_all(net: Any, bridges: Sequence[str], where: Place) -> None:
    """Make bridges of nodes, and tell each which of its ports leads to which host."""
    joints = where.bond.joints if where.bond else ()
    legs = [leg for splitter in where.splitters for leg in splitter.legs]
    ways = {bridge: _ways(bridge, where.directions) for bridge in bridges}
    for bridge in bridges:
        ports = [port.name for pair in where.directions for port in pair if port.node == bridge]
        ports += [host.port.name for host in (*where.hosts, *legs) if host.port.node == bridge]
        ports += [port.name for port, _ in joints if port.node == bridge]
        _bridge_ports(net[bridge], ports, " mcast_snooping 0", " learning off flood off")
        out = {host.mac: _port_to(bridge, host, ways[bridge], where.bond) for host in (*where.hosts, *legs)}
        _batch(net[bridge], "bridge", [f"fdb add {mac} dev {port} master static" for mac, port in out.items() if port])


def _introduce(net: Any, network: NetworkJob, where: Place) -> None:
    """Tell hosts and splitters how to reach the far ends of their flows."""
    routed = {splitter.node for splitter in where.splitters}
    for group, sender, clients in zip(network.groups, where.senders, where.receivers, strict=True):
        commands: dict[str, list[str]] = {}
        for host in clients:
            for hop, address, mac in splitting.hops(group, where.splitters, host, sender):
                addresses = [address]
                if any(where.hops) and address == host.address:
                    addresses.append(rebound(address))
                for each in addresses:
                    if hop.node in routed:
                        commands.setdefault(hop.node, []).append(f"route replace {each} dev {hop.interface}")
                    # Neighbour entries are static: an ARP request could be lost in an emulator.
                    entry = f"neigh replace {each} lladdr {mac} dev {hop.interface} nud permanent"
                    commands.setdefault(hop.node, []).append(entry)
        for node, lines in commands.items():
            _batch(net[node], "ip", lines)


def _pass_on(hop: Any, impaired: tuple[bool, bool]) -> None:
    """Let the kernel forward what arrives at a hop in a direction that no program handles."""
    for hops, (come, go) in zip(impaired, ((TO_SERVER, TO_CLIENT), (TO_CLIENT, TO_SERVER)), strict=True):
        if not hops:
            whole = f"dev {come} parent ffff: protocol all matchall action mirred egress redirect dev {go}"
            tc.run(hop, [f"qdisc add dev {come} handle ffff: ingress", f"filter add {whole}"])


def _bridge(node: str) -> str:
    return f"n-{node}"


def _ways(bridge: str, directions: Sequence[tuple[Interface, Interface]]) -> Mapping[str, str]:
    """Return {other bridge: the interface of `bridge` that leads there}."""
    toward: dict[str, str] = {}
    todo: list[tuple[str, str | None]] = [(bridge, None)]
    while todo:
        node, by = todo.pop()
        for interface, other in (pair for two in directions for pair in (two, two[::-1])):
            if interface.node == node and other.node not in toward and other.node != bridge:
                toward[other.node] = by or interface.name
                todo.append((other.node, by or interface.name))
    return toward


def _port_to(bridge: str, host: Host, ways: Mapping[str, str], bond: BondPlace | None) -> str | None:
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

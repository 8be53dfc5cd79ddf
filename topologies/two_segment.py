"""Two segments: client - emulator - router - emulator - server, as in the ATC'25 testbed.

client (10.0.0.1) -- emulator1 -- (10.0.0.2) router (10.0.1.2) -- emulator2 -- (10.0.1.3) server

Each emulator is a Linux bridge; both of its egress interfaces carry the queue chain of its segment. The router forwards
packets; if a proxy runs on it, the proxy splits the connections that pass.
"""

from typing import Any

from conformance.guest.topology import Interface, Router, Segment, Topology

_CLIENT, _CLIENT_SIDE = "10.0.0.1", "10.0.0.2"
_SERVER, _SERVER_SIDE = "10.0.1.3", "10.0.1.2"
_FIRST = Interface("emulator1", "to_client"), Interface("emulator1", "up_to_router")
_SECOND = Interface("emulator2", "down_to_router"), Interface("emulator2", "to_server")

TOPOLOGY = Topology(
    segments=(
        Segment(queues=_FIRST, sender="router", receiver="client", address=_CLIENT),
        Segment(queues=_SECOND, sender="server", receiver="router", address=_SERVER_SIDE),
    ),
    addresses={"client": _CLIENT, "server": _SERVER},
    taps={f"{interface.node}-{interface.name}": interface for interface in (*_FIRST, *_SECOND)},
    router=Router(node="router", client_side="client_side", server_side="server_side"),
)


def build() -> Any:
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    topo.addHost("client", ip=f"{_CLIENT}/24", defaultRoute=f"via {_CLIENT_SIDE}")
    topo.addHost("emulator1", ip=None)
    topo.addHost("router", ip=None)
    topo.addHost("emulator2", ip=None)
    topo.addHost("server", ip=f"{_SERVER}/24", defaultRoute=f"via {_SERVER_SIDE}")
    topo.addLink("client", "emulator1", intfName2="to_client")
    topo.addLink("emulator1", "router", intfName1="up_to_router", intfName2="client_side")
    topo.addLink("router", "emulator2", intfName1="server_side", intfName2="down_to_router")
    topo.addLink("emulator2", "server", intfName1="to_server")
    net = Mininet(topo, controller=None, autoSetMacs=True)
    for segment in TOPOLOGY.segments:
        first, second = (queue.name for queue in segment.queues)
        net[segment.queues[0].node].cmd(
            f"ip link add bridge0 type bridge && ip link set {first} master bridge0"
            f" && ip link set {second} master bridge0 && ip link set bridge0 up"
        )
    router = net["router"]
    router.cmd(
        f"ip address add {_CLIENT_SIDE}/24 dev client_side && ip address add {_SERVER_SIDE}/24 dev server_side"
        " && echo 1 > /proc/sys/net/ipv4/ip_forward"
    )
    # Neighbour entries are static: an ARP request could be lost in an emulator.
    for one, address, other, other_address in (
        (net["client"].intf(), _CLIENT, router.intf("client_side"), _CLIENT_SIDE),
        (net["server"].intf(), _SERVER, router.intf("server_side"), _SERVER_SIDE),
    ):
        one.node.cmd(f"ip neigh replace {other_address} lladdr {other.MAC()} dev {one.name}")
        other.node.cmd(f"ip neigh replace {address} lladdr {one.MAC()} dev {other.name}")
    return net

"""Two segments: client - emulator - router - emulator - server, as in the ATC'25 testbed.

Each emulator is a Linux bridge whose both egress interfaces carry the queue chain of its segment. The router forwards;
where a proxy runs on it, it splits the connections that pass.
"""

from mininet.net import Mininet
from mininet.topo import Topo


class TwoSegments(Topo):
    """client (10.0.0.1) -- emulator1 -- (10.0.0.2) router (10.0.1.2) -- emulator2 -- (10.0.1.3) server"""

    def build(self):
        self.addHost("client", ip="10.0.0.1/24", defaultRoute="via 10.0.0.2")
        self.addHost("emulator1", ip=None)
        self.addHost("router", ip=None)
        self.addHost("emulator2", ip=None)
        self.addHost("server", ip="10.0.1.3/24", defaultRoute="via 10.0.1.2")
        self.addLink("client", "emulator1", intfName2="to_client")
        self.addLink("emulator1", "router", intfName1="up_to_router", intfName2="client_side")
        self.addLink("router", "emulator2", intfName1="server_side", intfName2="down_to_router")
        self.addLink("emulator2", "server", intfName1="to_server")


#: segment by segment, the client's first: the interfaces whose egress carries the queue chain, as (node, interface); of
#: each segment first the one whose queue the transfer's data stands in
SEGMENTS = (
    (("emulator1", "to_client"), ("emulator1", "up_to_router")),
    (("emulator2", "down_to_router"), ("emulator2", "to_server")),
)

#: segment by segment: who sends data into it, who receives them, and by which address
ENDS = (("router", "client", "10.0.0.1"), ("server", "router", "10.0.1.2"))

#: where a proxy may run: the node, its interface on the client's side, and the one on the server's
ROUTER = ("router", "client_side", "server_side")


def build():
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    net = Mininet(TwoSegments(), controller=None, autoSetMacs=True)
    for emulator, interfaces in zip(("emulator1", "emulator2"), SEGMENTS, strict=True):
        first, second = (interface for _, interface in interfaces)
        net[emulator].cmd(
            f"ip link add bridge0 type bridge && ip link set {first} master bridge0"
            f" && ip link set {second} master bridge0 && ip link set bridge0 up"
        )
    router = net["router"]
    router.cmd(
        "ip address add 10.0.0.2/24 dev client_side && ip address add 10.0.1.2/24 dev server_side"
        " && echo 1 > /proc/sys/net/ipv4/ip_forward"
    )
    # Neighbours are told, not asked for: a question could be lost in an emulator.
    for one, address, other, other_address in (
        (net["client"].intf(), "10.0.0.1", router.intf("client_side"), "10.0.0.2"),
        (net["server"].intf(), "10.0.1.3", router.intf("server_side"), "10.0.1.2"),
    ):
        one.node.cmd(f"ip neigh replace {other_address} lladdr {other.MAC()} dev {one.name}")
        other.node.cmd(f"ip neigh replace {address} lladdr {one.MAC()} dev {other.name}")
    return net

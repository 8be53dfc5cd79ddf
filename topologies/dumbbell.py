"""A dumbbell: client and sink - emulator - server and source; all share the one bottleneck.

client (10.0.0.1), sink (10.0.0.2) -- left == right -- (10.0.0.3) server, (10.0.0.4) source

The emulator is two Linux bridges, one at each end of a link. Both of that link's egress interfaces carry the same queue
chain, so delay, loss and rate apply in both directions, and to both flows.
"""

from typing import Any

from conformance.guest.topology import Interface, RivalFlow, Segment, Topology

_CLIENT, _SINK, _SERVER, _SOURCE = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
_TO_CLIENT, _TO_SERVER = Interface("right", "to_client"), Interface("left", "to_server")

TOPOLOGY = Topology(
    segments=(Segment(queues=(_TO_CLIENT, _TO_SERVER), sender="server", receiver="client", address=_CLIENT),),
    addresses={"client": _CLIENT, "server": _SERVER},
    # Taps see the flow under test alone, after the bottleneck and before it; in one_segment.py, the same names show the
    # same.
    taps={"emulator-to_client": Interface("left", "first"), "emulator-to_server": Interface("right", "first")},
    rival=RivalFlow(source="source", sink="sink", address=_SINK),
)


def build() -> Any:
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    topo.addHost("client", ip=f"{_CLIENT}/24")
    topo.addHost("sink", ip=f"{_SINK}/24")
    topo.addHost("left", ip=None)
    topo.addHost("right", ip=None)
    topo.addHost("server", ip=f"{_SERVER}/24")
    topo.addHost("source", ip=f"{_SOURCE}/24")
    topo.addLink("client", "left", intfName2="first")
    topo.addLink("sink", "left", intfName2="second")
    topo.addLink("left", "right", intfName1=_TO_SERVER.name, intfName2=_TO_CLIENT.name)
    topo.addLink("right", "server", intfName1="first")
    topo.addLink("right", "source", intfName1="second")
    net = Mininet(topo, controller=None, autoSetMacs=True, autoStaticArp=True)
    for bridge, link in (("left", "to_server"), ("right", "to_client")):
        net[bridge].cmd(
            f"ip link add bridge0 type bridge && ip link set {link} master bridge0 && ip link set first master bridge0"
            " && ip link set second master bridge0 && ip link set bridge0 up"
        )
    return net

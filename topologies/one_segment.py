"""One segment: client - emulator - server, as in the ATC'25 testbed.

client (10.0.0.1) -- emulator -- (10.0.0.3) server

The emulator is a Linux bridge. Both of its egress interfaces carry the same queue chain, so delay, loss and rate apply
in both directions, and acknowledgements are lost, too.
"""

from typing import Any

from conformance.guest.topology import Interface, Segment, Topology

_CLIENT, _SERVER = "10.0.0.1", "10.0.0.3"
_TO_CLIENT, _TO_SERVER = Interface("emulator", "to_client"), Interface("emulator", "to_server")

TOPOLOGY = Topology(
    segments=(Segment(queues=(_TO_CLIENT, _TO_SERVER), sender="server", receiver="client", address=_CLIENT),),
    addresses={"client": _CLIENT, "server": _SERVER},
    taps={"emulator-to_client": _TO_CLIENT, "emulator-to_server": _TO_SERVER},
)


def build() -> Any:
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    from mininet.net import Mininet
    from mininet.topo import Topo

    topo = Topo()
    topo.addHost("client", ip=f"{_CLIENT}/24")
    topo.addHost("emulator", ip=None)
    topo.addHost("server", ip=f"{_SERVER}/24")
    topo.addLink("client", "emulator", intfName2=_TO_CLIENT.name)
    topo.addLink("emulator", "server", intfName1=_TO_SERVER.name)
    net = Mininet(topo, controller=None, autoSetMacs=True, autoStaticArp=True)
    net["emulator"].cmd(
        "ip link add bridge0 type bridge && ip link set to_client master bridge0"
        " && ip link set to_server master bridge0 && ip link set bridge0 up"
    )
    return net

"""One segment: client - emulator - server, as in the ATC'25 testbed.

The emulator is a Linux bridge. Both of its egress interfaces carry the same queue chain, so
delay, loss and rate apply in both directions and acknowledgements are lost too.
"""

from mininet.net import Mininet
from mininet.topo import Topo


class OneSegment(Topo):
    """client (10.0.0.1) -- emulator -- (10.0.0.3) server"""

    def build(self):
        self.addHost("client", ip="10.0.0.1/24")
        self.addHost("emulator", ip=None)
        self.addHost("server", ip="10.0.0.3/24")
        self.addLink("client", "emulator", intfName2="to_client")
        self.addLink("emulator", "server", intfName1="to_server")


#: segment by segment, the client's first: the interfaces whose egress carries the queue chain, as (node, interface); of
#: each segment first the one whose queue the transfer's data stands in
SEGMENTS = ((("emulator", "to_client"), ("emulator", "to_server")),)

#: segment by segment: who sends data into it, who receives them, and by which address
ENDS = (("server", "client", "10.0.0.1"),)


def build():
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    net = Mininet(OneSegment(), controller=None, autoSetMacs=True, autoStaticArp=True)
    net["emulator"].cmd(
        "ip link add bridge0 type bridge && ip link set to_client master bridge0"
        " && ip link set to_server master bridge0 && ip link set bridge0 up"
    )
    return net

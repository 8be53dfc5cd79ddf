"""A dumbbell: client and sink - emulator - server and source; all share the one bottleneck.

The emulator is two Linux bridges, one at each end of a link. Both of that link's egress interfaces carry the same queue
chain, so delay, loss and rate apply in both directions, and to both flows.
"""

from mininet.net import Mininet
from mininet.topo import Topo


class Dumbbell(Topo):
    """client (10.0.0.1), sink (10.0.0.2) -- left == right -- (10.0.0.3) server, (10.0.0.4) source"""

    def build(self):
        self.addHost("client", ip="10.0.0.1/24")
        self.addHost("sink", ip="10.0.0.2/24")
        self.addHost("left", ip=None)
        self.addHost("right", ip=None)
        self.addHost("server", ip="10.0.0.3/24")
        self.addHost("source", ip="10.0.0.4/24")
        self.addLink("client", "left", intfName2="first")
        self.addLink("sink", "left", intfName2="second")
        self.addLink("left", "right", intfName1="to_server", intfName2="to_client")
        self.addLink("right", "server", intfName1="first")
        self.addLink("right", "source", intfName1="second")


#: segment by segment, the client's first: the interfaces whose egress carries the queue chain, as (node, interface); of
#: each segment first the one whose queue the transfer's data stands in
SEGMENTS = ((("right", "to_client"), ("left", "to_server")),)

#: segment by segment: who sends data into it, who receives them, and by which address
ENDS = (("server", "client", "10.0.0.1"),)

#: what a trace holds, by its name -> where it is taken: of the one flow alone, after the bottleneck and before it
TAPS = {"emulator-to_client": ("left", "first"), "emulator-to_server": ("right", "first")}

#: who sends the rival's data, who receives them, and by which address
RIVAL = ("source", "sink", "10.0.0.2")


def build():
    """Return the started network; interfaces are up, queues are the kernel's defaults."""
    net = Mininet(Dumbbell(), controller=None, autoSetMacs=True, autoStaticArp=True)
    for bridge, link in (("left", "to_server"), ("right", "to_client")):
        net[bridge].cmd(
            f"ip link add bridge0 type bridge && ip link set {link} master bridge0 && ip link set first master bridge0"
            " && ip link set second master bridge0 && ip link set bridge0 up"
        )
    return net

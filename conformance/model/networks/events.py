"""Name the events of a setting that transfers over constant networks never meet; they meet losses and full queues only.

A change of a stack's reaction to such an event shows nowhere else.
"""

from conformance.model.networks.impairments import ADDRESS, ALL_CE, Impairments
from conformance.model.networks.links import DUAL, Direction
from conformance.model.networks.network import Network
from conformance.model.networks.setting import Setting

MARKS, OUTAGE, IDLE, DISORDER, MOVE = "CE marks", "outages", "idle times", "disorder", "another address"
#: all of them, in the order in which messages name them
EVENTS = (MARKS, OUTAGE, IDLE, DISORDER, MOVE)


def of(setting: Setting) -> frozenset[str]:
    """Return the EVENTS that happen in a setting. A mark needs a sender that sends ECT, too."""
    network = setting.network
    happens = {
        MARKS: any(_marks(network, direction) for link in network.links for _, direction in link.directions)
        or any(impairment.mark_pct or impairment.ecn == ALL_CE for impairment in _impairments(network)),
        OUTAGE: any(network.held(link, way) for link in network.links for way, _ in link.directions)
        or any(("loss_pct", 100) in entry.set for entry in network.schedule),
        IDLE: any(request.pause_s for group in network.flows for request in group.requests),
        DISORDER: bool(network.bond and not network.bond.reorder_ms)
        or any(impairment.reorder for impairment in _impairments(network)),
        MOVE: any(impairment.rebind == ADDRESS for impairment in _impairments(network)),
    }
    return frozenset(event for event, does in happens.items() if does)


def _impairments(network: Network) -> list[Impairments]:
    return [
        impairment
        for link in network.links
        for way, _ in link.directions
        for impairment in network.impairments(link, way)
    ]


def _marks(network: Network, direction: Direction) -> bool:
    """Return whether a direction's queue marks packets of senders that ask for ECN."""
    queue = direction.queue
    if queue is None or not any(group.ecn for group in network.flows):
        return False
    return bool(queue.ecn or queue.ce_threshold_us is not None or queue.kind in (DUAL, "cake"))

"""Tell whether an outage of a flow's path explains that its client gave up: then the stack did not fail."""

from collections.abc import Iterator

from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import WAYS, Direction
from conformance.model.networks.network import Network


def explains(network: Network, group: Flows, at_s: float) -> bool:
    """Return whether a group's path was down at a time, or so shortly before that a sound sender may still be silent.

    The period of a sender's probes doubles (RFC 9002, 6.2.1; RFC 6298, 5.5), so the first one after an outage leaves
    within as long as the path had been down.
    """
    return any(down_s <= at_s <= up_s + (up_s - down_s) for down_s, up_s in _outages(network, group, at_s))


def _outages(network: Network, group: Flows, until_s: float) -> Iterator[tuple[float, float]]:
    """Yield (from, until) of the times in which nothing passes some direction of a link of a group's path."""
    for link in network.route(group):
        for way in WAYS:
            began_s = 0.0 if _is_down(link.direction(way)) else None
            for change in network.changes(link, way, until_s):
                if _is_down(change.direction):
                    began_s = change.at_ns / 1e9 if began_s is None else began_s
                elif began_s is not None:
                    yield began_s, change.at_ns / 1e9
                    began_s = None
            if began_s is not None:
                yield began_s, until_s


def _is_down(direction: Direction) -> bool:
    return direction.loss_pct == 100 or direction.rate_mbps == 0

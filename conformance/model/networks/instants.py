"""Compute when the phases of a delivery begin (delivery.py), from the network alone, before anything is measured."""

from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Occasion


def instants(network: Network) -> list[float]:
    """Return when phases begin, in s: at 0, when something is scheduled, and when flows that are not tested start."""
    times = {0.0}
    for entry in network.schedule:
        if entry.trace is None and not isinstance(entry.at_s, Occasion):
            times |= {entry.at_s, entry.at_s + (entry.for_s or 0)}
    for group in network.flows:
        if group != network.tested:
            times |= {group.start.at_s + number * group.start.every_s for number in range(group.count)}
    return sorted(times)

"""Turn what the watch of a queue saw into the round-trip times of data packets: one record for each flow."""

from collections.abc import Sequence
from typing import Any

from conformance.model.networks.network import Network


def of_flows(shared: Network, counted: Sequence[Sequence[int]]) -> list[dict[str, Any]]:
    """Return the round-trip times of each flow's data packets that a queue's watch saw, without retransmitted ones."""
    return [
        {
            "group": shared.flows[group].name,
            "index": flow,
            "packets": packets,
            **{
                name: round(ns / 1e6, 4)
                for name, ns in (("mean_ms", total / packets), ("least_ms", least), ("most_ms", most))
            },
        }
        for group, flow, packets, total, least, most in sorted(map(tuple, counted))
    ]

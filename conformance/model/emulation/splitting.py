"""Check that the connections of a network's flows passed through its splitters."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.networks.network import Network


def problems(network: Network, counts: Sequence[Mapping[str, Any]], connected: Sequence[int]) -> Iterator[str]:
    """Yield sentences about splitters that split fewer connections than flows cross them, or refused some.

    `counts`: only the suite's own program counts, so another one is judged by what the kernel opened on its node
    (credibility.py). `connected`: how many flows of each group had a connection.
    """
    for splitter in network.splitters:
        at_node = [count for count in counts if count["node"] == splitter.node]
        groups = [(group, n) for group, n in zip(network.flows, connected, strict=True)]
        due = sum(n for group, n in groups if splitter in network.splitters_of(group))
        split = sum(count["connections"] for count in at_node)
        if at_node and split < due:
            yield f"{due} flows cross the splitter at {splitter.node}, but it split only {split} connections"
        if refused := sum(count["refused"] for count in at_node):
            yield f"the splitter at {splitter.node} refused {refused} connections"

"""Compute the metrics of a lone transfer: pure functions of a measurement, which return None for what was not seen."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.emulation import queue_counts, shaping
from conformance.model.metrics.group_metrics import Measured
from conformance.model.networks.network import Network

#: the interfaces by which a lone transfer's data leave its first and any other link (topologies/network.py)
_EGRESSES = ("to_client", "down_to_router")
#: round trips of the empty path within which drops belong to one loss event: a packet may stand in the queue for one of
#: them, and a sender learns of a drop one round trip later
_LOSS_EVENT_RTTS = 3
_DROPPED = "queue_dropped_packets"


def lost_pct(measured: Measured) -> float | None:
    """Return the loss in percent by the interfaces' own counters, which is known whatever the stack says of itself."""
    interfaces = measured.evidence.get("interfaces")
    if not interfaces or measured.setting.network.splitters:  # a proxy splits one transfer into two
        return None
    sent: int = sum(counters["tx_bytes"] for counters in interfaces["server"].values())
    came: int = sum(counters["rx_bytes"] for counters in interfaces["client"].values())
    return 100 * (1 - came / sent) if sent else None


def marked_pct(measured: Measured) -> float | None:
    """Return the percentage of packets through the bottleneck that its queue marked (ECN CE), by the queue's counts.

    None if the queue's counts are not known, as in published results, or if a path has several queues.
    """
    queues = [
        queue
        for queue in measured.evidence.get("qdiscs") or ()
        if queue.get("handle") == f"{shaping.QUEUE_HANDLE}:" and queue.get("dev") in _EGRESSES
    ]
    packets = sum(queue.get("packets", 0) for queue in queues)
    marked = queue_counts.marked(queues, None)
    return 100 * marked / packets if len(queues) == 1 and packets and marked is not None else None


def bottleneck_egress(network: Network) -> str | None:
    """Return the interface by which a lone transfer's data leave their bottleneck; None if nothing limits them."""
    limit = network.bottleneck(network.tested)
    return None if limit is None else _EGRESSES[min(network.links.index(limit[0]), 1)]


def queue_mean_bdp(measured: Measured) -> float | None:
    """Return the bottleneck's mean queue over the path's BDP; None if it was not sampled, or the path has no delay."""
    mean_bytes: float | None = measured.metrics.get("queue_mean_bytes")
    bdp_bytes = measured.setting.cell.bdp_bytes
    return None if mean_bytes is None or not bdp_bytes else mean_bytes / bdp_bytes


def transfer_rtts(measured: Measured) -> float | None:
    """Return the time from the end of the handshake to the last byte, in round trips of the empty path.

    None if that time is not known, or if the path has no delay.
    """
    completion_s: float | None = measured.metrics.get("completion_s")
    handshake_s: float | None = measured.metrics.get("handshake_s")
    rtt_s = measured.setting.cell.rtt_s
    if completion_s is None or handshake_s is None or not rtt_s:
        return None
    return (completion_s - handshake_s) / rtt_s


def loss_events_per_min(measured: Measured) -> float | None:
    """Return how many loss events there were a minute, from the second to the last: the first one is slow start's.

    Fewer than five events do not show a rhythm, so those after the first are then counted over the whole transfer. None
    if the queue was not sampled, or if a proxy splits the transfer into two.
    """
    completion_s: float | None = measured.metrics.get("completion_s")
    looks = _looks(measured.evidence)
    if not looks or not completion_s or measured.setting.network.splitters:
        return None
    starts_s = _loss_events_s(looks, measured.setting.cell.rtt_s)
    if len(starts_s) < 5:
        return 60 * max(0, len(starts_s) - 1) / completion_s
    return 60 * (len(starts_s) - 2) / (starts_s[-1] - starts_s[1])


def queue_drops(evidence: Mapping[str, Any]) -> dict[str, list[Any]] | None:
    """Return the samples of a trace that loss_events_per_min() needs, as columns; None if the queue was not sampled.

    These are the first and the last sample, and each that saw new drops, with the ones before and after it.
    """
    looks = _looks(evidence)
    grown = [at for at in range(1, len(looks)) if looks[at][1] > looks[at - 1][1]]
    needed = {0, len(looks) - 1}.union(*((at - 1, at, at + 1) for at in grown))
    kept = [look for at, look in enumerate(looks) if at in needed]
    return {"t_s": [t_s for t_s, _ in kept], _DROPPED: [dropped for _, dropped in kept]} if kept else None


def _looks(evidence: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Return the samples of the queue in a trace or in queue_drops(): (time in s, packets that it dropped so far)."""
    columns = evidence.get("queue_drops") or evidence.get("trace") or {}
    if not {"t_s", _DROPPED} <= columns.keys():
        return []
    looks = zip(columns["t_s"], columns[_DROPPED], strict=True)
    return [(t_s, dropped) for t_s, dropped in looks if dropped is not None]


def _loss_events_s(looks: Sequence[tuple[float, int]], rtt_s: float) -> list[float]:
    """Return when loss events began, from samples of the queue: (time in s, packets that it has dropped so far).

    A loss event is an overflow of the queue, which lasts about a round trip. Drops within three round trips of the
    empty path belong to one event. So do the drops that two samples in a row see, as an event may lie across the first
    of them.
    """
    starts_s: list[float] = []
    ends_s = -math.inf
    for at, ((before_s, before), (t_s, dropped)) in enumerate(itertools.pairwise(looks), 1):
        if dropped > before and t_s > ends_s:
            starts_s.append((before_s + t_s) / 2)
            next_s = looks[min(at + 1, len(looks) - 1)][0]
            ends_s = max(next_s, t_s + _LOSS_EVENT_RTTS * rtt_s)
    return starts_s

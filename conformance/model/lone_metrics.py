"""What metrics of a lone transfer are computed by: pure functions of a measurement. What was not seen is None."""

import math
from collections.abc import Mapping
from typing import Any, Protocol

from conformance.model.emulation import queue_counts, tc_commands
from conformance.model.setting import Setting

#: the interface that a lone transfer's data leave the bottleneck by
_BOTTLENECK = "to_client"
#: round trips of the empty path after which a queue that drops anew does so for another reason: the queue's own time
#: may be one, and a sender hears of a drop a round trip late
_LOSS_EVENT_RTTS = 3


class Measured(Protocol):
    """What of a Measurement (model/trial.py) is asked for."""

    @property
    def setting(self) -> Setting: ...

    @property
    def metrics(self) -> Mapping[str, Any]: ...

    @property
    def evidence(self) -> Mapping[str, Any]: ...


def lost_pct(measured: Measured) -> float | None:
    """Return the loss by the interfaces' own counters: so it is known of every stack, whatever it says of itself."""
    interfaces = measured.evidence.get("interfaces")
    if not interfaces or measured.setting.proxy:  # a proxy makes two transfers of one
        return None
    sent: int = sum(counters["tx_bytes"] for counters in interfaces["server"].values())
    came: int = sum(counters["rx_bytes"] for counters in interfaces["client"].values())
    return 100 * (1 - came / sent) if sent else None


def marked_pct(measured: Measured) -> float | None:
    """Return the share of the packets through the bottleneck that its queue marked (ECN CE), by the queue's counts.

    None where it is not known what the queue counted, as of what is published, or where a path has several.
    """
    queues = [
        queue
        for queue in measured.evidence.get("qdiscs") or ()
        if queue.get("handle") == f"{tc_commands.QUEUE_HANDLE}:" and queue.get("dev") == _BOTTLENECK
    ]
    packets = sum(queue.get("packets", 0) for queue in queues)
    return 100 * queue_counts.marked(queues, None) / packets if len(queues) == 1 and packets else None


def queue_mean_bdp(measured: Measured) -> float | None:
    mean_bytes: float | None = measured.metrics.get("queue_mean_bytes")
    return None if mean_bytes is None else mean_bytes / tc_commands.bdp_bytes(measured.setting.cell)


def transfer_rtts(measured: Measured) -> float | None:
    """Return the time from the end of the handshake to the last byte, in round trips of the empty path."""
    completion_s: float | None = measured.metrics.get("completion_s")
    handshake_s: float | None = measured.metrics.get("handshake_s")
    if completion_s is None or handshake_s is None:
        return None
    return (completion_s - handshake_s) / tc_commands.rtt_s(measured.setting.cell)


def loss_events_per_min(measured: Measured) -> float | None:
    """Return how often the bottleneck's queue overflowed, from the second time to the last, in a minute.

    The first time is slow start's. One event takes a round trip or so: what is dropped within three round trips of the
    empty path, or within two looks at the queue, is of one. Where fewer than five came, which tell no rhythm, those
    after the first are counted over all of the transfer. None where nobody looked at the queue, or it is not a lone
    transfer's.
    """
    trace = measured.evidence.get("trace") or {}
    completion_s: float | None = measured.metrics.get("completion_s")
    if "queue_dropped_packets" not in trace or not completion_s or measured.setting.proxy:
        return None
    looks = [
        (t_s, dropped)
        for t_s, dropped in zip(trace["t_s"], trace["queue_dropped_packets"], strict=True)
        if dropped is not None
    ]
    if not looks:
        return None
    starts_s: list[float] = []
    ends_s = -1.0
    for (before_s, before), (t_s, dropped), (next_s, _) in zip(
        looks, looks[1:], [*looks[2:], (math.inf, 0)], strict=False
    ):
        if dropped > before and t_s > ends_s:
            starts_s.append((before_s + t_s) / 2)
            ends_s = max(next_s, t_s + _LOSS_EVENT_RTTS * tc_commands.rtt_s(measured.setting.cell))
    if len(starts_s) < 5:
        return 60 * max(0, len(starts_s) - 1) / completion_s
    return 60 * (len(starts_s) - 2) / (starts_s[-1] - starts_s[1])

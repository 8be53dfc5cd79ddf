"""What the queues of an interface say, as tc shows them: counts of packets, and how long these stood."""

from collections.abc import Mapping, Sequence
from typing import Any


def root(queues: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the root of an interface's queues as tc shows it; empty where nothing is delayed, limited or lost."""
    return next((queue for queue in queues if queue.get("root") and queue.get("kind") != "noqueue"), {})


def less(delays_ms: Mapping[str, float] | None, delay_ms: float) -> dict[str, float] | None:
    """Return how long packets stood without the delay that they stand in netem for, where the chain has one."""
    if delays_ms is None:
        return None
    # To within 10 us, by which each trial's delay differs.
    return {name: round(max(value - delay_ms, 0.0), 6) for name, value in delays_ms.items()}


def marked(queues: Sequence[Mapping[str, Any]], hop: Mapping[str, int] | None) -> int:
    """Return how many packets were marked, by queues and behind them."""
    return sum(map(_marks, queues)) + (hop["marked"] if hop else 0)


def _marks(queue: Mapping[str, Any]) -> int:
    own = sum(queue.get(name, 0) for name in ("ecn_mark", "ce_mark"))
    return int(own + sum(tin.get("ecn_mark", 0) for tin in queue.get("tins", ())))

"""Read what tc shows of an interface's queues: counts of packets, and how long packets stood in them."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.emulation.shaping import LIMITER_HANDLE


def root(queues: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the root qdisc of an interface as tc shows it; empty if nothing is delayed, limited or lost there."""
    return next((queue for queue in queues if queue.get("root") and queue.get("kind") != "noqueue"), {})


def limiter(queues: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return what limits the rate at an interface; empty if nothing does, or if netem does.

    It counts all drops of the queue behind it, but not random losses, which netem makes before it.
    """
    return next((queue for queue in queues if queue.get("handle") == f"{LIMITER_HANDLE}:"), {})


def dropped(queues: Sequence[Mapping[str, Any]], random_loss: bool) -> int | None:
    """Return how many packets the queue of an interface dropped, without those that were lost at random.

    `random_loss`: whether netem makes some. If it limits the rate, too, it counts both as one, and the queue's drops
    are not known.
    """
    limits = limiter(queues)
    if not limits and random_loss:
        return None
    return (limits or root(queues)).get("drops")


def less(delays_ms: Mapping[str, float] | None, delay_ms: float) -> dict[str, float] | None:
    """Return how long packets stood in the queue: `delays_ms` without the delay of the chain's netem, if it has one."""
    if delays_ms is None:
        return None
    # This is exact to within 10 us, by which each trial's delay differs.
    return {name: round(max(value - delay_ms, 0.0), 6) for name, value in delays_ms.items()}


def marked(queues: Sequence[Mapping[str, Any]], hop: Mapping[str, int] | None) -> int | None:
    """Return how many packets were marked by the queues and by the hop behind them; None if that is not known."""
    marks = [hop["marked"] if hop else 0, *map(_marks, queues)]
    return None if None in marks else sum(filter(None, marks))


def _marks(queue: Mapping[str, Any]) -> int | None:
    options = queue.get("options") or {}
    if options.get("ecn") and options.get("ce_threshold") is not None:
        # CoDel counts a packet that it marks instead of dropping it, and counts it again if it stood longer than the
        # threshold (include/net/codel_impl.h).
        return None
    marks = sum(queue.get(name, 0) for name in ("ecn_mark", "ce_mark"))
    return int(marks + sum(tin.get("ecn_mark", 0) for tin in queue.get("tins", ())))

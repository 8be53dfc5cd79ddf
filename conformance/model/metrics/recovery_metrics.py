"""Compute metrics of a network that changes: functions of a measurement and a group, as in group_metrics.py.

They are about the last phase (emulation/phases.py): from the last instant of the schedule until the flows end.
"""

import math

from conformance.model.metrics.group_metrics import Facts, Measured, flows_of, limited
from conformance.model.metrics.metric import Metric
from conformance.model.networks.flow_group import Flows

NO_MOVE = "its client does not move, or it is not known how long its flows should have lasted"


def _last(record: Facts | None) -> Facts | None:
    """Return the last phase of a flow or a link; None if nothing had changed when it began."""
    phases = (record or {}).get("phases")
    phase: Facts | None = phases[-1] if phases and phases[-1]["from_s"] > 0 else None
    return phase


def _bottleneck(measured: Measured, group: str | None) -> Facts | None:
    """Return the record of the link that limits a group after the last change; None if nothing does or changed."""
    changed = [(phase, link) for link in limited(measured, group) if (phase := _last(link)) is not None]
    # A rate of 0 is null in records.
    return min(changed, key=lambda each: each[0].get("rate_mbps") or 0, default=(None, None))[1]


def recovery_s(measured: Measured, group: str | None) -> float | None:
    """Return how long after the last change each flow first has 90 % of its new share: the mean over the flows.

    A flow that never has it counts with the time that was observed.
    """
    of_group = flows_of(measured, group)
    # A flow that ended before the last change has an earlier phase for its last.
    records = (*measured.flows, *measured.links)
    last_s = max((record["phases"][-1]["from_s"] for record in records if record.get("phases")), default=None)
    phases = [phase if (phase := _last(flow)) and phase["from_s"] == last_s else None for flow in of_group]
    times = [
        phase["to_s"] - phase["from_s"] if phase["reached_s"] is None else phase["reached_s"]
        for phase in phases
        if phase is not None
    ]
    return math.fsum(times) / len(times) if times and len(times) == len(phases) else None


def recovery_lost_pct(measured: Measured, group: str | None) -> float | None:
    """Return the percentage of packets dropped by the bottleneck's queue, of all that came after the last change."""
    link = _bottleneck(measured, group)
    phase = _last(link)
    if link is None or phase is None or not link["out_bytes"] or not link["out_packets"]:
        return None
    dropped: float = phase["dropped_packets"]
    came = dropped + phase["out_bytes"] * link["out_packets"] / link["out_bytes"]
    return 100 * dropped / came if came else None


def recovery_queue_ms(measured: Measured, group: str | None) -> float | None:
    """Return how long the bottleneck takes to send its longest queue after the last change."""
    phase = _last(_bottleneck(measured, group))
    if phase is None or not phase.get("rate_mbps"):
        return None
    value: float = 8 * phase["queue_peak_bytes"] / phase["rate_mbps"] / 1000
    return value


def later_utilization(measured: Measured, group: str | None) -> float | None:
    """Return what the bottleneck sent after the last change, relative to what it could have sent at its rate."""
    phase = _last(_bottleneck(measured, group))
    if phase is None or not phase.get("rate_mbps"):
        return None
    could_bytes = phase["rate_mbps"] * 1e6 / 8 * (phase["to_s"] - phase["from_s"])
    used: float = phase["out_bytes"] / could_bytes
    return used


def move_gap_s(measured: Measured, group: str | None) -> float | None:
    """Return the longest time without a packet to a group's clients, counted from the last packet before their move.

    It is measured of all flows of the link together, by the packets that pass its hop (load/hop.c). If a flow ends
    early or stays silent to its end, the gap lasts until its planned end.
    """
    network, flows = measured.setting.network, flows_of(measured, group)
    if not flows:
        return None
    groups: dict[str, Flows] = {each.name: each for each in network.flows}
    ways = {(link.name, way) for flow in flows for link, way in network.towards_client(groups[flow["group"]])}
    hops = [link.get("impaired", {}) for link in measured.links if (link["link"], link["direction"]) in ways]
    moved = [hop for hop in hops if "quiet_ns" in hop]
    ends = [_was_to_end_s(flow, groups[flow["group"]]) for flow in flows]
    if len(moved) != 1 or None in ends:
        return None
    (hop,) = moved
    last_s: float = max(end for end in ends if end is not None)
    quiet_s: float = hop["quiet_ns"] / 1e9
    passed_s: float = hop["passed_ns"] / 1e9
    return max(quiet_s, last_s - passed_s)


def _was_to_end_s(flow: Facts, group: Flows) -> float | None:
    """Return when a flow ended or, if a clock was to end it, its planned end; None if it did not complete."""
    if group.seconds is not None:
        return float(flow["start_s"]) + group.seconds
    ended: float | None = flow["end_s"] if flow["completion_s"] is not None else None
    return ended


#: rows of the table of metrics (metrics.py)
ROWS: tuple[Metric, ...] = (
    Metric(  # margin: it depends on where a backed-off timer stands when an outage of 1 s ends
        "recovery_s", "recovery", "Time from the last change of the network until flows have 90 % of their new share",
        recovery_s, unit="s", digits=2, margin=1.0, full_scale=10.0, only_above=True,
    ),
    Metric(
        "recovery_lost_pct", "lost after the change",
        "Share of the packets that the bottleneck's queue dropped after the last change of the network, %",
        recovery_lost_pct, unit="%", most=100.0, digits=2, margin=0.3, full_scale=10.0, only_above=True,
    ),
    Metric(
        "recovery_queue_ms", "peak queue after the change",
        "How long the bottleneck takes to send its longest queue after the last change", recovery_queue_ms, unit="ms",
        digits=1, margin=5.0, full_scale=400.0, only_above=True,
    ),
    Metric(
        "later_utilization", "used after the change",
        "What the bottleneck sent after the last change of the network, over its rate", later_utilization, digits=3,
        most=1.0, margin=0.005, full_scale=1.0,
    ),
)  # fmt: skip
MOVE_GAP = Metric(
    "move_gap_s", "gap at a move", "Longest time without a packet to the client, from its move on", move_gap_s,
    unit="s", digits=3, margin=0.5, full_scale=20.0, missing=NO_MOVE,
)  # fmt: skip

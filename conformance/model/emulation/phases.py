"""Say what each flow and each link did in each phase of a trial: between two instants of the network's schedule.

A schedule entry that sets what is in force already changes nothing, but it marks an instant all the same, such as when
other flows start or end.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import Link
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Occasion

#: length of a window in s: a flow reaches its share when its mean goodput over a window is high enough
WINDOW_S = 0.5
#: which part of its share a flow must reach, and which part of a rate is payload, without headers
REACHED, PAYLOAD = 0.9, 0.95
#: a flow that starts or ends at most this long after an instant, in s, does so at the instant
_SOON_S = 0.5

Facts = Mapping[str, Any]


def spans(network: Network, elapsed_s: float) -> list[tuple[float, float]]:
    """Return (from, to) of each phase, in s; none if nothing is scheduled, or if a trace or a state sets the times."""
    instants = {0.0}
    for entry in network.schedule:
        if entry.trace is not None or isinstance(entry.at_s, Occasion):
            return []
        instants |= {entry.at_s, entry.at_s + (entry.for_s or 0)}
    times = [*sorted(at_s for at_s in instants if at_s < elapsed_s), elapsed_s]
    return list(itertools.pairwise(times)) if network.schedule else []


def of_flow(network: Network, group: Flows, flow_facts: Facts, facts: Facts) -> dict[str, Any]:
    """Return, for each phase in which a flow runs, its share, its goodput, and when it first reached its share.

    Of each link that its data cross, a flow's share is an equal part of the rate among all flows whose data cross it
    when the phase begins, less 5 % for headers; the least of these is its share. It has reached that once its goodput
    over half a second is 90 % of it. Empty if there are no phases.
    """
    looks = flow_facts["looks"]
    known = list(zip(looks.get("t_s") or (), looks.get("acked_bytes") or (), strict=True))
    phases = []
    for from_s, to_s in spans(network, facts["elapsed_s"]):
        inside = [(t_s, count) for t_s, count in known if from_s <= t_s <= to_s]
        if not _runs(flow_facts, from_s) or len(inside) <= 1:
            continue
        shares = list(_shares_mbps(network, group, facts, from_s))
        if not shares:
            continue
        share_mbps = PAYLOAD * min(shares)
        phases.append(
            {
                "from_s": from_s,
                "to_s": round(to_s, 6),
                "share_mbps": round(share_mbps, 6),
                "goodput_mbps": round(_mbps(inside[0], inside[-1]), 6),
                "reached_s": _reached_s(inside, REACHED * share_mbps, from_s),
            }
        )
    return {"phases": phases} if phases else {}


def _shares_mbps(network: Network, group: Flows, facts: Facts, at_s: float) -> Iterator[float]:
    """Yield the equal part, in Mbit/s, of each limited link that the data of a group of running flows cross."""
    for link, way in network.towards_client(group):
        if link.direction(way).rate_mbps:
            flows = sum(
                _runs(flow, at_s)
                for other, of in zip(network.flows, facts["groups"], strict=True)
                if (link, way) in network.towards_client(other)
                for flow in of["flows"]
            )
            yield _rate_mbps(network, link, way, at_s) / flows


def of_link(network: Network, link: Link, way: str, way_facts: Facts, facts: Facts) -> dict[str, Any]:
    """Return, for each phase, what a direction's queue passed on and dropped, and its peak. Empty if there is none."""
    looks = way_facts["looks"]
    names = ("t_s", "out_bytes", "dropped_packets", "queue_bytes")
    phases = []
    for from_s, to_s in spans(network, facts["elapsed_s"]) if link.direction(way).rate_mbps else ():
        rows = zip(*(looks.get(name) or () for name in names), strict=True)
        inside = [row for row in rows if from_s <= row[0] <= to_s]
        if len(inside) <= 1:
            continue
        phases.append(
            {
                "from_s": from_s,
                "to_s": round(to_s, 6),
                "rate_mbps": _rate_mbps(network, link, way, from_s) or None,
                "out_bytes": inside[-1][1] - inside[0][1],
                "dropped_packets": inside[-1][2] - inside[0][2],
                "queue_peak_bytes": max(row[3] for row in inside),
            }
        )
    return {"phases": phases} if phases else {}


def _runs(flow_facts: Facts, at_s: float) -> bool:
    end_s = flow_facts["end_s"]
    return flow_facts["start_s"] <= at_s + _SOON_S and (end_s is None or end_s > at_s + _SOON_S)


def _rate_mbps(network: Network, link: Link, way: str, at_s: float) -> float:
    """Return the rate of a direction that is in force at an instant."""
    rate = link.direction(way).rate_mbps
    for change in network.changes(link, way, float("inf")):
        if change.at_ns / 1e9 <= at_s:
            rate = change.direction.rate_mbps
    return rate or 0.0


def _mbps(before: tuple[float, float], after: tuple[float, float]) -> float:
    return 8 * (after[1] - before[1]) / (after[0] - before[0]) / 1e6


def _reached_s(known: Sequence[tuple[float, float]], enough_mbps: float, from_s: float) -> float | None:
    """Return how long after `from_s` the first window with enough goodput begins, in s; None if there is none."""
    end = 0
    for begin, at in enumerate(known):
        end = max(end, begin)
        while end < len(known) and known[end][0] < at[0] + WINDOW_S - 1e-6:
            end += 1
        if end == len(known):
            return None
        if _mbps(at, known[end]) >= enough_mbps:
            return round(at[0] - from_s, 3)
    return None

"""Check whether clients' moves to another port or address met packets, and what became of the clients' flows.

If a client's move ends a flow or makes it silent, that is no fault of the emulator: it is what the scenario asked for.
A client that only receives may well fall silent: if all packets in flight to it were lost, it has nothing to
acknowledge, and the sender's probes go to its old port or address.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation import client_report
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import WAYS, Link
from conformance.model.networks.network import Network

Facts = Mapping[str, Any]
#: a flow that ends at most this long after a move, in s, did not outlast it
_SOON_S = 0.5


def problems(network: Network, facts: Facts) -> Iterator[str]:
    """Yield sentences about moves that no packet met although a flow outlasted them: such moves did not happen."""
    for link, both in zip(network.links, facts["links"], strict=True):
        at_s = _moved_s(network, link, facts["elapsed_s"])
        if at_s is None or any(_touched(direction["hop"]) for direction in both):
            continue
        outlasted = [
            f"flow {number} of group {group.name}" for group, number, flow in _flows(network, facts)
            if link in network.route(group) and _runs(flow, at_s)
        ]  # fmt: skip
        if outlasted:
            last_s = max((direction["hop"] or {}).get("passed_ns", 0) / 1e9 for direction in both)
            yield (
                f"the move of clients at {at_s:g} s ({link.name}) affected no packet, but {outlasted[0]} outlasted it; "
                f"the last packet before it came at {last_s:g} s"
            )


def broken_off(network: Network, facts: Facts) -> dict[tuple[str, int], str]:
    """Return {(group, number): how} of the flows whose clients gave up after they had been moved."""
    moved_s = {
        link.name: _moved_s(network, link, facts["elapsed_s"])
        for link, both in zip(network.links, facts["links"], strict=True)
        if any(_touched(direction["hop"]) for direction in both)
    }
    ended = {}
    for group, number, flow in _flows(network, facts):
        client = flow["client"]
        if not flow["complete"] or not client or client["exit_status"] == 0:
            continue
        times = [moved_s.get(link.name) for link in network.route(group)]
        if any(at_s is not None and flow["start_s"] <= at_s <= flow["end_s"] for at_s in times):
            ended[group.name, number] = f"{client_report.status(client)}{client_report.said(client)}"
    return ended


def asked(network: Network, group: Flows) -> bool:
    """Return whether clients of a group are ever to be moved."""
    ways = ((link, way) for link in network.route(group) for way in WAYS)
    return any(impairments.rebind for link, way in ways for impairments in network.impairments(link, way))


def words(network: Network, facts: Facts) -> str | None:
    """Return a sentence about what moves ended: flows, or all traffic in one direction; None if flows went on."""
    ends = {(group.name, number): flow["end_s"] for group, number, flow in _flows(network, facts)}
    sentences = [
        f"flow {number} of group {name} ended at {ends[name, number]:g} s, after its client had moved, with {how}"
        for (name, number), how in broken_off(network, facts).items()
    ]
    for link, both in zip(network.links, facts["links"], strict=True) if not sentences else ():
        at_s = _moved_s(network, link, facts["elapsed_s"])
        silent = [way for way, direction in zip(WAYS, both, strict=True) if not (direction["hop"] or {}).get("rebound")]
        if at_s is not None and any(_touched(direction["hop"]) for direction in both) and silent:
            sentences.append(
                f"after clients had moved at {at_s:g} s, no packet from or to their new port or address passed link "
                f"{link.name} ({', '.join(silent)})"
            )
    return "; ".join(sentences) or None


def _flows(network: Network, facts: Facts) -> Iterator[tuple[Flows, int, Facts]]:
    for group, of in zip(network.flows, facts["groups"], strict=True):
        flows: Sequence[Facts] = of["flows"]
        yield from ((group, number, flow) for number, flow in enumerate(flows))


def _moved_s(network: Network, link: Link, elapsed_s: float) -> float | None:
    """Return when, in s, clients beyond a link first have another port or address; None if they keep theirs."""
    impairments = link.direction("data").impairments
    if impairments is not None and impairments.rebind:
        return 0.0
    for change in network.changes(link, "data", elapsed_s):
        impairments = change.direction.impairments
        if impairments is not None and impairments.rebind:
            return change.at_ns / 1e9
    return None


def _touched(hop: Facts | None) -> bool:
    return bool(hop and hop.get("rebound", 0) + hop.get("stale", 0))


def _runs(flow: Facts, at_s: float) -> bool:
    end_s = flow["end_s"]
    return flow["start_s"] < at_s and (end_s is None or end_s > at_s + _SOON_S)

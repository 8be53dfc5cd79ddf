"""Turn the facts that a guest reports about a trial into a Measurement.

Of flows and links it has a record each. If one flow was recorded in detail, as it is alone in a cell or beside a rival,
its metrics and evidence say what these hold.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.emulation import (
    congestion,
    connection_facts,
    credibility,
    moves,
    phases,
    queue_counts,
    request_facts,
    round_trips,
)
from conformance.model.emulation.credibility import Case, Facts, difference
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import WAYS, Direction, Link
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Change, carried_bytes
from conformance.model.networks.setting import SILENCE_S
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: interval in s that each value of a series covers
SERIES_S = 1.0
_COUNTS = (
    "sent_bytes", "retransmitted_bytes", "out_segments", "retransmitted_segments", "marked_segments", "min_rtt_ms",
    "arrived_bytes",
)  # fmt: skip
_CALIBRATION = ("rate_mbps", "delays_ms", "loss_sent", "loss_lost")
#: figures of a trial that are those of the flow that was recorded in detail, and some that every flow's record has
_OF_FLOW = (
    "bytes", "completion_s", "handshake_s", "goodput_mbps", "min_rtt_ms", "retransmitted_segments",
    "back_to_back_packets", "longest_burst_packets",
)  # fmt: skip
_UNSEEN = ("bytes", "completion_s", "handshake_s", "goodput_mbps", "end_s", "rtt_ms")
#: what is seen of a direction of a link of which only the kernel's counters are known
_UNWATCHED: Facts = {
    "looks": {}, "delays": None, "delays_ms": None, "watched_one_in": None, "hop": None, "trips": None,
}  # fmt: skip
#: {metric of bursts: its name in what was seen of them}
_BURSTS = {"back_to_back_packets": "usual", "longest_burst_packets": "longest"}


def measurement(trial: Trial, facts: Facts, network: Facts, host: Facts) -> Measurement:
    """Judge one trial's facts (guest/seen.py: TrialFacts) for credibility, and derive what a Measurement holds.

    `network` is the guest's network event (sysctls, offload, kernel as read back, and the cell's calibration), and
    `host` is what depends on the machine.
    """
    fault = next(credibility.faults(trial, facts, network), None)
    if fault:
        return Measurement(trial=trial, outcome=fault.outcome, message=fault.message, host=dict(host))
    requested, timed_out, detail = trial.setting.network, facts["timed_out"], facts["detail"]
    evidence = {
        "kernel_release": network["kernel"],
        "sysctls": network["sysctls"],
        "offload": network["offload"],
        "qdiscs": [queue for both in facts["links"] for shown in both for queue in shown["qdiscs"]],
        **(_of_detail(trial, detail, network) if detail else _of_groups(requested, facts)),
    }
    if detail:
        metrics = _of_transfer(trial, facts, detail)
        flows, links = in_detail(trial, metrics, evidence)
    else:
        metrics, flows, links = _of_flows(trial, facts)
    what = "transfer" if detail else "flows"
    late = f"the {what} took longer than {trial.setting.timeout_s:g} s of virtual time"
    if credibility.ended_silent(trial, facts):
        late = f"no packet of the {what} came for {SILENCE_S} s of virtual time"
    return Measurement(
        trial=trial,
        outcome=Outcome.TIMEOUT if timed_out else Outcome.OK,
        message=late if timed_out else moves.words(requested, facts),
        metrics=metrics,
        evidence=evidence,
        host=dict(host),
        flows=with_parts(requested, flows, metrics["utilization"]),
        links=links,
    )


def _of_groups(requested: Network, facts: Facts) -> dict[str, Any]:
    """Return the evidence of flows and links: congestion control, changes, splitters and bond."""
    changes = [
        {"at_s": change["at_ns"] / 1e9, "late_ns": change["done_ns"] - change["at_ns"]} for change in facts["changes"]
    ]
    return {
        "congestion_control": {
            group.name: congestion.describe(of["flows"][0]["congestion_control"]) if of["flows"] else None
            for group, of in zip(requested.flows, facts["groups"], strict=True)
        },
        **({"changes": changes} if changes else {}),
        **({"splitters": facts["splitters"]} if facts["splitters"] else {}),
        **({} if facts["bond"] is None else {"bond": {side: facts["bond"][side] for side in ("split", "merge")}}),
    }


# --- a flow that was recorded in detail


def _of_transfer(trial: Trial, facts: Facts, detail: Facts) -> dict[str, float | None]:
    """Return its metrics, with None for those that only a completed transfer has."""
    sampled, setting = detail["sampled"], trial.setting
    info, bursts, mbps = sampled["tcp_info"], detail["bursts"], setting.cell.bandwidth_mbps
    case = _case(trial, setting.network.tested, 0, facts["groups"][setting.network.flows.index(setting.network.tested)],
                 facts)  # fmt: skip
    report = None if facts["timed_out"] else case.report
    goodput = 8 * report["bytes"] / report["completion_s"] / 1e6 if report else None
    # Of a transfer that did not end in time, an upper bound of its utilization is known.
    lasted_s = min(facts["elapsed_s"], setting.timeout_s)
    most = setting.transfer_bytes * 8 / (lasted_s * mbps * 1e6) if goodput is None else goodput / mbps
    return {
        "bytes": report["bytes"] if report else None,
        "completion_s": _rounded(report["completion_s"]) if report else None,
        "handshake_s": _rounded(report["handshake_s"]) if report else None,
        "goodput_mbps": _rounded(goodput),
        "utilization": _rounded(most),
        "min_rtt_ms": info["min_rtt_ms"] if info else None,
        "retransmitted_segments": difference(detail, "server", "Tcp.RetransSegs") if info else None,
        "sent_segments": difference(detail, "server", "Tcp.OutSegs") if info else None,
        **{name: sampled[name] for name in ("queue_mean_bytes", "queue_peak_bytes", "queue_peak_packets")},
        "virtual_s": facts["virtual_s"],
        # They are not known if the capture lacks packets.
        **({name: None if bursts["unseen"] else bursts[of] for name, of in _BURSTS.items()} if bursts else {}),
    }


def _of_detail(trial: Trial, detail: Facts, network: Facts) -> dict[str, Any]:
    """Return its evidence."""
    sampled, counters = detail["sampled"], detail["counters"]
    before, after = counters["before"], counters["after"]
    proxy = dict(sampled["proxy"] or {})
    proxy.pop("bbr", None)
    opened = difference(detail, "router", "Tcp.ActiveOpens")
    return {
        "interfaces": {
            node: {
                name: {counter: value - before["interfaces"][node][name][counter] for counter, value in counted.items()}
                for name, counted in interfaces.items()
            }
            for node, interfaces in after["interfaces"].items()
        },
        "snmp": {
            side: {name: difference(detail, side, name) for name in after[side]}
            for side in ("server", "client", "router")
            if after.get(side) is not None
        },
        "tcp_info": sampled["tcp_info"],
        "congestion_control": congestion.describe(sampled["congestion_control"]),
        "trace": sampled["trace"],
        "calibration": [{name: link[name] for name in _CALIBRATION} for link in network["calibration"]],
        # what the kernel says about a proxy's sending half, its socket towards the client
        **({"proxy": {"tcp_info": proxy or None, "connections": opened}} if trial.setting.network.splitters else {}),
    }


def in_detail(trial: Trial, metrics: Facts, evidence: Facts) -> tuple[tuple[Facts, ...], tuple[Facts, ...]]:
    """Return (flows, links): the records of a trial, of these metrics and this evidence, that recorded one in detail.

    Lines of older labs have nothing else, so their reader (results/store.py) calls this, too.
    """
    network = trial.setting.network
    recorded = _in_detail(network, metrics, evidence)
    flows = tuple(
        {
            "group": group.name, "index": number, "judged": group.judged, "start_s": 0.0, "goodput_series_mbps": [],
            "algorithm": group.algorithm or trial.scheme.algorithm, **dict.fromkeys(_UNSEEN),
            **(recorded if group is network.tested and number == 0 else {}),
        }
        for group in network.flows
        for number in range(group.count)
    )  # fmt: skip
    limit, links = network.bottleneck(network.tested), []
    for link, way in itertools.product(network.links, WAYS):
        device = egress(network, link, way)
        queues = [queue for queue in evidence.get("qdiscs") or () if queue.get("dev") == device]
        links.append(_link(network, link, way, {**_UNWATCHED, "qdiscs": queues}, 0.0))
        if limit and (link.name, way) == (limit[0].name, limit[1]):
            links[-1] |= {name: metrics.get(name) for name in ("queue_mean_bytes", "queue_peak_bytes")}
            links[-1] |= {"queue_drops": drops} if (drops := _queue_drops(evidence)) else {}
    return flows, tuple(links)


def _in_detail(network: Network, metrics: Facts, evidence: Facts) -> Facts:
    """Return what is known of the flow that was recorded in detail; not when it ended by the clock of its packets."""
    record = {name: metrics[name] for name in _OF_FLOW if name in metrics}
    if interfaces := evidence.get("interfaces"):
        left, arrived = (interfaces[side].values() for side in ("server", "client"))
        # Splitters split one transfer into two.
        record["left_bytes"] = None if network.splitters else sum(counters["tx_bytes"] for counters in left)
        record["arrived_bytes"] = sum(counters["rx_bytes"] for counters in arrived)
        # Lines of early labs count bytes only.
        record["arrived_packets"] = sum(counters.get("rx_packets", 0) for counters in arrived)
    return record


def egress(network: Network, link: Link, way: str) -> str:
    """Return the interface by which packets leave a direction of a link (topologies/network.py: _directions)."""
    if way == "data":
        return "to_client" if link == network.links[0] else "down_to_router"
    return "to_server" if link == network.links[-1] else "up_to_router"


def _queue_drops(evidence: Facts) -> list[list[float]]:
    """Return the samples [time in s, packets that the queue dropped so far] that tell when it did; none if not sampled.

    These are the first and the last sample, and each that saw new drops, with the ones before and after it.
    """
    columns = evidence.get("queue_drops") or evidence.get("trace") or {}
    pairs = zip(columns.get("t_s", ()), columns.get("queue_dropped_packets", ()), strict=False)
    looks = [[t_s, dropped] for t_s, dropped in pairs if dropped is not None]
    grown = [at for at in range(1, len(looks)) if looks[at][1] > looks[at - 1][1]]
    needed = {0, len(looks) - 1}.union(*((at - 1, at, at + 1) for at in grown))
    return [look for at, look in enumerate(looks) if at in needed]


def _case(trial: Trial, group: Flows, number: int, of: Facts, facts: Facts) -> Case:
    return Case(trial=trial, group=group, number=number, of_group=of, facts=facts, network={})


# --- flows


def _of_flows(trial: Trial, facts: Facts) -> tuple[dict[str, Any], tuple[Facts, ...], tuple[Facts, ...]]:
    """Return (metrics, flows, links); the metrics are of all judged flows together, as those of a single transfer."""
    network = trial.setting.network
    flows = [
        {**_flow(trial, group, number, of, facts), **phases.of_flow(network, group, shown, facts)}
        for group, of in zip(network.flows, facts["groups"], strict=True)
        for number, shown in enumerate(of["flows"])
    ]
    links = [
        {**_link(network, link, way, shown, facts["elapsed_s"]), **phases.of_link(network, link, way, shown, facts)}
        for link, both in zip(network.links, facts["links"], strict=True)
        for way, shown in zip(WAYS, both, strict=True)
    ]
    judged = [flow for flow in flows if flow["judged"]]
    ends = [flow["end_s"] for flow in judged]
    total = sum(flow["bytes"] or 0 for flow in judged)
    first = min(flow["start_s"] for flow in judged)
    lasted_s = (facts["elapsed_s"] if None in ends else max(ends)) - first
    goodput = 8 * total / lasted_s / 1e6 if lasted_s > 0 else 0.0
    rtts = [flow["min_rtt_ms"] for flow in judged if flow["min_rtt_ms"]]
    limit = network.bottleneck(network.tested)
    queue: Facts = next(
        (link for link in links if limit and (link["link"], link["direction"]) == (limit[0].name, limit[1])), {}
    )
    metrics = {
        "bytes": total,
        "completion_s": None if facts["timed_out"] else _rounded(lasted_s),
        "goodput_mbps": _rounded(goodput),
        "utilization": _rounded(goodput / trial.setting.cell.bandwidth_mbps),
        "min_rtt_ms": min(rtts, default=None),
        "queue_mean_bytes": queue.get("queue_mean_bytes"),
        "queue_peak_bytes": queue.get("queue_peak_bytes"),
        "virtual_s": facts["virtual_s"],
    }
    return metrics, tuple(flows), tuple(links)


def _flow(trial: Trial, group: Flows, number: int, of: Facts, facts: Facts) -> dict[str, Any]:
    case = _case(trial, group, number, of, facts)
    shown, elapsed_s = case.seen, facts["elapsed_s"]
    start_s, end_s = shown["start_s"], shown["end_s"]
    report = case.report if case.client and case.completed else None
    acked, handshake_s = shown["acked_bytes"], None
    if shown["connected_s"] is not None:
        handshake_s = shown["connected_s"] - start_s
    if report:
        # The client's report was checked; what the kernel counts includes TLS and HTTP.
        acked, end_s, handshake_s = report["bytes"], start_s + report["completion_s"], report["handshake_s"]
    arrived = _arrived_bytes(shown, end_s, elapsed_s) if acked is None else acked
    lasted_s = (elapsed_s if end_s is None else end_s) - start_s
    rtts = sorted(rtt for rtt in shown["looks"].get("rtt_ms") or () if rtt)
    return {
        "group": group.name,
        "index": number,
        "judged": group.judged,
        "algorithm": group.algorithm or trial.scheme.algorithm,
        "start_s": _rounded(start_s),
        "handshake_s": _rounded(handshake_s),
        "end_s": _rounded(end_s),
        "completion_s": _rounded(lasted_s) if case.completed else None,
        "bytes": arrived,
        "bytes_are": "arrived" if acked is None else "acknowledged",
        "goodput_mbps": _rounded(8 * arrived / lasted_s / 1e6) if lasted_s > 0 and arrived is not None else None,
        **{name: shown[name] for name in _COUNTS},
        "rtt_ms": _quantiles(rtts),
        "goodput_series_mbps": _series(shown["looks"], start_s, end_s if end_s is not None else elapsed_s),
        **({"requests": request_facts.of_flow(shown, report)} if group.requests else {}),
        **({"connections": connection_facts.records(report, start_s)} if group.client else {}),
    }


def _arrived_bytes(shown: Facts, end_s: float | None, elapsed_s: float) -> int | None:
    """Return the bytes that had arrived for a flow when it ended, interpolated between samples, as in _series().

    More arrive for a client that the clock killed, until the trial ends.
    """
    most: int | None = shown["arrived_bytes"]
    samples = _samples(shown["looks"], shown["start_s"])
    if most is None or end_s is None or len(samples) <= 1:
        return most
    return round(_at([*samples, (elapsed_s, most)], end_s))


def _series(looks: Facts, start_s: float, end_s: float) -> list[float]:
    """Return a flow's goodput in Mbit/s in each whole second of the trial's clock until the flow ends."""
    known = _samples(looks, start_s)
    edges = [second * SERIES_S for second in range(math.floor(end_s / SERIES_S) + 1)]
    values = [_at(known, edge) for edge in edges]
    return [round(8 * (b - a) / SERIES_S / 1e6, 4) for a, b in itertools.pairwise(values)]


def _samples(looks: Facts, start_s: float) -> list[tuple[float, float]]:
    """Return (time in s, bytes so far) of each sample of a flow, and of its start."""
    times, acked = looks.get("t_s") or (), looks.get("acked_bytes") or ()
    return [(start_s, 0), *((t, n) for t, n in zip(times, acked, strict=True) if t > start_s)]


def _at(known: Sequence[tuple[float, float]], t_s: float) -> float:
    """Return the value of a counter at a time, interpolated between samples."""
    before = known[0]
    for after in known:
        if after[0] >= t_s:
            if after[0] == before[0]:
                return after[1] if after[0] == t_s else 0
            return (
                before[1] + (after[1] - before[1]) * (t_s - before[0]) / (after[0] - before[0])
                if t_s > before[0]
                else 0
            )
        before = after
    return known[-1][1]


def with_parts(network: Network, flows: Sequence[Facts], utilization: float | None) -> tuple[Facts, ...]:
    """Return the records of flows with what each used of its bottleneck: if judged, its part of `utilization`."""
    judged = [flow["bytes"] or 0 for flow in flows if flow["judged"]]
    rates_mbps = {group.name: network.rate_mbps(group) for group in network.flows}

    def part(flow: Facts) -> float | None:
        if flow["judged"]:
            weight = (flow["bytes"] or 0) / sum(judged) if any(judged) else 1 / len(judged)
            return None if utilization is None else utilization * weight
        goodput_mbps, rate_mbps = flow["goodput_mbps"], rates_mbps[flow["group"]]
        return None if goodput_mbps is None or not rate_mbps else goodput_mbps / rate_mbps

    return tuple({**flow, "utilization": part(flow)} for flow in flows)


# --- links


def _link(network: Network, link: Link, way: str, shown: Facts, elapsed_s: float) -> dict[str, Any]:
    direction, changes = link.direction(way), network.changes(link, way, elapsed_s)
    queues: Sequence[Mapping[str, Any]] = shown["qdiscs"]
    # If nothing is delayed, limited or lost, there is no queue, and the kernel counts nothing.
    root = queue_counts.root(queues)
    looks = shown["looks"]
    standing = looks.get("queue_bytes") or ()
    has_queue = direction.rate_mbps is not None
    random_loss = any(each.loss_pct for each in (direction, *(change.direction for change in changes)))
    return {
        "link": link.name,
        "direction": way,
        "rate_mbps": _mean_rate_mbps(direction, changes, elapsed_s),
        "out_bytes": root.get("bytes"),
        "out_packets": root.get("packets"),
        "dropped_packets": queue_counts.dropped(queues, random_loss),
        "marked_packets": queue_counts.marked(queues, shown["hop"]) if has_queue and queues else None,
        "queue_mean_bytes": _rounded(sum(standing) / len(standing), 1) if standing else None,
        "queue_peak_bytes": max(standing, default=None),
        # If the delay changes, it is not known which part of a packet's time was the queue's.
        "queue_delay_ms": queue_counts.less(shown["delays_ms"], direction.delay_ms)
        if has_queue and not any(change.direction.delay_ms != change.before.delay_ms for change in changes)
        else None,
        "queue_delay_packets": shown["delays"],
        "watched_one_in": shown["watched_one_in"],
        "out_series_mbps": _rates(looks),
        **({} if shown["hop"] is None else {"impaired": shown["hop"]}),
        **({} if shown["trips"] is None else {"round_trips": round_trips.of_flows(network, shown["trips"])}),
    }


def _mean_rate_mbps(direction: Direction, changes: Sequence[Change], elapsed_s: float) -> float | None:
    """Return the rate of a direction, or its mean over the trial if it changes."""
    if not any(change.direction.rate_mbps != change.before.rate_mbps for change in changes) or elapsed_s <= 0:
        return direction.rate_mbps
    return round(8 * carried_bytes(direction, changes, 0, elapsed_s) / elapsed_s / 1e6, 6)


def _rates(looks: Facts) -> list[float]:
    times, out = looks.get("t_s") or (), looks.get("out_bytes") or ()
    if not times:
        return []
    known = list(zip(times, out, strict=True))
    values = [_at(known, second * SERIES_S) for second in range(math.floor(times[-1] / SERIES_S) + 1)]
    return [round(8 * (b - a) / SERIES_S / 1e6, 4) for a, b in itertools.pairwise(values)]


# --- the trial as a whole


def _quantiles(values: Sequence[float]) -> dict[str, float] | None:
    """Return quantiles and the mean of sorted values; None if there are none."""
    if not values:
        return None
    quantiles = {f"p{percent}": values[min(percent * len(values) // 100, len(values) - 1)] for percent in (50, 95, 99)}
    return {**quantiles, "mean": round(sum(values) / len(values), 4)}


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)

"""Turn the facts of a trial whose flows share a network into a Measurement, with a record for each flow and link.

Nothing that a stack or program reports is taken on trust if it can be checked: reports of a stack's clients are checked
as for a single transfer (credibility.py), bytes that left a link against its rate, and the congestion control of the
kernel's flows against the one that was requested.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conformance.model.emulation import (
    beside,
    bonded,
    calibration,
    congestion,
    credibility,
    impairing,
    moves,
    phases,
    queue_counts,
    request_facts,
    round_trips,
    scheduled,
    shaping,
    splitting,
)
from conformance.model.emulation.credibility import Case, Facts
from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import WAYS, Direction, Link
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Change, carried_bytes
from conformance.model.trials.trial import Measurement, Outcome, Trial

#: interval in s that each value of a series covers
SERIES_S = 1.0
#: by how much the bytes that leave a link may exceed its rate, as a factor and in bytes, because of the clock's start
#: and a token bucket's first packets
_RATE_SLACK, _RATE_SLACK_BYTES = 1.01, 200_000
#: How much shorter than requested a round trip may be, in ms: for each link, since a trial's delays differ in both
#: directions; and once more, since TCP's timestamps, which tell the round trip of what was retransmitted, count
#: milliseconds.
_OFF_MS, _STAMP_MS = 0.025, 1.0
#: a flow that lasts longer, in s, must have reached its server if its path neither changes nor does more to packets
#: than lose some
_LONG_ENOUGH_S = 5.0
#: how many packets may leave a queue after the hop has ended, from connections that end
_LAST_PACKETS = 64
_COUNTS = (
    "sent_bytes", "retransmitted_bytes", "out_segments", "retransmitted_segments", "marked_segments", "min_rtt_ms",
    "arrived_bytes",
)  # fmt: skip


def measurement(trial: Trial, facts: Facts, network: Facts, host: Facts) -> Measurement:
    """Judge one trial's facts (guest/trial.py) for credibility, and derive the records of flows and links."""
    shared = trial.setting.network
    if shared is None:
        raise ValueError("a trial whose flows share nothing")
    fault = next(_faults(trial, shared, facts, network), None)
    if fault:
        return Measurement(trial=trial, outcome=fault.outcome, message=fault.message, host=dict(host))
    timed_out = facts["timed_out"]
    flows = [
        {**_flow(trial, group, number, seen, facts), **phases.of_flow(shared, group, seen, facts)}
        for group, of in zip(shared.flows, facts["groups"], strict=True)
        for number, seen in enumerate(of["flows"])
    ]
    links = [
        {**_link(shared, link, way, seen, facts["elapsed_s"]), **phases.of_link(shared, link, way, seen, facts)}
        for link, both in zip(shared.links, facts["links"], strict=True)
        for way, seen in zip(WAYS, both, strict=True)
    ]
    late = f"the flows took longer than {trial.setting.timeout_s:g} s of virtual time"
    message = late if timed_out else moves.words(shared, facts)
    return Measurement(
        trial=trial,
        outcome=Outcome.TIMEOUT if timed_out else Outcome.OK,
        message=message,
        metrics=_metrics(trial, flows, links, facts),
        evidence={
            "kernel_release": network["kernel"],
            "sysctls": network["sysctls"],
            "offload": network["offload"],
            "qdiscs": [queue for both in facts["links"] for seen in both for queue in seen["qdiscs"]],
            "congestion_control": {
                group.name: congestion.describe(of["flows"][0]["congestion_control"]) if of["flows"] else None
                for group, of in zip(shared.flows, facts["groups"], strict=True)
            },
            **_changes(facts),
            **({"splitters": facts["splitters"]} if facts["splitters"] else {}),
            **({} if facts["bond"] is None else {"bond": {side: facts["bond"][side] for side in ("split", "merge")}}),
        },
        host=dict(host),
        flows=tuple(flows),
        links=tuple(links),
    )


def _changes(facts: Facts) -> dict[str, Any]:
    """Return when the network changed, and how late each change was; empty if nothing changed."""
    found = [{"at_s": one["at_ns"] / 1e9, "late_ns": one["done_ns"] - one["at_ns"]} for one in facts["changes"]]
    return {"changes": found} if found else {}


# --- can it be believed?


def _faults(trial: Trial, shared: Network, facts: Facts, network: Facts) -> Iterator[credibility.Fault]:
    """Yield what is wrong, beginning with faults that may have caused the others."""
    for group, of in zip(shared.flows, facts["groups"], strict=True):
        if of["server"] and not of["ready"]:
            # Nothing ran, so the links did not do what was requested either.
            yield from _stack_faults(trial, group, of, facts, network)
            return
    problems = list(
        itertools.chain.from_iterable(
            _direction_problems(shared, link, way, seen, facts)
            for link, both in zip(shared.links, facts["links"], strict=True)
            for way, seen in zip(WAYS, both, strict=True)
        )
    )
    problems += scheduled.change_problems(facts)
    if shared.bond is not None and facts["bond"] is not None:
        problems += bonded.problems(shared.bond, shared.links, facts["bond"])
    problems += splitting.problems(shared, facts["splitters"], [len(of["flows"]) for of in facts["groups"]])
    problems += calibration.sysctl_problems(trial.setting, network["sysctls"])
    problems += moves.problems(shared, facts)
    problems += [
        problem
        for group, of in zip(shared.flows, facts["groups"], strict=True)
        for problem in _too_early(shared, group, of, facts["elapsed_s"])
    ]
    if problems:
        yield credibility.Fault(f"calibration: {'; '.join(problems)}")
    for group, of in zip(shared.flows, facts["groups"], strict=True):
        if of["server"]:
            yield from _stack_faults(trial, group, of, facts, network)
        else:
            yield from _kernel_faults(trial, group, of)
    if network["kernel_algorithm"] is not None:
        yield from map(credibility.Fault, beside.problems(trial.scheme.stack, shared, facts["sent"]))


def _direction_problems(shared: Network, link: Link, way: str, seen: Facts, facts: Facts) -> Iterator[str]:
    """Yield sentences about what a link's direction did that was not requested."""
    changes = shared.changes(link, way, scheduled.looked_at_s(facts))
    last = changes[-1].direction if changes else link.direction(way)
    found = [*shaping.problems(last, seen["qdiscs"], shared.held(link, way))]
    found += _beyond_rate(link.direction(way), changes, seen)
    made = scheduled.behind_changes(facts, shared.links.index(link), WAYS.index(way))
    found += scheduled.problems(link.direction(way), changes, seen, made, facts["elapsed_s"], shared.offload)
    if seen["hop"] is not None:
        impaired = [one.direction.impairments for one in changes if one.direction.impairments != one.before.impairments]
        found += impairing.problems([link.direction(way).impairments, *impaired], seen["hop"])
        out, came = queue_counts.root(seen["qdiscs"]).get("packets"), seen["hop"]["came"] + seen["hop"]["other"]
        # The hop ends before the kernel's counter is read.
        if out is not None and not 0 <= out - came <= _LAST_PACKETS:
            found.append(f"{out} packets left the queue, but {came} reached the hop")
    yield from (f"{problem} ({link.name}, {way})" for problem in found)


def _beyond_rate(direction: Direction, changes: Sequence[Change], seen: Facts) -> Iterator[str]:
    times: Sequence[float] = seen["looks"].get("t_s") or ()
    out: Sequence[int] = seen["looks"].get("out_bytes") or ()
    if direction.rate_mbps is None or len(times) <= 1:
        return
    carried = carried_bytes(direction, changes, times[0], times[-1])
    most = carried * _RATE_SLACK + _RATE_SLACK_BYTES
    if out[-1] - out[0] > most + (direction.burst_bytes or 0):
        mean_mbps = 8 * carried / (times[-1] - times[0]) / 1e6
        yield f"{out[-1] - out[0]} bytes left the queue in {times[-1] - times[0]:.3g} s, at {mean_mbps:g} Mbit/s"


def _too_early(shared: Network, group: Flows, of: Facts, elapsed_s: float) -> Iterator[str]:
    """Yield sentences about round trips shorter than the least sum of the delays on the path: a delay was missing."""
    asked_ms = shared.least_rtt_ms(group, elapsed_s)
    for number, found_ms in enumerate(seen["min_rtt_ms"] for seen in of["flows"]):
        if found_ms is not None and found_ms < asked_ms - _STAMP_MS - _OFF_MS * len(shared.links):
            yield (
                f"flow {number} of group {group.name} had a round trip of {found_ms:g} ms"
                f" instead of {asked_ms:g} or more"
            )


def _kernel_faults(trial: Trial, group: Flows, of: Facts) -> Iterator[credibility.Fault]:
    asked = group.algorithm or trial.scheme.algorithm
    for seen in of["flows"]:
        if why := congestion.not_as_asked(asked, seen["congestion_control"] if seen["acked_bytes"] else None):
            yield credibility.Fault(f"group {group.name}: {why}", Outcome.UNSUPPORTED)
            return


def _stack_faults(trial: Trial, group: Flows, of: Facts, facts: Facts, network: Facts) -> Iterator[credibility.Fault]:
    stack, server = trial.scheme.stack, of["server"]
    clients = [seen["client"] for seen in of["flows"] if seen["client"]]
    processes: list[tuple[str, Facts]] = [("server", server), *(("client", client) for client in clients)]
    for role, process in processes:
        if process["exit_status"] == credibility.NOT_OFFERED:
            offered = f"{stack} does not offer {trial.scheme.algorithm}{credibility.said(process)}"
            yield credibility.Fault(offered, Outcome.UNSUPPORTED)
        elif role == "server" and process["exit_status"] is not None:
            status, when = credibility.status(process), "during the transfers" if of["ready"] else "before it was ready"
            yield credibility.Fault(f"the server of {stack} ended with {status} {when}{credibility.said(process)}")
    if not of["ready"]:
        yield credibility.Fault(f"the server of {stack} was never ready{credibility.said(server)}")
    shared = trial.setting.network
    broken = moves.broken_off(shared, facts) if shared else ()
    for number, seen in enumerate(of["flows"]):
        where = f"flow {number} of group {group.name}"
        if seen["complete"] and (group.name, number) not in broken:
            case = _case(trial, group, seen, network)
            if seen["client"]["exit_status"] != 0:
                how = f"{credibility.status(seen['client'])}{credibility.said(seen['client'])}"
                yield credibility.Fault(f"{where}: the client of {stack} ended with {how}")
            elif case.facts["transfer_bytes"] is None and not group.requests:
                # The body is larger than what the path carries in the flow's time, headers included.
                yield credibility.Fault(f"{where}: the client of {stack} ended before its time was up")
            elif lie := credibility.lie(case) or request_facts.lie(group, case.report or {}):
                yield credibility.Fault(f"{where}: the client of {stack} {lie}")
            elif fault := credibility.not_supported(case):
                yield credibility.Fault(f"{where}: {fault.message}", fault.outcome)
        elif shared and not seen["arrived_bytes"] and not shared.interferes(group):
            lasted_s = (facts["elapsed_s"] if seen["end_s"] is None else seen["end_s"]) - seen["start_s"]
            if lasted_s > _LONG_ENOUGH_S:
                yield credibility.Fault(f"{where}: {stack} transferred nothing in {lasted_s:g} s")
        name = network.get("kernel_algorithm")
        found = seen["congestion_control"]
        if other := congestion.not_as_set(name, found, facts["elapsed_s"]):
            yield credibility.Fault(f"{where}: the server of {stack} {other}")
        if trial.scheme.in_kernel and (other := congestion.not_as_asked(trial.scheme.algorithm, found)):
            yield credibility.Fault(other, Outcome.UNSUPPORTED)


def _case(trial: Trial, group: Flows, seen: Facts, network: Facts) -> Case:
    """Return the Case of one flow of the stack, so that it can be checked like a single transfer."""
    shared = trial.setting.network
    size, most_mbps = (shared.transfer_bytes(group), shared.highest_mbps(group)) if shared else (None, None)
    bursts = [link.direction(way).burst_bytes or 0 for link, way in shared.towards_client(group)] if shared else []
    before, after = ({"interfaces": {"client": {"up": {"rx_bytes": n}}}} for n in (0, seen["arrived_bytes"]))
    facts = {
        "client": seen["client"], "timed_out": False, "counters": {"before": before, "after": after},
        "transfer_bytes": size, "elapsed_s": seen["end_s"] - seen["start_s"], "exchange": None,
    }  # fmt: skip
    burst_bytes, table = credibility.BURST_BYTES + sum(bursts), seen["looks"]
    columns = table.get("t_s", ()), table.get("acked_bytes", ())
    looks = [(t_s - seen["start_s"], n) for t_s, n in zip(*columns, strict=True)]
    return Case(trial=trial, facts=facts, network=network, most_mbps=most_mbps, burst_bytes=burst_bytes, looks=looks)


# --- flows


def _flow(trial: Trial, group: Flows, number: int, seen: Facts, facts: Facts) -> dict[str, Any]:
    start_s, end_s = seen["start_s"], seen["end_s"]
    network, elapsed_s = trial.setting.network, facts["elapsed_s"]
    complete = seen["complete"] and not (network and (group.name, number) in moves.broken_off(network, facts))
    report = _case(trial, group, seen, {}).report if seen["client"] and complete else None
    acked, handshake_s = seen["acked_bytes"], None
    if seen["connected_s"] is not None:
        handshake_s = seen["connected_s"] - start_s
    if report:
        # The client's report was checked; what the kernel counts includes TLS and HTTP.
        acked, end_s, handshake_s = report["bytes"], start_s + report["completion_s"], report["handshake_s"]
    arrived = seen["arrived_bytes"] if acked is None else acked
    lasted_s = (elapsed_s if end_s is None else end_s) - start_s
    rtts = sorted(rtt for rtt in seen["looks"].get("rtt_ms") or () if rtt)
    return {
        "group": group.name,
        "index": number,
        "judged": group.judged,
        "algorithm": group.algorithm or trial.scheme.algorithm,
        "start_s": _rounded(start_s),
        "handshake_s": _rounded(handshake_s),
        "end_s": _rounded(end_s),
        "completion_s": _rounded(lasted_s) if complete else None,
        "bytes": arrived,
        "bytes_are": "arrived" if acked is None else "acknowledged",
        "goodput_mbps": _rounded(8 * arrived / lasted_s / 1e6) if lasted_s > 0 and arrived is not None else None,
        **{name: seen[name] for name in _COUNTS},
        "rtt_ms": _quantiles(rtts),
        "goodput_series_mbps": _series(seen["looks"], start_s, end_s if end_s is not None else elapsed_s),
        **({"requests": request_facts.of_flow(seen, report)} if group.requests else {}),
    }


def _series(looks: Facts, start_s: float, end_s: float) -> list[float]:
    """Return a flow's goodput in Mbit/s in each whole second of the trial's clock until the flow ends."""
    times, acked = looks.get("t_s") or (), looks.get("acked_bytes") or ()
    known = [(start_s, 0), *((t, n) for t, n in zip(times, acked, strict=True) if t > start_s)]
    edges = [second * SERIES_S for second in range(math.floor(end_s / SERIES_S) + 1)]
    values = [_at(known, edge) for edge in edges]
    return [round(8 * (b - a) / SERIES_S / 1e6, 4) for a, b in itertools.pairwise(values)]


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


# --- links


def _link(shared: Network, link: Link, way: str, seen: Facts, elapsed_s: float) -> dict[str, Any]:
    direction, changes = link.direction(way), shared.changes(link, way, elapsed_s)
    queues: Sequence[Mapping[str, Any]] = seen["qdiscs"]
    # If nothing is delayed, limited or lost, there is no queue, and the kernel counts nothing.
    root = queue_counts.root(queues)
    looks = seen["looks"]
    standing = looks.get("queue_bytes") or ()
    has_queue = direction.rate_mbps is not None
    return {
        "link": link.name,
        "direction": way,
        "rate_mbps": _mean_rate_mbps(direction, changes, elapsed_s),
        "out_bytes": root.get("bytes"),
        "out_packets": root.get("packets"),
        "dropped_packets": root.get("drops"),
        "marked_packets": queue_counts.marked(queues, seen["hop"]) if has_queue else None,
        "queue_mean_bytes": _rounded(sum(standing) / len(standing), 1) if standing else None,
        "queue_peak_bytes": max(standing, default=None),
        # If the delay changes, it is not known which part of a packet's time was the queue's.
        "queue_delay_ms": queue_counts.less(seen["delays_ms"], direction.delay_ms)
        if has_queue and not any(one.direction.delay_ms != one.before.delay_ms for one in changes)
        else None,
        "queue_delay_packets": seen["delays"],
        "watched_one_in": seen["watched_one_in"],
        "out_series_mbps": _rates(looks),
        **({} if seen["hop"] is None else {"impaired": seen["hop"]}),
        **({} if seen["trips"] is None else {"round_trips": round_trips.of_flows(shared, seen["trips"])}),
    }


def _mean_rate_mbps(direction: Direction, changes: Sequence[Change], elapsed_s: float) -> float | None:
    """Return the rate of a direction, or its mean over the trial if it changes."""
    if not any(one.direction.rate_mbps != one.before.rate_mbps for one in changes) or elapsed_s <= 0:
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


def _metrics(trial: Trial, flows: Sequence[Facts], links: Sequence[Facts], facts: Facts) -> dict[str, Any]:
    """Return the metrics of all judged flows together, as those of a single transfer."""
    judged = [flow for flow in flows if flow["judged"]]
    ends = [flow["end_s"] for flow in judged]
    total = sum(flow["bytes"] or 0 for flow in judged)
    first = min(flow["start_s"] for flow in judged)
    lasted_s = (facts["elapsed_s"] if None in ends else max(ends)) - first
    goodput = 8 * total / lasted_s / 1e6 if lasted_s > 0 else 0.0
    rtts = [flow["min_rtt_ms"] for flow in judged if flow["min_rtt_ms"]]
    shared = trial.setting.network
    slowest = shared.bottleneck(shared.tested) if shared else None
    queue: Facts = next(
        (one for one in links if slowest and (one["link"], one["direction"]) == (slowest[0].name, slowest[1])), {}
    )
    return {
        "bytes": total,
        "completion_s": _rounded(lasted_s),
        "goodput_mbps": _rounded(goodput),
        "utilization": _rounded(goodput / trial.setting.cell.bandwidth_mbps),
        "min_rtt_ms": min(rtts, default=None),
        "queue_mean_bytes": queue.get("queue_mean_bytes"),
        "queue_peak_bytes": queue.get("queue_peak_bytes"),
        "virtual_s": facts["virtual_s"],
    }


def _quantiles(values: Sequence[float]) -> dict[str, float] | None:
    """Return quantiles and the mean of sorted values; None if there are none."""
    if not values:
        return None
    found = {f"p{percent}": values[min(percent * len(values) // 100, len(values) - 1)] for percent in (50, 95, 99)}
    return {**found, "mean": round(sum(values) / len(values), 4)}


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(value, digits)

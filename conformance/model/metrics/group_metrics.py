"""Compute metrics of flows and of their bottleneck: pure functions of a measurement and a group.

A group is a name, or None for all judged flows. A value that was not seen is None, never zero.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from conformance.model.networks.flow_group import Flows
from conformance.model.networks.links import Link
from conformance.model.networks.network import Network
from conformance.model.networks.schedule import Occasion, carried_bytes
from conformance.model.networks.setting import Setting

Facts = Mapping[str, Any]
#: round trips of the empty path within which drops belong to one loss event: a packet may stand in the queue for one of
#: them, and a sender learns of a drop one round trip later
_LOSS_EVENT_RTTS = 3
#: flows have converged when each stays this near its share, for so many seconds (RFC 9743 leaves both open)
NEAR_SHARE, STEADY_S = 0.2, 5
#: bytes of IP and TCP headers before a segment's data, and those that timestamps add
_HEADERS_BYTES, _TIMESTAMPS_BYTES = 40, 12
_TIMESTAMPS = "net.ipv4.tcp_timestamps"


class Measured(Protocol):
    """The part of a Measurement (model/trials/trial.py) that functions of metrics read."""

    @property
    def setting(self) -> Setting: ...

    @property
    def flows(self) -> Sequence[Facts]: ...

    @property
    def links(self) -> Sequence[Facts]: ...


#: the function of a metric: its value in a measurement, for a group
OfGroup = Callable[[Measured, str | None], float | None]


def _group_of(network: Network, group: str | None) -> Flows:
    return network.tested if group is None else next(each for each in network.flows if each.name == group)


def _rtt_s(measured: Measured, group: str | None) -> float:
    """Return the round-trip time of a group's empty path."""
    network = measured.setting.network
    return network.rtt_s(_group_of(network, group))


def flows_of(measured: Measured, group: str | None) -> list[Facts]:
    """Return the flows of a group; with None, all that are judged."""
    return [flow for flow in measured.flows if (flow["judged"] if group is None else flow["group"] == group)]


def _all(flows: Sequence[Facts], name: str) -> list[float] | None:
    """Return a value of each flow; None if there are no flows, or if one lacks it."""
    values: list[Any] = [flow.get(name) for flow in flows]
    return values if values and None not in values else None


def utilization(measured: Measured, group: str | None) -> float | None:
    """Return the flows' goodput over their bottleneck's rate; an upper bound if one recorded in detail timed out."""
    parts = _all(flows_of(measured, group), "utilization")
    return None if parts is None else round(math.fsum(parts), 12)  # their parts add up to what it was


def lost_pct(measured: Measured, group: str | None) -> float | None:
    """Return the loss in percent by the interfaces' own counters, which is known whatever the stack says of itself."""
    flows = flows_of(measured, group)
    left, arrived = _all(flows, "left_bytes"), _all(flows, "arrived_bytes")
    return 100 * (1 - sum(arrived) / sum(left)) if left and arrived and sum(left) else None


def transfer_rtts(measured: Measured, group: str | None) -> float | None:
    """Return the time from the end of the handshake to the last byte, in round trips of the empty path: the mean.

    None if that time is not known, or if the path has no delay.
    """
    flows = flows_of(measured, group)
    completions, handshakes = _all(flows, "completion_s"), _all(flows, "handshake_s")
    rtt_s = _rtt_s(measured, group)
    if completions is None or handshakes is None or not rtt_s:
        return None
    return math.fsum(took - shook for took, shook in zip(completions, handshakes, strict=True)) / rtt_s / len(flows)


def back_to_back_packets(measured: Measured, group: str | None) -> float | None:
    """Return the flows' greatest value: 99 % of each one's packets left in bursts no longer than that."""
    bursts = _all(flows_of(measured, group), "back_to_back_packets")
    return None if bursts is None else max(bursts)


def goodput_mbps(measured: Measured, group: str | None) -> float | None:
    """Return the sum of the flows' goodputs, each over its own time."""
    goodputs = _all(flows_of(measured, group), "goodput_mbps")
    return None if goodputs is None else math.fsum(goodputs)


def flow_goodput_mbps(measured: Measured, group: str | None) -> float | None:
    """Return the mean of the flows' goodputs, each over its own time."""
    goodputs = _all(flows_of(measured, group), "goodput_mbps")
    return None if goodputs is None else math.fsum(goodputs) / len(goodputs)


def link_utilization(measured: Measured, group: str | None) -> float | None:
    """Return a group's bytes from the first start to the last end, over what its bottleneck carries in that time."""
    flows = flows_of(measured, group)
    sizes, ends = _all(flows, "bytes"), _all(flows, "end_s")
    network = measured.setting.network
    if sizes is None or ends is None:
        return None
    start_s, end_s = min(flow["start_s"] for flow in flows), max(ends)
    if end_s <= start_s:
        return None
    rate_mbps = _mean_bound_mbps(network, _group_of(network, group), start_s, end_s)
    return 8 * math.fsum(sizes) / (end_s - start_s) / 1e6 / rate_mbps if rate_mbps else None


def _mean_bound_mbps(network: Network, group: Flows, start_s: float, end_s: float) -> float | None:
    """Return the mean rate that a group's route carries from one time to another, by its schedule.

    None if nothing limits it, or if it is not known: a rate waits for a state of a flow, or a bonded link's rate
    changes.
    """
    way_to_client = network.towards_client(group)
    rate_entries = [
        entry
        for entry in network.schedule
        if entry.trace is not None or "rate_mbps" in dict(entry.set)
        if any(entry.on(link.name, way) for link, way in way_to_client)
    ]
    if not rate_entries:
        return network.bound_mbps(group)
    if network.is_bonded(group) or any(isinstance(entry.at_s, Occasion) for entry in rate_entries):
        return None
    limits = [
        (link.direction(way), network.changes(link, way, end_s))
        for link, way in way_to_client
        if link.direction(way).rate_mbps is not None
    ]
    at_s = {change.at_ns / 1e9 for _, changes in limits for change in changes}
    times = sorted({start_s, end_s, *(at for at in at_s if start_s < at < end_s)})
    carried = math.fsum(
        min(carried_bytes(direction, changes, a, b) for direction, changes in limits)
        for a, b in itertools.pairwise(times)
    )
    return 8 * carried / (end_s - start_s) / 1e6


def latency_mean_ms(measured: Measured, group: str | None) -> float | None:
    """Return the mean round trip of data packets: that of the empty path plus the mean delay of the queue."""
    delays = (bottleneck(measured, group) or {}).get("queue_delay_ms")
    if delays is None:
        return None
    latency_ms: float = 1000 * _rtt_s(measured, group) + delays["mean"]
    return latency_ms


def share(measured: Measured, group: str | None) -> float | None:
    """Return a group's share in the sum of all flows' goodputs."""
    goodput = goodput_mbps(measured, group)
    total = _all(measured.flows, "goodput_mbps")
    return goodput / math.fsum(total) if goodput is not None and total and math.fsum(total) else None


def jain_index(measured: Measured, group: str | None) -> float | None:
    """Return Jain's index of the flows' goodputs: 1 if all are equal, 1/n if one has all."""
    goodputs = _all(flows_of(measured, group), "goodput_mbps")
    return None if goodputs is None else jain(goodputs)


def jain(values: Sequence[float]) -> float | None:
    """Return (sum x)^2 / (n sum x^2); None if all are zero."""
    squares = math.fsum(x * x for x in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else None


def completion_s(percent: int) -> OfGroup:
    """Return the function for a percentile of the flows' completion times; None if that flow did not complete."""

    def of(measured: Measured, group: str | None) -> float | None:
        times = [flow["completion_s"] for flow in flows_of(measured, group)]
        in_order = sorted(math.inf if time is None else time for time in times)
        if not in_order:
            return None
        percentile_s = in_order[max(math.ceil(percent / 100 * len(in_order)) - 1, 0)]
        return percentile_s if math.isfinite(percentile_s) else None

    return of


def queue_delay_ms(quantile: str) -> OfGroup:
    """Return the function for a quantile of the time that packets stood in the queue of a group's bottleneck."""

    def of(measured: Measured, group: str | None) -> float | None:
        delays = (bottleneck(measured, group) or {}).get("queue_delay_ms")
        return None if delays is None else delays[quantile]

    return of


def bottleneck(measured: Measured, group: str | None) -> Facts | None:
    """Return the record of the link that limits a group; None if nothing does."""
    network = measured.setting.network
    limit = network.bottleneck(_group_of(network, group))
    return None if limit is None else _record(measured, *limit)


def queue_mean_bdp(measured: Measured, group: str | None) -> float | None:
    """Return the bottleneck's mean queue over the path's BDP; None if it was not sampled, or the path has no delay."""
    network = measured.setting.network
    mean_bytes = (bottleneck(measured, group) or {}).get("queue_mean_bytes")
    bdp_bytes = _rtt_s(measured, group) * (network.rate_mbps(_group_of(network, group)) or 0) * 1e6 / 8
    return None if mean_bytes is None or not bdp_bytes else mean_bytes / bdp_bytes


def loss_events_per_min(measured: Measured, group: str | None) -> float | None:
    """Return how many loss events there were a minute, from the second to the last: the first one is slow start's.

    Fewer than five events do not show a rhythm, so those after the first are then counted over the whole transfer. None
    if the queue was not sampled, or if a proxy splits the transfer into two.
    """
    completions = _all(flows_of(measured, group), "completion_s")
    looks = (bottleneck(measured, group) or {}).get("queue_drops")
    network = measured.setting.network
    if not looks or not completions or not max(completions) or network.splitters_of(_group_of(network, group)):
        return None
    starts_s = _loss_events_s(looks, _rtt_s(measured, group))
    if len(starts_s) < 5:
        return 60 * max(0, len(starts_s) - 1) / max(completions)
    return 60 * (len(starts_s) - 2) / (starts_s[-1] - starts_s[1])


def _loss_events_s(looks: Sequence[Sequence[float]], rtt_s: float) -> list[float]:
    """Return when loss events began, from samples of the queue: [time in s, packets that it has dropped so far].

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


def limited(measured: Measured, group: str | None) -> list[Facts]:
    """Return the records of all links that could limit a group, in order from the sender."""
    network = measured.setting.network
    ways = network.towards_client(_group_of(network, group))
    records = [_record(measured, link, way) for link, way in ways if link.direction(way).rate_mbps]
    return [record for record in records if record is not None]


def _record(measured: Measured, link: Link, way: str) -> Facts | None:
    name = (link.name, way)
    return next((record for record in measured.links if (record["link"], record["direction"]) == name), None)


def retransmitted_pct(measured: Measured, group: str | None) -> float | None:
    """Return the percentage of the sent bytes that were retransmissions; it is known of the kernel's TCP only."""
    flows = flows_of(measured, group)
    sent, again = _all(flows, "sent_bytes"), _all(flows, "retransmitted_bytes")
    return 100 * math.fsum(again) / math.fsum(sent) if sent and again and math.fsum(sent) else None


def overhead_pct(measured: Measured, group: str | None) -> float | None:
    """Return IP bytes sent over bytes acknowledged, less 1, in percent: headers and retransmissions.

    It is known of the kernel's TCP only.
    """
    flows = flows_of(measured, group)
    sent, segments, used = (_all(flows, name) for name in ("sent_bytes", "out_segments", "bytes"))
    if not sent or not segments or not used or not math.fsum(used):
        return None
    stamped = dict(measured.setting.sysctls).get(_TIMESTAMPS, "1") != "0"
    headers = _HEADERS_BYTES + (_TIMESTAMPS_BYTES if stamped else 0)
    return 100 * ((math.fsum(sent) + headers * math.fsum(segments)) / math.fsum(used) - 1)


def rtt_ms(quantile: str) -> OfGroup:
    """Return the function for a quantile of each flow's smoothed round-trip time: the mean over the flows."""

    def of(measured: Measured, group: str | None) -> float | None:
        rtts = [flow["rtt_ms"] for flow in flows_of(measured, group)]
        return None if not rtts or None in rtts else math.fsum(rtt[quantile] for rtt in rtts) / len(rtts)

    return of


def marked_pct(measured: Measured, group: str | None) -> float | None:
    """Return the percentage of the packets through a group's bottleneck that were marked there (ECN CE)."""
    link = bottleneck(measured, group)
    if not link or link["marked_packets"] is None or not link["out_packets"]:
        return None
    percent: float = 100 * link["marked_packets"] / link["out_packets"]
    return percent


def dropped_pct(measured: Measured, group: str | None) -> float | None:
    """Return the percentage of packets that the queue of a group's bottleneck dropped, of all that came to it."""
    link = bottleneck(measured, group)
    if not link or link["dropped_packets"] is None or not link["out_packets"]:
        return None
    dropped: float = link["dropped_packets"]
    out: float = link["out_packets"]
    return 100 * dropped / (out + dropped)


def unequal_pct(measured: Measured, group: str | None) -> float | None:
    """Return the goodput that flows have beyond equal shares, in percent of all: the mean of seconds in which all run.

    This much would have to move from some flows to others. It is known whether or not flows converge. The sooner they
    converge, and the steadier they are then, the less it is.
    """
    seconds = [goodputs for goodputs in _side_by_side(flows_of(measured, group)) if math.fsum(goodputs)]
    if not seconds or len(seconds[0]) <= 1:
        return None
    beyond = [math.fsum(max(x / math.fsum(goodputs) - 1 / len(goodputs), 0) for x in goodputs) for goodputs in seconds]
    return 100 * math.fsum(beyond) / len(beyond)


def others_mbps(measured: Measured) -> float | None:
    """Return the goodput of all flows together that are not judged: the mean of the seconds in which all run."""
    flows = flows_of(measured, None)
    return _beside_mbps(flows, [flow for flow in measured.flows if flow not in flows])


def _beside_mbps(flows: Sequence[Facts], others: Sequence[Facts]) -> float | None:
    """Return the goodput of other flows together: the mean of the seconds in which they and `flows` all run."""
    seconds = _side_by_side([*flows, *others])
    if not flows or not others or not seconds:
        return None
    return math.fsum(math.fsum(goodputs[len(flows) :]) for goodputs in seconds) / len(seconds)


def below_equal_pct(measured: Measured, group: str | None) -> float | None:
    """Return how much less than an equal share of the bottleneck's rate other flows over it have, in percent.

    It is about the seconds in which all run, and 0 if they have more. Headers alone take 5 % of the rate.
    """
    network = measured.setting.network
    limit = network.bottleneck(_group_of(network, group))
    link = None if limit is None else _record(measured, *limit)
    if link is None or not link["rate_mbps"]:
        return None
    over = {each.name for each in network.flows if limit in network.towards_client(each)}
    flows = flows_of(measured, group)
    others = [flow for flow in measured.flows if flow not in flows and flow["group"] in over]
    theirs_mbps = _beside_mbps(flows, others)
    if theirs_mbps is None:
        return None
    equal: float = link["rate_mbps"] * len(others) / (len(flows) + len(others))
    return 100 * (harm(equal, theirs_mbps) or 0.0)


def harm_pct(measured: Measured, own_kind_mbps: float) -> float | None:
    """Return the percentage of `own_kind_mbps` that other flows lose while all run.

    `own_kind_mbps` is what they have beside their own kind: RFC 9743 asks for this comparison (section 5.2).
    """
    theirs_mbps = others_mbps(measured)
    return None if theirs_mbps is None or not own_kind_mbps else 100 * (harm(own_kind_mbps, theirs_mbps) or 0.0)


def _side_by_side(flows: Sequence[Facts]) -> list[list[float]]:
    """Return the goodputs of flows in each second from when all have started until the first ends."""
    if not flows:
        return []
    series = [flow["goodput_series_mbps"] for flow in flows]
    first, end = math.ceil(max(flow["start_s"] for flow in flows)), min(map(len, series))
    return [[goodputs[second] for goodputs in series] for second in range(first, end)]


def convergence_s(measured: Measured, group: str | None) -> float | None:
    """Return how long after the last start each flow stays near its share for STEADY_S; None if it never does."""
    flows = flows_of(measured, group)
    if len(flows) <= 1:
        return None
    last_start_s: float = max(flow["start_s"] for flow in flows)
    first = math.ceil(last_start_s)
    near = [_all_near(goodputs) for goodputs in _side_by_side(flows)]
    for at in range(len(near) - STEADY_S + 1):
        if all(near[at : at + STEADY_S]):
            return first + at - last_start_s
    return None


def _all_near(goodputs: Sequence[float]) -> bool:
    fair = math.fsum(goodputs) / len(goodputs)
    return fair > 0 and all(abs(goodput - fair) <= NEAR_SHARE * fair for goodput in goodputs)


def harm(alone: float, beside: float) -> float | None:
    """Return the share of its value that a flow loses beside another: 0 for none, 1 for all, never less than 0.

    `alone`: what it had beside as many of its own kind (RFC 9743, section 5.2; Ware et al., HotNets 2019: harm).
    """
    return max(0.0, (alone - beside) / alone) if alone else None

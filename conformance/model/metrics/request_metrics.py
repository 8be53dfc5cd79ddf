"""Compute metrics of requests: pure functions of a measurement and a group, as in group_metrics.py.

They are of flows whose client asks for a sequence of bodies; None if there are no requests, or one did not complete.

Metrics of downloads are as vendors of stacks report them: goodput without handshake, round trips of packets.
"""

import math
import operator

from conformance.model.metrics.group_metrics import Facts, Measured, OfGroup, bottleneck, flows_of
from conformance.model.metrics.metric import Metric


def _took_s(request: Facts) -> float:
    """Return the time from a request to the last byte of its body; infinite if that never came."""
    end_s = request["end_s"]
    return math.inf if end_s is None else end_s - request["start_s"]


def _of_flows(measured: Measured, group: str | None) -> list[list[Facts]] | None:
    """Return the requests of each flow; None if a flow has none, or if they were not seen."""
    requests = [flow.get("requests") or [] for flow in flows_of(measured, group)]
    return requests if requests and all(requests) else None


def request_s(percent: int) -> OfGroup:
    """Return the function for a percentile of the times that requests of a group's flows took."""

    def of(measured: Measured, group: str | None) -> float | None:
        by_flow = _of_flows(measured, group)
        times = sorted(_took_s(request) for requests in by_flow or () for request in requests)
        if not times:
            return None
        percentile_s = times[max(math.ceil(percent / 100 * len(times)) - 1, 0)]
        return percentile_s if math.isfinite(percentile_s) else None

    return of


def last_request_s(measured: Measured, group: str | None) -> float | None:
    """Return how long the last request of each flow took: the mean over the flows."""
    by_flow = _of_flows(measured, group)
    return _mean([_took_s(requests[-1]) for requests in by_flow or ()])


def bulk_goodput_mbps(measured: Measured, group: str | None) -> float | None:
    """Return the goodput of each flow's largest body, from its request on: the mean over the flows.

    If several bodies are the largest, the last one counts.
    """
    by_flow = _of_flows(measured, group)
    size = operator.itemgetter("bytes", "start_s")
    return _mean([_goodput_mbps(max(requests, key=size)) for requests in by_flow or ()])


def _goodput_mbps(request: Facts) -> float:
    took_s = _took_s(request)
    return 8 * request["bytes"] / took_s / 1e6 if 0 < took_s < math.inf else math.inf


def _mean(values: list[float]) -> float | None:
    total = math.fsum(values)
    return total / len(values) if values and math.isfinite(total) else None


def round_trip_ms(which: str) -> OfGroup:
    """Return the function for round trips of data packets, seen before a group's bottleneck: the mean over its flows.

    `which`: "mean", "least" or "most" of a flow's packets. The value is None if one of the flows lacks it.
    """

    def of(measured: Measured, group: str | None) -> float | None:
        trips = (bottleneck(measured, group) or {}).get("round_trips") or ()
        by_flow = {(trip["group"], trip["index"]): trip[f"{which}_ms"] for trip in trips}
        of_flows = [by_flow.get((flow["group"], flow["index"])) for flow in flows_of(measured, group)]
        there = [mean_ms for mean_ms in of_flows if mean_ms is not None]
        return math.fsum(there) / len(there) if there and len(there) == len(of_flows) else None

    return of


def sent_goodput_mbps(measured: Measured, group: str | None) -> float | None:
    """Return the mean of the flows' goodputs, each from the flow's first byte to the acknowledgement of its last.

    So the handshake does not count. None if a flow has not ended, or if its handshake was not seen.
    """
    flows = flows_of(measured, group)
    values = [[flow[name] for name in ("bytes", "completion_s", "handshake_s")] for flow in flows]
    if not values or any(None in of_flow for of_flow in values):
        return None
    each = [(size, took_s - handshake_s) for size, took_s, handshake_s in values]
    if any(lasted_s <= 0 for _, lasted_s in each):
        return None
    return math.fsum(8 * size / lasted_s / 1e6 for size, lasted_s in each) / len(each)


#: rows of the table of metrics (metrics.py)
ROWS: tuple[Metric, ...] = (
    Metric(
        "sent_goodput_mbps", "goodput from the first byte",
        "Mean goodput of a group's flows, each from its first byte to its last acknowledgement", sent_goodput_mbps,
        unit="Mbit/s", digits=2, margin=0.1, full_scale=100.0,
        missing="its flows did not complete, or their handshakes were not seen",
    ),
    *(
        Metric(
            f"round_trip_{which}_ms", f"{which} round trip",
            f"Round trip of data packets, seen before the bottleneck's queue: {which} of each flow, mean over flows",
            round_trip_ms(which), unit="ms", digits=2, margin=0.5, full_scale=200.0,
            missing="its scenario, or its transport, does not show round trips",
        )
        for which in ("mean", "least", "most")
    ),
)  # fmt: skip

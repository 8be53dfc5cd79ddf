"""Compute metrics of requests: pure functions of a measurement and a group, as in group_metrics.py.

They are of flows whose client asks for a sequence of bodies; None if there are no requests, or one did not complete.
"""

import math

from conformance.model.metrics.group_metrics import Measured, OfGroup, Record, flows_of


def _took_s(request: Record) -> float:
    """Return the time from a request to the last byte of its body; infinite if that never came."""
    end_s = request["end_s"]
    return math.inf if end_s is None else end_s - request["start_s"]


def _of_flows(measured: Measured, group: str | None) -> list[list[Record]] | None:
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
    return _mean([_goodput_mbps(max(requests, key=_size)) for requests in by_flow or ()])


def _size(request: Record) -> tuple[int, float]:
    return request["bytes"], request["start_s"]


def _goodput_mbps(request: Record) -> float:
    took_s = _took_s(request)
    return 8 * request["bytes"] / took_s / 1e6 if 0 < took_s < math.inf else math.inf


def _mean(values: list[float]) -> float | None:
    total = math.fsum(values)
    return total / len(values) if values and math.isfinite(total) else None

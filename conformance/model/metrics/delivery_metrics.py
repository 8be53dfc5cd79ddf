"""Compute metrics of a stream's delivery (delivery.py), of the whole trial or of one of its phases."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.metrics.group_metrics import Measured, OfGroup, flows_of
from conformance.model.metrics.metric import Metric

#: names of the metrics that are known for single phases, too
NAMES = ("delivered_mbps", "byte_delay_p50_ms", "byte_delay_p95_ms", "delivery_gap_s")
MISSING = "its scenario, or its transport, does not show when bytes arrive"


def of(name: str) -> OfGroup:
    """Return the function for a value of the whole delivery of a group's first flow."""

    def found(measured: Measured, group: str | None) -> float | None:
        flows = flows_of(measured, group)
        delivery = flows[0].get("delivery") if flows else None
        value: float | None = delivery["whole"][name] if delivery else None
        return value

    return found


def in_phase(flows: Sequence[Mapping[str, Any]], phase: int) -> tuple[Mapping[str, Any], ...] | None:
    """Return the flows with the delivery of one phase, by its number, as the whole; None if there is no such phase."""
    shown = [flow for flow in flows if "delivery" in flow]
    if not shown or any(phase >= len(flow["delivery"]["phases"]) for flow in shown):
        return None
    return tuple(
        {**flow, "delivery": {**flow["delivery"], "whole": flow["delivery"]["phases"][phase]}}
        if "delivery" in flow
        else flow
        for flow in flows
    )


#: rows of the table of metrics (metrics.py)
ROWS: tuple[Metric, ...] = (
    Metric(
        "delivered_mbps", "delivered", "Rate at which bytes of the stream reach the receiver in order", of("mbps"),
        unit="Mbit/s", digits=2, margin=0.5, full_scale=50.0, missing=MISSING,
    ),
    *(
        Metric(
            f"byte_delay_{quantile}_ms", f"byte delay {quantile}",
            f"Time from when a byte is first sent until it has arrived in order, {quantile} of bytes",
            of(f"delay_{quantile}_ms"), unit="ms", digits=1, margin=5.0, full_scale=400.0, missing=MISSING,
        )
        for quantile in ("p50", "p95")
    ),
    Metric(
        "delivery_gap_s", "longest gap", "Longest time without a new byte at the receiver", of("gap_s"), unit="s",
        digits=2, margin=0.5, full_scale=20.0, missing=MISSING,
    ),
)  # fmt: skip

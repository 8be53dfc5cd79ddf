"""List the metrics that zones may be about: one row of METRICS says all that the suite knows of a metric.

A new metric needs its row here and a zone file that names it. It is then judged, derived, drawn, exported and gated.
Nothing else knows metrics by name, except reports about one metric alone.
"""

import functools
from collections.abc import Mapping

from conformance.model.errors import UserError
from conformance.model.metrics import delivery_metrics, group_metrics, recovery_metrics, request_metrics
from conformance.model.metrics.metric import Metric, Timeout

_share = functools.partial(Metric, unit="%", most=100.0)


UTILIZATION = Metric(
    "utilization", "utilization", "Utilization: goodput over bandwidth",
    group_metrics.utilization, column="utilization", digits=2, most=1.0, margin=0.0005, full_scale=1.0,
    timeout=Timeout.UPPER_BOUND,
)  # fmt: skip
#: margin: one lost burst of a short transfer
LOST_PCT = Metric(
    "lost_pct", "lost", "Lost: share of the sender's bytes that never arrived, %",
    group_metrics.lost_pct, noun="loss", column="lost", unit="%", most=100.0, margin=0.3, full_scale=8.0,
)  # fmt: skip
#: margin: one more packet, if two acknowledgements come together
BACK_TO_BACK = Metric(
    "back_to_back_packets", "sent at once",
    "Packets sent back to back: 99 % of them left in bursts no longer than this",
    group_metrics.back_to_back_packets, noun="burst", column="at_once", unit="packets", least=1.0, margin=1.0,
    only_above=True, full_scale=20.0,
)  # fmt: skip
#: {name: Metric}, in the order of reports; every report shows the first two, and others only if a zone judges them
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        UTILIZATION,
        LOST_PCT,
        Metric(  # margin: a queue that is nearly empty may hold one packet or two
            "queue_mean_bdp", "mean queue", "Mean queue at the bottleneck, in bandwidth-delay products",
            group_metrics.queue_mean_bdp, column="queue", unit="BDP", digits=2, margin=0.02, full_scale=1.0,
        ),
        Metric(  # margin: pacing spreads a window over part of a round trip
            "transfer_rtts", "transfer", "Length of the transfer, in round trips",
            group_metrics.transfer_rtts, noun="length", column="transfer", unit="round trips", margin=0.3,
            full_scale=10.0, missing="its client does not say when the handshake ended",
        ),
        BACK_TO_BACK,
        Metric(  # margin: one sample of the trace more or less, in a minute
            "loss_events_per_min", "loss events",
            "Loss events a minute: how often the bottleneck's queue overflows after slow start",
            group_metrics.loss_events_per_min, noun="rate of loss events", column="loss_events", unit="a minute",
            margin=0.3, full_scale=30.0,
        ),
        Metric(
            "group_goodput_mbps", "goodput", "Goodput of all flows of a group together", group_metrics.goodput_mbps,
            unit="Mbit/s", digits=2, margin=0.1, full_scale=100.0,
        ),
        Metric(
            "flow_goodput_mbps", "goodput of a flow", "Mean goodput of a group's flows, each over its own time",
            group_metrics.flow_goodput_mbps, unit="Mbit/s", digits=2, margin=0.1, full_scale=100.0,
        ),
        Metric(
            "link_utilization", "link utilization",
            "Bytes of a group's flows over what their bottleneck can carry from the first start to the last end",
            group_metrics.link_utilization, digits=3, most=1.0, margin=0.005, full_scale=1.0,
        ),
        Metric(
            "share", "share", "Share of a group in the goodput of all flows", group_metrics.share, digits=3, most=1.0,
            margin=0.01, full_scale=1.0,
        ),
        Metric(
            "jain_index", "Jain's index", "Jain's index of the goodputs of a group's flows", group_metrics.jain_index,
            digits=3, most=1.0, margin=0.01, full_scale=1.0, only_below=True,
        ),
        *(
            Metric(
                f"fct_p{percent}_s", f"completion p{percent}",
                f"Completion time of a group's flows, percentile {percent}", group_metrics.completion_s(percent),
                unit="s", digits=2, margin=0.05, full_scale=100.0, missing="its flows did not complete",
            )
            for percent in (50, 95, 99)
        ),
        *(
            Metric(
                f"queue_delay_{quantile}_ms", f"queue delay {quantile}",
                f"How long packets waited in the bottleneck's queue, {quantile}",
                group_metrics.queue_delay_ms(quantile), unit="ms", digits=2, margin=0.5, full_scale=100.0,
            )
            for quantile in ("p50", "p95", "p99")
        ),
        Metric(
            "retransmitted_pct", "retransmitted", "Share of the bytes sent that were retransmissions, %",
            group_metrics.retransmitted_pct, unit="%", digits=2, most=100.0, margin=0.2, full_scale=10.0,
            missing="only the kernel's TCP says what it retransmits",
        ),
        *(
            Metric(
                f"rtt_{quantile}_ms", f"smoothed RTT {quantile}",
                f"Smoothed round-trip time of the senders, {quantile}", group_metrics.rtt_ms(quantile), unit="ms",
                digits=1, margin=0.5, full_scale=200.0, missing="only the kernel's TCP says what it measures",
            )
            for quantile in ("mean", "p95")
        ),
        Metric(
            "latency_mean_ms", "latency",
            "Round-trip time of the empty path plus the mean time in the bottleneck's queue",
            group_metrics.latency_mean_ms, unit="ms", digits=2, margin=0.5, full_scale=200.0,
        ),
        *request_metrics.ROWS,
        Metric(
            "overhead_pct", "overhead", "IP bytes sent beyond those acknowledged, %", group_metrics.overhead_pct,
            unit="%", digits=2, margin=0.2, full_scale=20.0, missing="only the kernel's TCP says what it sends",
        ),
        _share(
            "marked_pct", "marked", "Share of the bottleneck's packets that it marked (ECN CE), %",
            group_metrics.marked_pct, digits=2, margin=0.2, full_scale=10.0,
        ),
        _share(
            "dropped_pct", "dropped", "Share of the packets that the bottleneck's queue dropped, %",
            group_metrics.dropped_pct, digits=2, margin=0.1, full_scale=10.0,
        ),
        _share(
            "unequal_pct", "unequal",
            "Goodput beyond equal shares, second by second while all flows run, % of all goodput",
            group_metrics.unequal_pct, margin=1.0, full_scale=50.0, only_above=True,
        ),
        _share(
            "below_equal_pct", "below an equal share",
            "How far others are below an equal share of the bottleneck's rate while all run, %",
            group_metrics.below_equal_pct, margin=5.0, full_scale=100.0, only_above=True,
        ),
        _share(
            "harm_pct", "harm", "Harm: how much less others get while all run than beside their own kind, %",
            lambda measured, group: None, margin=5.0, full_scale=100.0, only_above=True,
            missing="no zone says what the others have beside their own kind", against=group_metrics.harm_pct,
        ),
        *(
            Metric(
                f"request_p{percent}_s", f"request p{percent}",
                f"Time from a request to the end of its body, percentile {percent}", request_metrics.request_s(percent),
                unit="s", digits=3, margin=0.01, full_scale=10.0, missing="its requests did not complete",
            )
            for percent in (50, 95)
        ),
        Metric(
            "last_request_s", "last request", "Time from a flow's last request to the end of its body, mean over flows",
            request_metrics.last_request_s, unit="s", digits=2, margin=0.05, full_scale=100.0,
            missing="its last request did not complete",
        ),
        Metric(
            "bulk_goodput_mbps", "bulk goodput",
            "Goodput of a flow's largest body from the request on, mean over flows", request_metrics.bulk_goodput_mbps,
            unit="Mbit/s", digits=2, margin=0.1, full_scale=100.0, missing="its largest body did not complete",
        ),
        *recovery_metrics.ROWS,
        *delivery_metrics.ROWS,
        recovery_metrics.MOVE_GAP,
        Metric(
            "convergence_s", "convergence", "Time from the last start until each flow stays near its share for 5 s",
            group_metrics.convergence_s, unit="s", margin=1.0, full_scale=30.0, missing="its flows did not converge",
        ),
    )
}  # fmt: skip


def named(name: str) -> Metric:
    """Return the metric of this name. Raises UserError that lists the known ones if there is none."""
    if name not in METRICS:
        raise UserError(f"{name!r} is not one of the metrics", f"choose one of {', '.join(METRICS)}")
    return METRICS[name]


def tabled() -> list[Metric]:
    """Return the metrics that tables of cells have columns for; the first two always, others where a zone judges."""
    return [metric for metric in METRICS.values() if metric.column]

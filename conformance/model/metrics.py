"""The metrics that zones may be about: one row of METRICS says all that the suite knows of a metric.

A new metric needs its row here and a zone file that names it. It is then judged, derived, drawn, exported and gated;
nothing else knows metrics by name, but for reports that say something of one metric alone.
"""

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from conformance.model import lone_metrics, shared_metrics
from conformance.model.errors import UserError

#: what a zone's margins are relative to a reference's least and most value, for every metric
RELATIVE_MARGIN = 0.10


class Measured(lone_metrics.Measured, Protocol):
    """What of a Measurement (model/trial.py) metrics are computed from: of a lone transfer, and of many flows."""

    @property
    def flows(self) -> Sequence[Mapping[str, Any]]: ...

    @property
    def links(self) -> Sequence[Mapping[str, Any]]: ...


class Timeout(enum.StrEnum):
    """What a metric's value means of a transfer that timed out."""

    #: the transfer would have had this value or a smaller one
    UPPER_BOUND = "upper_bound"
    #: the value is of a part of the transfer, and says nothing of the whole
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric.

    name: in zone files, exports and pytest's properties. title: what stands before a value; noun: what is least or
    most, such as "lowest loss"; heading: what it is, in one line. unit: follows a value, "" for a share.
    digits: behind the decimal point, for people. least, most: what a value may be; `most` None where there is no bound.
    margin: the absolute margin of zones, in the metric's unit. only_above: a smaller value than the references' is no
    fault; only_below: a greater one is none. full_scale, full_difference: the ends of the colours of
    values (from 0), and of differences (either sign). missing: why no trial of a stack may have a value, or None where
    that is a fault of the lab. column: what the names of its further columns in exports begin with.
    of: its value in a measurement, None where it was not seen. of_group: of flows that share a network, its value of
    one group, or with None of those that are judged, which then is `of`, too; None: a metric of a lone transfer.
    """

    name: str
    title: str
    noun: str
    heading: str
    unit: str = ""
    digits: int
    least: float = 0.0
    most: float | None = None
    margin: float
    only_above: bool = False
    only_below: bool = False
    full_scale: float
    full_difference: float
    timeout: Timeout = Timeout.UNKNOWN
    missing: str | None = None
    column: str
    of: Callable[[Measured], float | None]
    of_group: shared_metrics.OfGroup | None = None

    @property
    def suffix(self) -> str:
        """Return the unit as it follows a number."""
        return f" {self.unit}" if self.unit else ""

    @property
    def label(self) -> str:
        """Return the head of a table's column: title and unit."""
        return f"{self.title}, {self.unit}" if self.unit else self.title

    def text(self, value: float | None, more: int = 0, sign: str = "") -> str:
        """Return a value with its unit, `more` digits longer than usual; "none" where it is not known."""
        return "none" if value is None else f"{value:{sign}.{self.digits + more}f}{self.suffix}"

    def clamped(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval without what no value can be."""
        low = self.least if self.only_above else max(low, self.least)
        high = math.inf if self.only_below else high
        return low, high if self.most is None else min(high, self.most)


def _shared(
    name: str,
    title: str,
    heading: str,
    of: shared_metrics.OfGroup,
    *,
    digits: int = 1,
    margin: float,
    full_scale: float,
    unit: str = "",
    most: float | None = None,
    missing: str | None = None,
    only_above: bool = False,
    only_below: bool = False,
) -> Metric:
    """Return a metric of flows that share a network."""
    return Metric(
        name=name, title=title, noun=title, heading=heading, unit=unit, digits=digits, most=most, margin=margin,
        only_above=only_above, only_below=only_below, full_scale=full_scale, full_difference=full_scale / 3,
        missing=missing, column=name, of=lambda measured: of(measured, None), of_group=of,
    )  # fmt: skip


_share = functools.partial(_shared, unit="%", most=100.0)

UTILIZATION = Metric(
    name="utilization",
    title="utilization",
    noun="utilization",
    heading="Utilization: goodput over bandwidth",
    digits=2,
    most=1.0,
    margin=0.0005,
    full_scale=1.0,
    full_difference=0.3,
    timeout=Timeout.UPPER_BOUND,
    column="utilization",
    of=lambda measured: measured.metrics.get("utilization"),
)
LOST_PCT = Metric(
    name="lost_pct",
    title="lost",
    noun="loss",
    heading="Lost: share of the sender's bytes that never arrived, %",
    unit="%",
    digits=1,
    most=100.0,
    margin=0.3,  # one lost burst of a short transfer
    full_scale=8.0,
    full_difference=3.0,
    column="lost",
    of=lone_metrics.lost_pct,
)
BACK_TO_BACK = Metric(
    name="back_to_back_packets",
    title="at once",
    noun="burst",
    heading="Packets sent back to back: 99 % of them left in bursts no longer than this",
    unit="packets",
    digits=1,
    least=1.0,
    margin=1.0,  # one more packet for an acknowledgement that came with another
    only_above=True,
    full_scale=20.0,
    full_difference=10.0,
    column="at_once",
    of=lambda measured: measured.metrics.get("back_to_back_packets"),
)
#: {name: Metric}, in the order of reports; every report shows the first two, and others where a zone judges them
METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        UTILIZATION,
        LOST_PCT,
        Metric(
            name="queue_mean_bdp",
            title="mean queue",
            noun="mean queue",
            heading="Mean queue at the bottleneck, in bandwidth-delay products",
            unit="BDP",
            digits=2,
            margin=0.02,  # a queue that is nearly empty may hold one packet or two
            full_scale=1.0,
            full_difference=0.3,
            column="queue",
            of=lone_metrics.queue_mean_bdp,
        ),
        Metric(
            name="transfer_rtts",
            title="transfer",
            noun="length",
            heading="Length of the transfer, in round trips",
            unit="round trips",
            digits=1,
            margin=0.3,  # pacing spreads a window over part of a round trip
            full_scale=10.0,
            full_difference=3.0,
            missing="its client does not say when the handshake ended",
            column="transfer",
            of=lone_metrics.transfer_rtts,
        ),
        BACK_TO_BACK,
        _shared(
            "group_goodput_mbps",
            "goodput",
            "Goodput of all flows of a group together",
            shared_metrics.goodput_mbps,
            unit="Mbit/s",
            digits=2,
            margin=0.1,
            full_scale=100.0,
        ),
        _shared(
            "flow_goodput_mbps",
            "goodput of a flow",
            "Goodput of a group's flows, each over its own time, in the mean",
            shared_metrics.flow_goodput_mbps,
            unit="Mbit/s",
            digits=2,
            margin=0.1,
            full_scale=100.0,
        ),
        _shared(
            "link_utilization",
            "of the link",
            "Goodput of a group's flows together over the rate of their bottleneck",
            shared_metrics.link_utilization,
            digits=3,
            most=1.0,
            margin=0.005,
            full_scale=1.0,
        ),
        _shared(
            "share",
            "share",
            "Share of a group in the goodput of all flows",
            shared_metrics.share,
            digits=3,
            most=1.0,
            margin=0.01,
            full_scale=1.0,
        ),
        _shared(
            "jain_index",
            "Jain's index",
            "Jain's index of the goodputs of a group's flows",
            shared_metrics.jain_index,
            digits=3,
            most=1.0,
            margin=0.01,
            full_scale=1.0,
            only_below=True,
        ),
        *(
            _shared(
                f"fct_p{percent}_s",
                f"completion p{percent}",
                f"Completion time of a group's flows, percentile {percent}",
                shared_metrics.completion_s(percent),
                unit="s",
                digits=2,
                margin=0.05,
                full_scale=100.0,
                missing="its flows did not complete",
            )
            for percent in (50, 95, 99)
        ),
        *(
            _shared(
                f"queue_delay_{quantile}_ms",
                f"queue delay {quantile}",
                f"How long packets stood in the bottleneck's queue, quantile {quantile}",
                shared_metrics.queue_delay_ms(quantile),
                unit="ms",
                digits=2,
                margin=0.5,
                full_scale=100.0,
            )
            for quantile in ("p50", "p95", "p99")
        ),
        _shared(
            "retransmitted_pct",
            "retransmitted",
            "Share of the bytes sent that were sent again, %",
            shared_metrics.retransmitted_pct,
            unit="%",
            digits=2,
            most=100.0,
            margin=0.2,
            full_scale=10.0,
            missing="only the kernel's TCP says what it retransmits",
        ),
        *(
            _shared(
                f"rtt_{quantile}_ms",
                f"smoothed RTT {quantile}",
                f"Smoothed round-trip time of the senders, {quantile}",
                shared_metrics.rtt_ms(quantile),
                unit="ms",
                digits=1,
                margin=0.5,
                full_scale=200.0,
                missing="only the kernel's TCP says what it measures",
            )
            for quantile in ("mean", "p95")
        ),
        _shared(
            "latency_mean_ms",
            "latency",
            "Round trip of the empty path and the mean time in the bottleneck's queue",
            shared_metrics.latency_mean_ms,
            unit="ms",
            digits=2,
            margin=0.5,
            full_scale=200.0,
        ),
        _shared(
            "overhead_pct",
            "overhead",
            "IP bytes sent beyond those acknowledged, %",
            shared_metrics.overhead_pct,
            unit="%",
            digits=2,
            margin=0.2,
            full_scale=20.0,
            missing="only the kernel's TCP says what it sends",
        ),
        _share(
            "marked_pct",
            "marked",
            "Share of the bottleneck's packets that it marked (ECN CE), %",
            shared_metrics.marked_pct,
            digits=2,
            margin=0.2,
            full_scale=10.0,
        ),
        _share(
            "dropped_pct",
            "dropped",
            "Share of the packets that the bottleneck's queue dropped, %",
            shared_metrics.dropped_pct,
            digits=2,
            margin=0.1,
            full_scale=10.0,
        ),
        _share(
            "unequal_pct",
            "unequal",
            "Goodput beyond equal shares, second by second while all flows run, % of all goodput",
            shared_metrics.unequal_pct,
            margin=1.0,
            full_scale=50.0,
            only_above=True,
        ),
        _share(
            "harm_pct",
            "harm",
            "What others have less than an equal share of the bottleneck while all run, %",
            shared_metrics.harm_pct,
            margin=5.0,
            full_scale=100.0,
            only_above=True,
        ),
        _shared(
            "convergence_s",
            "convergence",
            "Time from the last start until each flow stays near its share for 5 s",
            shared_metrics.convergence_s,
            unit="s",
            margin=1.0,
            full_scale=30.0,
            missing="its flows did not converge",
        ),
    )
}


def named(name: str) -> Metric:
    """Return the metric of this name. Raises UserError naming those that there are."""
    if name not in METRICS:
        raise UserError(f"{name!r} is not one of the metrics", f"choose one of {', '.join(METRICS)}")
    return METRICS[name]


def lone() -> list[Metric]:
    """Return the metrics of a lone transfer."""
    return [metric for metric in METRICS.values() if not metric.of_group]


def others() -> list[Metric]:
    """Return the metrics of a lone transfer that reports show only where a zone judges them."""
    return [metric for metric in lone() if metric not in (UTILIZATION, LOST_PCT)]


def shared() -> dict[str, shared_metrics.OfGroup]:
    """Return {metric: its value of a group} of flows that share a network, in the order of reports."""
    return {name: metric.of_group for name, metric in METRICS.items() if metric.of_group is not None}

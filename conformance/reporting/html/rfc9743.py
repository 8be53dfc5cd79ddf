"""The criteria of RFC 9743 (Specifying New Congestion Control Algorithms, BCP 133), and what measurements say to them.

The RFC sets no thresholds: it asks a community to look. So nothing here is a verdict; each criterion gets figures where
our trials (one flow, or one beside a rival, at one bottleneck; a grid of bandwidth, delay and random loss) speak to it,
and otherwise the words "not measured". Titles are the RFC's; what a criterion asks is told in our words.
"""

import dataclasses
from collections.abc import Callable, Sequence

from conformance.model import statistics
from conformance.model.setting import Cell
from conformance.reporting.heatmaps import Series

MEASURED, PARTLY, NOT = "measured", "measured in part", "not measured"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Criterion:
    """`figures` maps a Series to {column: text}, or to {} where this series says nothing to it. `shared`: it is about
    series with a rival, which say nothing to any other criterion.
    """

    section: str
    title: str
    asks: str
    status: str
    says: str
    figures: Callable[[Series], dict[str, str]] | None = None
    shared: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """A Criterion with the figures that there are: columns and rows of (series, cells)."""

    criterion: Criterion
    columns: tuple[str, ...]
    rows: tuple[tuple[Series, tuple[str, ...]], ...]

    @property
    def status(self) -> str:
        """Return the criterion's status, or that it is not measured where these results have nothing of it."""
        return self.criterion.status if self.rows or self.criterion.figures is None else NOT


def answers(all_series: Sequence[Series]) -> list[Answer]:
    """Return one Answer for each criterion, in the RFC's order."""
    made = []
    for criterion in CRITERIA:
        said: list[tuple[Series, dict[str, str]]] = []
        if criterion.figures:
            asked = [s for s in all_series if (s.setting.rival is not None) == criterion.shared]
            said = [(series, found) for series in asked if (found := criterion.figures(series))]
        columns = tuple(dict.fromkeys(name for _, found in said for name in found))
        rows = tuple((series, tuple(found.get(name, "") for name in columns)) for series, found in said)
        made.append(Answer(criterion=criterion, columns=columns, rows=rows))
    return made


def _medians(series: Series, metric: str, wanted: Callable[[Cell], bool]) -> list[float]:
    """Return medians over the trials of the cells that are `wanted`, of any metric of the results."""
    found = []
    for cell, result in series.utilization.results.items():
        values = [v for v in (m.value(metric) for m in result.measurements if m.metrics) if v is not None]
        if wanted(cell) and values:
            found.append(statistics.median(values))
    return found


def _range(values: Sequence[float], form: str, unit: str = "") -> str | None:
    """Return least, median and most of the cells' medians."""
    if not values:
        return None
    low, middle, high = (f"{v:{form}}" for v in (min(values), statistics.median(values), max(values)))
    return f"{middle}{unit} ({low} to {high}; {len(values)} cells)" if len(values) > 1 else f"{middle}{unit} (1 cell)"


def _some(**columns: str | None) -> dict[str, str]:
    """Return those columns that are known."""
    return {name.replace("_", " "): text for name, text in columns.items() if text is not None}


def _no_loss(cell: Cell) -> bool:
    return cell.loss_pct == 0


def _bufferbloat(series: Series) -> dict[str, str]:
    return _some(
        mean_queue_in_BDP=_range(_medians(series, "queue_mean_bdp", _no_loss), ".2f"),
        bottleneck=series.setting.queue,
    )


def _high_loss(series: Series) -> dict[str, str]:
    own = _medians(series, "lost_pct", _no_loss)
    lossy = _medians(series, "lost_pct", lambda c: c.loss_pct >= 3)
    return _some(
        lost_where_no_loss_is_set=_range(own, ".2f", " %"),
        lost_where_3_percent_or_more_are_set=_range(lossy, ".2f", " %"),
    )


def _wired(series: Series) -> dict[str, str]:
    return _some(utilization_without_random_loss=_range(_medians(series, "utilization", _no_loss), ".2f"))


def _wireless(series: Series) -> dict[str, str]:
    return _some(utilization_with_random_loss=_range(_medians(series, "utilization", lambda c: c.loss_pct > 0), ".2f"))


def _high_delay(series: Series) -> dict[str, str]:
    most = max(cell.one_way_delay_ms for cell in series.cells)
    found = _range(_medians(series, "utilization", lambda c: c.one_way_delay_ms == most), ".2f")
    return _some(longest_round_trip=f"{2 * most:g} ms", utilization_there=found)


def _tail_drop(series: Series) -> dict[str, str]:
    if series.setting.queue.partition(":")[0] not in ("bfifo", "pfifo"):
        return {}
    return _some(bottleneck=series.setting.queue, utilization=_range(_medians(series, "utilization", bool), ".2f"))


def _aqm(series: Series) -> dict[str, str]:
    if series.setting.queue.partition(":")[0] not in ("red", "fq_codel", "codel", "cake", "pie"):
        return {}
    return _some(
        bottleneck=series.setting.queue,
        utilization=_range(_medians(series, "utilization", bool), ".2f"),
        lost=_range(_medians(series, "lost_pct", bool), ".2f", " %"),
    )


def _short_flows(series: Series) -> dict[str, str]:
    if series.setting.transfer_s > 1:
        return {}
    return _some(
        transfer=f"{series.setting.transfer_s:g} s at the link's rate",
        utilization=_range(_medians(series, "utilization", bool), ".2f"),
    )


#: kernel's names of a rival -> ours, where they differ
_MAINLINE = {"bbr": "bbrv1"}


def _share(series: Series) -> dict[str, str]:
    return _some(
        beside=f"a flow of {series.setting.rival}",
        bottleneck=series.setting.queue,
        share=_range(_medians(series, "utilization", bool), ".2f"),
        mean_queue_in_BDP=_range(_medians(series, "queue_mean_bdp", bool), ".2f"),
    )


def _share_with_own(series: Series) -> dict[str, str]:
    """Return the share beside the kernel's flow of the same algorithm, if not of the same hand."""
    rival = series.setting.rival
    same = rival is not None and _MAINLINE.get(rival, rival) == series.utilization.scheme.algorithm
    return _share(series) if same else {}


def _not(section: str, title: str, asks: str, why: str) -> Criterion:
    return Criterion(section=section, title=title, asks=asks, status=NOT, says=why)


_BULK = "Not measured: flows that share the bottleneck here are bulk transfers."
_ARGUMENT = "Not measured: this asks for an argument in a proposal, not for a measurement."

#: in the RFC's order
CRITERIA = (
    _not("5.1.1", "Protection Against Congestion Collapse",
         "Does a sender stop, or back off to less than a packet per round trip, when drops are extreme and persist?",
         "Not measured: random loss is a few percent here, and no trial brings persistent, extreme congestion."),
    Criterion(section="5.1.2", title="Protection Against Bufferbloat", status=MEASURED, figures=_bufferbloat,
              asks="Does it avoid standing queues?",
              says="Mean length of the bottleneck's queue while one flow fills it, in bandwidth-delay products, in "
                   "cells without random loss. The bottleneck's own queue management keeps it short as well."),
    Criterion(section="5.1.3", title="Protection Against High Packet Loss", status=PARTLY, figures=_high_loss,
              asks="Does it avoid causing high loss, and slow down under it?",
              says="Share of the sender's bytes that never arrived: where none is lost at random, what the flow itself "
                   "causes at the bottleneck. Several flows at a shallow buffer, as the RFC names, are not measured."),
    Criterion(section="5.1.4", title="Fairness within the Proposed Congestion Control Algorithm", status=PARTLY,
              figures=_share_with_own, shared=True, asks="How do flows of the same algorithm share a bottleneck?",
              says="Share of the link that the flow got beside one of the guest kernel's own with the same algorithm, "
                   "which was there first (`--rival`). More than two flows, and other round-trip times: no."),
    Criterion(section="5.1.5", title="Short Flows", status=PARTLY, figures=_short_flows,
              asks="How do short flows affect long ones, and the other way round?",
              says="Transfers of at most one second's worth of data, alone on the link. Beside long flows: no."),
    Criterion(section="5.2.1", title="Existing General-Purpose Congestion Control", status=PARTLY, figures=_share,
              shared=True, asks="What does it do to flows of Reno, CUBIC and others that share the bottleneck?",
              says="Share of the link that it got beside one flow of the guest kernel's, which was there first "
                   "(`--profile competing`, `--rival`), and the queue that both made. More flows: not measured."),
    _not("5.2.2", "Real-Time Congestion Control", "Does it coexist with real-time media?", _BULK),
    _not("5.2.3", "Short and Long Flows", "Effect on short and long flows of other algorithms.", _BULK),
    _not("5.3.1", "Differences with Congestion Control Principles", "Deviations from RFC 2914 and RFC 7141.",
         _ARGUMENT),
    _not("5.3.2", "Incremental Deployment", "Can it be deployed step by step, with today's equipment?", _ARGUMENT),
    Criterion(section="6.1", title="Paths with Tail-drop Queues", status=MEASURED, figures=_tail_drop,
              asks="Behaviour at a drop-tail queue.",
              says="Results whose bottleneck was a FIFO (`--queue bfifo:BDPs` or `pfifo:PACKETS`)."),
    _not("6.2", "Tunnel Behavior", "Where signals of the path are hidden by a tunnel.",
         "Not measured: no trial has one."),
    Criterion(section="6.3", title="Wired Paths", status=MEASURED, figures=_wired,
              asks="The baseline: stable capacity, next to no loss but in queues.",
              says="Utilization of the cells without random loss."),
    Criterion(section="6.4", title="Wireless Paths", status=PARTLY, figures=_wireless,
              asks="Loss that is not congestion, capacity that varies, jitter.",
              says="Utilization of the cells with random loss. Varying capacity and jitter are not measured."),
    Criterion(section="7.1", title="Active Queue Management (AQM)", status=PARTLY, figures=_aqm,
              asks="Behaviour under FQ-CoDel, PIE, L4S and others, and the response to ECN marks.",
              says="Results whose bottleneck manages its queue, by which discipline. Marks: not measured."),
    _not("7.2", "Operation with the Envelope set by Network Circuit Breakers",
         "Does it react before equipment on the path ends the flow?", "Not measured: no trial has a circuit breaker."),
    _not("7.3", "Paths with Varying Delay", "Is it robust when the minimum delay changes?",
         "Not measured: the delay is constant during a trial."),
    _not("7.4", "Internet of Things and Constrained Nodes", "Very low rates and little power.",
         "Not measured: the slowest links of the grid are far above these."),
    Criterion(section="7.5", title="Paths with High Delay", status=PARTLY, figures=_high_delay,
              asks="Satellite links and others with delays beyond the usual.",
              says="Utilization at the longest delay of the results; a geostationary satellite's is some 600 ms."),
    _not("7.6", "Misbehaving Nodes", "Non-compliant senders, receivers, routers; attackers.", "Not measured."),
    _not("7.7", "Extreme Packet Reordering", "Paths that do not keep packets in order.",
         "Not measured: the emulator keeps packets in order."),
    _not("7.8", "Transient Events", "Sudden congestion, routing changes, mobility.",
         "Not measured: a path does not change during a trial."),
    _not("7.9", "Sudden Changes in the Path", "Robustness to changes in the path's characteristics.",
         "Not measured: a path does not change during a trial."),
    _not("7.10", "Multipath Transport", "Fail-over, and paths that share a bottleneck.", "Not measured: one path."),
    _not("7.11", "Data Centers", "Latencies below 2 ms, bursts of many nodes.",
         "Not measured: the shortest round trip of the grid is 2 ms, and there are two flows at most."),
)  # fmt: skip

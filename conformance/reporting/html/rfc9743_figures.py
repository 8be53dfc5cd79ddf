"""Compute figures for criteria of RFC 9743: functions of a Series return {column: text}, {} if it has none."""

from collections.abc import Callable, Collection, Sequence

from conformance.model.judging import statistics
from conformance.model.networks.network import Network
from conformance.model.networks.place import Cell
from conformance.reporting.heatmaps import Series

#: a buffer of at least this many bandwidth-delay products lets a standing queue show; a smaller one hides it
DEEP_BDP = 4
#: least loss that is extreme, in %; greatest rate of constrained nodes, in Mbit/s; longest round trip in data centres
_EXTREME_PCT, _SLOW_MBPS, _SHORT_MS = 10, 1, 2
#: {the kernel's name of an algorithm: this suite's name}, if they differ
_MAINLINE = {"bbr": "bbrv1"}
#: a function that returns {column: text} of a Series
FigureTexts = Callable[[Series], dict[str, str]]


def span(values: Sequence[float], form: str, unit: str = "", noun: str = "cells") -> str | None:
    """Return the median, least and greatest of the medians of cells or points, as text; None if there are none."""
    if not values:
        return None
    low, middle, high = (f"{v:{form}}" for v in (min(values), statistics.median(values), max(values)))
    if len(values) == 1:
        return f"{middle}{unit} (1 {noun.removesuffix('s')})"
    return f"{middle}{unit} ({low} to {high}; {len(values)} {noun})"


def _medians(series: Series, metric: str, wanted: Callable[[Cell], bool]) -> list[float]:
    """Return the medians over trials of any metric of the results, in the cells that are `wanted` and in which all
    trials have a value.
    """
    medians = []
    for cell, result in series.utilization.results.items():
        values = [v for m in result.counted if (v := m.value(metric)) is not None]
        if wanted(cell) and len(values) == result.n:
            medians.append(statistics.median(values))
    return medians


def _some(**columns: str | None) -> dict[str, str]:
    """Return the columns that are known, by their names with spaces."""
    return {name.replace("_", " "): text for name, text in columns.items() if text is not None}


def _no_loss(cell: Cell) -> bool:
    return cell.loss_pct == 0


def _utilization(column: str, wanted: Callable[[Cell], bool]) -> FigureTexts:
    """Return the function for the utilization of the cells that are `wanted`."""
    return lambda series: _some(**{column: span(_medians(series, "utilization", wanted), ".2f")})


wired = _utilization("utilization without random loss", _no_loss)
wireless = _utilization("utilization with random loss", lambda c: c.loss_pct > 0)
data_centers = _utilization("utilization at 2 ms or less", lambda c: 2 * c.one_way_delay_ms <= _SHORT_MS)
constrained = _utilization("utilization at 1 Mbit per s or less", lambda c: c.bandwidth_mbps <= _SLOW_MBPS)


def _behind(queues: Collection[str], **shares: tuple[str, Callable[[Cell], bool]]) -> FigureTexts:
    """Return the function for utilization behind these queues, and for `shares`: {column: (metric in %, its cells)}."""

    def figures(series: Series) -> dict[str, str]:
        if series.setting.queue.partition(":")[0] not in queues:
            return {}
        return _some(
            bottleneck=series.setting.queue if len(queues) > 1 else None,
            utilization=span(_medians(series, "utilization", bool), ".2f"),
            **{column: span(_medians(series, *where), ".2f", " %") for column, where in shares.items()},
        )

    return figures


tail_drop = _behind(("bfifo", "pfifo"), lost=("lost_pct", _no_loss))
aqm = _behind(("red", "fq_codel", "codel", "cake", "pie"), lost=("lost_pct", bool), marked=("marked_pct", bool))
policed = _behind(("policer",), lost=("lost_pct", bool))


def collapse(series: Series) -> dict[str, str]:
    """Return the utilization of cells in which at least a tenth of all packets is lost."""
    cells = [cell for cell in series.cells if cell.loss_pct >= _EXTREME_PCT]
    if not cells:
        return {}
    return _some(
        random_loss=f"{min(c.loss_pct for c in cells):g} to {max(c.loss_pct for c in cells):g} %",
        utilization=span(_medians(series, "utilization", lambda c: c.loss_pct >= _EXTREME_PCT), ".3f"),
    )


def bufferbloat(series: Series) -> dict[str, str]:
    """Return the mean queue, if the bottleneck has a FIFO of at least 4 BDP."""
    kind, _, size = series.setting.queue.partition(":")
    if kind != "bfifo" or float(size) < DEEP_BDP:
        return {}
    return _some(
        bottleneck=series.setting.queue, mean_queue_in_BDP=span(_medians(series, "queue_mean_bdp", _no_loss), ".2f")
    )


def deep(network: Network) -> bool:
    """Return whether the tested flow's bottleneck has a FIFO of at least 4 BDP."""
    place = network.bottleneck(network.tested)
    queue = place[0].direction(place[1]).queue if place else None
    return queue is not None and queue.kind == "bfifo" and queue.in_bdp and (queue.size or 0) >= DEEP_BDP


def high_loss(series: Series) -> dict[str, str]:
    """Return the loss that a flow causes itself, and its loss at 3 % and more of random loss."""
    lost = _medians(series, "lost_pct", _no_loss)
    lossy = _medians(series, "lost_pct", lambda c: c.loss_pct >= 3)
    return _some(
        lost_without_random_loss=span(lost, ".2f", " %"),
        lost_at_3_percent_random_loss_or_more=span(lossy, ".2f", " %"),
    )


def high_delay(series: Series) -> dict[str, str]:
    """Return the utilization at the longest delay of the results."""
    most = max(cell.one_way_delay_ms for cell in series.cells)
    longest = span(_medians(series, "utilization", lambda c: c.one_way_delay_ms == most), ".2f")
    return _some(longest_round_trip=f"{2 * most:g} ms", utilization_at_that_round_trip=longest)


def coverage(series: Series) -> dict[str, str]:
    """Return the ranges that the results span, and the bottleneck's queue."""
    rates = [cell.bandwidth_mbps for cell in series.cells]
    rtts = [2 * cell.one_way_delay_ms for cell in series.cells]
    losses = [cell.loss_pct for cell in series.cells]
    return _some(
        rates=f"{min(rates):g} to {max(rates):g} Mbit/s",
        round_trips=f"{min(rtts):g} to {max(rtts):g} ms",
        random_loss=f"{min(losses):g} to {max(losses):g} %",
        bottleneck=series.setting.queue,
    )


def short_flows(series: Series) -> dict[str, str]:
    """Return the utilization of transfers of at most one second's worth of data."""
    if series.setting.transfer_s > 1:
        return {}
    return _some(
        transfer=f"{series.setting.transfer_s:g} s at the link's rate",
        utilization=span(_medians(series, "utilization", bool), ".2f"),
    )


def share(series: Series) -> dict[str, str]:
    """Return the share of the link, and the queue, beside a flow of the guest's kernel."""
    return _some(
        rival=f"a {series.setting.rival} flow",
        bottleneck=series.setting.queue,
        share=span(_medians(series, "utilization", bool), ".2f"),
        mean_queue_in_BDP=span(_medians(series, "queue_mean_bdp", bool), ".2f"),
    )


def share_with_own(series: Series) -> dict[str, str]:
    """Return the share beside a kernel flow of the same algorithm, even if the implementations differ."""
    rival = series.setting.rival
    same = rival is not None and _MAINLINE.get(rival, rival) == series.utilization.scheme.algorithm
    return share(series) if same else {}

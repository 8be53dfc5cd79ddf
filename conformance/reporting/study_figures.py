"""Compute the records that a study's charts draw: values at points, distributions over flows or trials, time series."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.model.captures.delivery import SERIES_S
from conformance.model.metrics.table import METRICS
from conformance.model.networks.links import WAYS
from conformance.model.networks.place import Value
from conformance.model.studies import claims, outcome
from conformance.model.studies.claims import Estimate
from conformance.model.studies.figure import Figure
from conformance.model.studies.outcome import MeasuredPoints
from conformance.model.studies.study_point import GROUP, StudyPoint
from conformance.model.trials.trial import Measurement

FigureRow = dict[str, Any]
#: the metric whose time series are of links: the share of each link's rate used in each second, headers included
OF_LINKS = "link_utilization"
#: {metric with a distribution over flows: the field of a flow that it shows}; those of other metrics are over trials
OF_A_FLOW = {"flow_goodput_mbps": "goodput_mbps", "group_goodput_mbps": "goodput_mbps", "fct_p50_s": "completion_s"}
#: {how a coordinate's name ends: its unit}
_UNITS = {"mbps": "Mbit/s", "ms": "ms", "s": "s", "bdp": "BDP", "pct": "%"}
#: {metric: the time series of a delivery record that is drawn for it}
_OF_A_DELIVERY = {"delivered_mbps": "series_mbps", "byte_delay_p50_ms": "series_delay_p50_ms"}


def over_time_title(figure: Figure) -> str:
    """Return the title of the y axis of a figure over time: the quantity with its unit."""
    if figure.metric == OF_LINKS:
        return "share of each link's rate used"
    return METRICS[figure.metric].label if figure.metric in _OF_A_DELIVERY else "goodput, Mbit/s"


def rows(figure: Figure, measured: MeasuredPoints, look: claims.Lookup | None = None) -> list[FigureRow]:
    """Return the records of a figure; none if nothing of it was measured. `look` finds the values of cells."""
    if figure.cells:
        return list(_of_cells(figure, look)) if look is not None else []
    of = {"curves": _medians, "heatmap": _medians, "cdf": _distributions, "series": _series}[figure.draws]
    points = [
        {**row, "panel": _panel(figure, figure.panel(point))}
        for point in figure.points
        if measured.get(point)
        for row in of(figure, point, measured[point])
    ]
    there = {row["panel"] for row in points}
    if figure.draws == "curves":
        published = [
            {
                "x": point["x"], "line": str(point.get("line", "")), "median": point["value"], "kind": "published",
                "panel": _panel(figure, point.get("panel", ())),
            }
            for point in figure.published
        ]  # fmt: skip
        points += [point for point in published if point["panel"] in there]
    return points


def _of_cells(figure: Figure, look: claims.Lookup) -> Iterator[FigureRow]:
    """Yield what was seen and what was published of each cell; yield nothing if no cell was seen."""
    estimates = {cell: look(cell.quantity) for cell in figure.cells}
    if not any(isinstance(estimate, Estimate) for estimate in estimates.values()):
        return
    for cell, estimate in estimates.items():
        place = {"x": cell.row, "line": cell.column, "panel": ""}
        if isinstance(estimate, Estimate):
            low, high = _bound(estimate.low, estimate.median), _bound(estimate.high, estimate.median)
            yield {**place, "kind": "seen", "median": estimate.median, "low": low, "high": high}
        if cell.published is not None:
            yield {**place, "kind": "published", "median": cell.published}


def _panel(figure: Figure, values: Sequence[Value]) -> str:
    return ", ".join(valued(name, value) for name, value in zip(figure.panels, values, strict=True))


def _in_words(coordinate: str) -> tuple[str, str]:
    """Return a coordinate's name in words, and its unit ("" if it has none)."""
    stem, _, end = coordinate.rpartition("_")
    return (stem.replace("_", " "), _UNITS[end]) if stem and end in _UNITS else (coordinate.replace("_", " "), "")


def valued(coordinate: str, value: Value) -> str:
    """Return a coordinate and its value as people read them, such as "buffer 0.1 BDP"."""
    words, unit = _in_words(coordinate)
    return f"{words} {value} {unit}".strip()


def titled(coordinate: str | None) -> str:
    """Return a coordinate as the title of an axis, such as "buffer, BDP"."""
    return ", ".join(filter(None, _in_words(coordinate or "")))


def _line(figure: Figure, point: StudyPoint, group: str | None = None) -> str:
    line = point.coordinates().get(figure.lines) if figure.lines and figure.lines != GROUP else None
    return ", ".join(str(part) for part in (line, group) if part is not None)


def _medians(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[FigureRow]:
    """Yield a point's median with the bounds of its interval; yield nothing if no median was seen."""
    estimate = outcome.seen(measurements, figure.metric, figure.group)
    if not isinstance(estimate, Estimate):
        return
    at = point.coordinates()
    yield {
        "kind": "seen", "x": at.get(figure.x or ""), "y": at.get(figure.y or ""), "line": _line(figure, point),
        "median": estimate.median, "low": _bound(estimate.low, estimate.median),
        "high": _bound(estimate.high, estimate.median),
        "text": f"{estimate.median:.{METRICS[figure.metric].digits}f}",
    }  # fmt: skip


def _bound(bound: float, median: float) -> float:
    """Return an interval's bound, or the median if there are too few trials for a bound on that side."""
    return bound if math.isfinite(bound) else median


def _distributions(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[FigureRow]:
    """Yield the distribution over flows, or over trials: each value, and the share of all that have none greater.

    Of flows that did not complete, or trials that failed, no value is known: the line then ends below 1.
    """
    name = OF_A_FLOW.get(figure.metric)
    if name is None:
        singly = (outcome.seen([measurement], figure.metric, figure.group) for measurement in measurements)
        values = sorted(estimate.median for estimate in singly if isinstance(estimate, Estimate))
        yield from _shares(_line(figure, point), values, len(measurements))
        return
    flows = [
        flow for measurement in measurements for flow in measurement.flows if figure.group in (None, flow["group"])
    ]
    groups = dict.fromkeys(flow["group"] for flow in flows)
    for group in groups:
        of_group = [flow[name] for flow in flows if flow["group"] == group]
        values = sorted(value for value in of_group if value is not None)
        yield from _shares(_line(figure, point, group if len(groups) > 1 else None), values, len(of_group))


def _shares(line: str, values: Sequence[float], of: int) -> Iterator[FigureRow]:
    for number, value in enumerate(values, 1):
        yield {"line": line, "x": value, "share": number / of}


def _series(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[FigureRow]:
    """Yield each group's goodput per second in the first trial, or the metric's series of links or of a delivery."""
    flows = measurements[0].flows
    if figure.metric == OF_LINKS:
        yield from _of_links(_line(figure, point), measurements[0])
        return
    if figure.metric in _OF_A_DELIVERY:
        delivery: FigureRow = next((flow["delivery"] for flow in flows if "delivery" in flow), {})
        for number, value in enumerate(delivery.get(_OF_A_DELIVERY[figure.metric], ())):
            if value is not None:
                yield {"line": _line(figure, point), "x": number * SERIES_S, "median": value}
        return
    for group in dict.fromkeys(flow["group"] for flow in flows):
        series = [flow["goodput_series_mbps"] for flow in flows if flow["group"] == group]
        line = f"{point.algorithm}: {group}"
        for second in range(max(map(len, series))):
            total = sum(bar[second] for bar in series if second < len(bar))
            yield {"line": line, "x": second, "median": total}


def _of_links(line: str, measurement: Measurement) -> Iterator[FigureRow]:
    """Yield, for each link that has a rate, the share of it that is used towards the client in each second."""
    for link in measurement.links:
        if link["direction"] != WAYS[0] or not link["rate_mbps"]:
            continue
        name = ", ".join(filter(None, [line, f"link {link['link']}"]))
        for second, rate_mbps in enumerate(link["out_series_mbps"]):
            yield {"line": name, "x": second, "median": rate_mbps / link["rate_mbps"]}

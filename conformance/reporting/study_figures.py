"""The numbers in a study's figures, as charts read them: what was seen at each point, of each flow, in each second."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from conformance.model.delivery import SERIES_S
from conformance.model.links import WAYS
from conformance.model.metrics import METRICS
from conformance.model.studies import outcome
from conformance.model.studies.claims import Seen
from conformance.model.studies.outcome import Measured
from conformance.model.studies.study import GROUP, Figure, StudyPoint
from conformance.model.trial import Measurement

Row = dict[str, Any]
#: the metric whose series are of links: the part of each link's rate that is used in each second, headers and all
OF_LINKS = "link_utilization"
#: what of a flow a distribution over flows is of, by the metric that it is called by
_OF_A_FLOW = {"flow_goodput_mbps": "goodput_mbps", "group_goodput_mbps": "goodput_mbps", "fct_p50_s": "completion_s"}
#: the series of a delivery that a metric is drawn as
_OF_A_DELIVERY = {"delivered_mbps": "series_mbps", "byte_delay_p50_ms": "series_delay_p50_ms"}


def rows(figure: Figure, measured: Measured) -> list[Row]:
    """Return the records of a figure; none where nothing of it was measured."""
    of = {"curves": _medians, "heatmap": _medians, "cdf": _distributions, "series": _series}[figure.draws]
    found = [row for point in figure.points if measured.get(point) for row in of(figure, point, measured[point])]
    if found and figure.draws == "curves":
        found += [{**_published(one), "kind": "published"} for one in figure.published]
    return found


def _published(one: Any) -> Row:
    return {"x": one["x"], "line": str(one.get("line", "")), "median": one["value"]}


def _line(figure: Figure, point: StudyPoint, group: str | None = None) -> str:
    own = point.coordinates().get(figure.lines) if figure.lines and figure.lines != GROUP else None
    return ", ".join(str(part) for part in (own, group) if part is not None)


def _medians(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[Row]:
    """Yield the median of a point, and the interval that holds it, where there are trials enough for one."""
    seen = outcome.seen(measurements, figure.metric, figure.group)
    if not isinstance(seen, Seen):
        return
    at = point.coordinates()
    yield {
        "kind": "seen", "x": at.get(figure.x or ""), "y": at.get(figure.y or ""), "line": _line(figure, point),
        "median": seen.median, "low": _bound(seen.low, seen.median), "high": _bound(seen.high, seen.median),
        "text": f"{seen.median:.{METRICS[figure.metric].digits}f}",
    }  # fmt: skip


def _bound(bound: float, median: float) -> float:
    """Return an interval's bound, or the median where too few trials bound that side."""
    return bound if math.isfinite(bound) else median


def _distributions(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[Row]:
    """Yield, for each flow of all trials, its value and the share of flows that have no more."""
    name = _OF_A_FLOW.get(figure.metric, "")
    flows = [flow for one in measurements for flow in one.flows if figure.group in (None, flow["group"])]
    groups = dict.fromkeys(flow["group"] for flow in flows)
    for group in groups if name else ():
        values = sorted(flow[name] for flow in flows if flow["group"] == group and flow[name] is not None)
        for number, value in enumerate(values, 1):
            line = _line(figure, point, group if len(groups) > 1 else None)
            yield {"line": line, "x": value, "share": number / len(values)}


def _series(figure: Figure, point: StudyPoint, measurements: Sequence[Measurement]) -> Iterator[Row]:
    """Yield each group's goodput in each second of the first trial; of links and deliveries, what the metric is."""
    flows = measurements[0].flows
    if figure.metric == OF_LINKS:
        yield from _of_links(_line(figure, point), measurements[0])
        return
    if figure.metric in _OF_A_DELIVERY:
        delivery: Row = next((flow["delivery"] for flow in flows if "delivery" in flow), {})
        for number, value in enumerate(delivery.get(_OF_A_DELIVERY[figure.metric], ())):
            if value is not None:
                yield {"line": _line(figure, point), "x": number * SERIES_S, "median": value}
        return
    for group in dict.fromkeys(flow["group"] for flow in flows):
        series = [flow["goodput_series_mbps"] for flow in flows if flow["group"] == group]
        line = f"{point.algorithm}: {group}"
        for second in range(max(map(len, series))):
            total = sum(one[second] for one in series if second < len(one))
            yield {"line": line, "x": second, "median": total}


def _of_links(line: str, measurement: Measurement) -> Iterator[Row]:
    """Yield what part of its rate leaves each link that has one, towards the client, in each second."""
    for link in measurement.links:
        if link["direction"] != WAYS[0] or not link["rate_mbps"]:
            continue
        name = ", ".join(filter(None, [line, f"link {link['link']}"]))
        for second, rate_mbps in enumerate(link["out_series_mbps"]):
            yield {"line": name, "x": second, "median": rate_mbps / link["rate_mbps"]}

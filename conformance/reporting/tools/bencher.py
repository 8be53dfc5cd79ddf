"""Export figures for benchmark trackers, in Bencher's Metric Format.

The format is {benchmark: {measure: {value, lower and upper value}}}. A benchmark is an algorithm of a stack in a cell,
without versions: its name must stay the same to be tracked over versions.
"""

import json
from collections.abc import Sequence

from conformance.model.errors import UserError
from conformance.reporting.heatmaps import Series

Metrics = dict[str, dict[str, dict[str, float]]]


def render(all_series: Sequence[Series]) -> bytes:
    """Return the document as JSON. Raises UserError if two builds would have to share a name."""
    return (json.dumps(document(all_series), indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def document(all_series: Sequence[Series]) -> Metrics:
    """Return medians and the ends of their intervals, without values that are only bounded, or not known of a trial."""
    metrics: Metrics = {}
    for series in all_series:
        scheme = series.scheme
        for heatmap in series.heatmaps:
            for cell, result in heatmap.results.items():
                if result.value is None or result.late or result.known < result.n:
                    continue
                name = f"{scheme.algorithm}/{scheme.stack} {cell.id} ({series.setting.profile})"
                measures = metrics.setdefault(name, {})
                if heatmap.metric in measures:
                    raise UserError(f"there are results of several builds of {name}", "export the results of one build")
                measures[heatmap.metric] = {"value": result.value}
                if result.interval:
                    low, high = result.interval
                    measures[heatmap.metric] |= {"lower_value": low, "upper_value": high}
    return metrics

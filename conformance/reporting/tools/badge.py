"""Make a badge of the worst verdict and how many judged cells have it: as JSON for shields.io, and as SVG."""

import collections
import json
from collections.abc import Sequence

import jinja2

from conformance.reporting.heatmaps import Series
from conformance.support import paths

#: {verdict: background}; white text on each has a contrast of at least 4.5 to 1
_COLOURS = {
    "conforms": "#00664a", "compatible": "#00664a", "violates": "#b33a00", "inconclusive": "#7a5200",
    "error": "#8a2a6b", "unsupported": "#57606a", "not judged": "#57606a",
}  # fmt: skip
_WORST_FIRST = ("error", "violates", "inconclusive", "unsupported", "compatible", "conforms", "not judged")


def message(all_series: Sequence[Series]) -> tuple[str, str]:
    """Return (words, verdict) on all metrics of all series together."""
    heatmaps = [heatmap for series in all_series for heatmap in series.heatmaps]
    count: collections.Counter[str] = sum((heatmap.count() for heatmap in heatmaps), collections.Counter())
    verdicts = {heatmap.verdict for heatmap in heatmaps if heatmap.count()} or {"not judged"}
    worst = next(verdict for verdict in _WORST_FIRST if verdict in verdicts)
    return (f"{worst}: {count[worst]} of {count.total()}" if count else worst), worst


def label(all_series: Sequence[Series]) -> str:
    """Return what the badge is about: the algorithm, if there is only one."""
    algorithms = {series.scheme.algorithm for series in all_series}
    return f"{algorithms.pop()} conformance" if len(algorithms) == 1 else "congestion control"


def endpoint(all_series: Sequence[Series]) -> bytes:
    """Return JSON for https://shields.io/badges/endpoint-badge."""
    words, verdict = message(all_series)
    document = {
        "schemaVersion": 1,
        "label": label(all_series),
        "message": words,
        "color": _COLOURS[verdict].lstrip("#"),
        "isError": verdict == "error",
    }
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def svg(all_series: Sequence[Series]) -> bytes:
    """Return the same as SVG, which sets the width that text is drawn in, whatever the font."""
    words, verdict = message(all_series)
    name = label(all_series)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.data("reports", "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    left, right = _width(name), _width(words)
    page = environment.get_template("badge.svg").render(
        label=name, message=words, colour=_COLOURS[verdict], left=left, right=right
    )
    return page.encode()


def _width(text: str) -> int:
    """Return the width in px of text in 11 px sans-serif, with some room on both sides."""
    return round(6.6 * len(text)) + 12

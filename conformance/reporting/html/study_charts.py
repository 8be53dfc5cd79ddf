"""A study's figures drawn anew (Vega-Altair): curves with intervals, distributions, heatmaps, time series."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair
import vl_convert

from conformance.model.metrics import METRICS
from conformance.model.studies.study import Figure
from conformance.reporting.html import colours

#: Okabe and Ito (2008), in an order that begins with the most different ones; shapes say the same without colour
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
_WIDTH, _HEIGHT, _CELL_WIDTH, _CELL_HEIGHT = 420, 220, 46, 30
_FONT = "DejaVu Sans, sans-serif"


def svg(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a figure as SVG text."""
    drawn = {"curves": _curves, "heatmap": _heatmap, "cdf": _cdf, "series": _over_time}[figure.draws](figure, rows)
    configured = drawn.configure(font=_FONT, background="transparent").configure_view(stroke="#999999")
    return vl_convert.vegalite_to_svg(configured.to_json())


def _words(coordinate: str | None) -> str:
    return (coordinate or "").replace("_", " ")


def _x(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> altair.X:
    order = list(dict.fromkeys(row["x"] for row in rows))
    if any(isinstance(value, str) for value in order):
        return altair.X("x:N", title=_words(figure.x), sort=order, axis=altair.Axis(labelAngle=-20))
    kind = altair.Scale(type="log") if figure.log else altair.Scale(zero=False, padding=10)
    return altair.X("x:Q", title=_words(figure.x), scale=kind)


def _line_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(row["line"]) for row in rows))


def _coloured(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    names = _line_names(rows)
    ranges = [[values[at % len(values)] for at in range(len(names))] for values in (_COLOURS, _SHAPES)]
    legend = altair.Legend(title=_words(figure.lines) or None, orient="top", columns=4, labelLimit=300)
    colour, shape = (altair.Scale(domain=names, range=found) for found in ranges)
    return {
        "color": altair.Color("line:N", scale=colour, legend=legend),
        "shape": altair.Shape("line:N", scale=shape, legend=legend),
    }


def _curves(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> altair.LayerChart | altair.FacetChart:
    """Draw medians, the intervals that hold them, and what was published, as hollow marks."""
    base = altair.Chart(altair.Data(values=list(rows)))
    x, metric = _x(figure, rows), METRICS[figure.metric]
    both = _coloured(figure, rows)
    seen = base.transform_filter("datum.kind == 'seen'")
    # Between names there is nothing that a line could lead through.
    named = any(isinstance(row["x"], str) for row in rows)
    lines = (
        seen.mark_point(size=50, filled=True, opacity=1)
        if named
        else seen.mark_line(point=altair.OverlayMarkDef(size=40, filled=True), strokeWidth=1)
    )
    bars = seen.mark_rule(strokeWidth=2)
    published = base.transform_filter("datum.kind == 'published'").mark_point(size=130, filled=False, strokeWidth=2)
    made: altair.LayerChart | altair.FacetChart = altair.layer(
        lines.encode(x=x, y=altair.Y("median:Q", title=metric.label), **both),
        bars.encode(x=x, y="low:Q", y2="high:Q", color=both["color"]),
        published.encode(x=x, y="median:Q", color=both["color"], shape=altair.value("diamond")),
    ).properties(width=_WIDTH, height=_HEIGHT)
    return made


def _cdf(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> altair.Chart:
    metric = METRICS[figure.metric]
    made: altair.Chart = (
        altair.Chart(altair.Data(values=list(rows)))
        .mark_line(interpolate="step-after")
        .encode(
            x=altair.X("x:Q", title=f"of each flow, {metric.unit}"),
            y=altair.Y("share:Q", title="share of flows", scale=altair.Scale(domain=[0, 1])),
            color=_coloured(figure, rows)["color"],
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return made


def _over_time(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> altair.Chart:
    made: altair.Chart = (
        altair.Chart(altair.Data(values=list(rows)))
        .mark_line(strokeWidth=1.2)
        .encode(
            x=altair.X("x:Q", title="seconds"),
            y=altair.Y("median:Q", title="goodput, Mbit/s"),
            color=_coloured(figure, rows)["color"],
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
    return made


def _heatmap(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> altair.HConcatChart:
    """Draw a panel for each line, side by side."""
    full = METRICS[figure.metric].full_scale
    scale = altair.Scale(range=[f"#{anchor}" for anchor in colours.VIRIDIS], domain=[0, full], clamp=True)
    panels = []
    for name in _line_names(rows):
        own = [row for row in rows if str(row["line"]) == name]
        base = altair.Chart(altair.Data(values=own)).encode(
            x=altair.X("x:O", title=_words(figure.x), axis=altair.Axis(labelAngle=0)),
            y=altair.Y("y:O", title=_words(figure.y)),
        )
        boxes = base.mark_rect(stroke="white").encode(color=altair.Color("median:Q", scale=scale, legend=None))
        ink = altair.condition(f"datum.median < {0.6 * full}", altair.value("white"), altair.value("black"))
        columns, lines = ({row[of] for row in own} for of in ("x", "y"))
        panels.append(
            altair.layer(boxes, base.mark_text(fontSize=11).encode(text="text:N", color=ink)).properties(
                width=_CELL_WIDTH * len(columns),
                height=_CELL_HEIGHT * len(lines),
                title=f"{_words(figure.lines)} {name}",
            )
        )
    made: altair.HConcatChart = altair.hconcat(*panels)
    return made

"""Draw a study's figures anew with Vega-Altair: curves with intervals, distributions, heatmaps, time series."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import altair

from conformance.model.metrics.table import METRICS
from conformance.model.studies.figure import Figure
from conformance.reporting import charts
from conformance.reporting.html import colours
from conformance.reporting.study_figures import OF_A_FLOW, over_time_title, titled, valued

#: dashes of lines without marks, which say the same as colours
_DASHES = [[1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [12, 3], [4, 1], [1, 3], [10, 2, 2, 2, 2, 2]]
_ALGORITHMS = ("cubic", "bbrv1", "bbrv2", "bbrv3", "reno", "vegas")
_WIDTH, _HEIGHT, _CELL_WIDTH, _CELL_HEIGHT = 420, 220, 46, 30
#: width and height of each of several panels, in pixels; how many of them are side by side
_PANEL_WIDTH, _PANEL_HEIGHT, _ABREAST = 250, 170, 3
#: width of each name along the x axis of bars, in pixels
_NAME_WIDTH = 55
_Rows = Sequence[Mapping[str, Any]]


def svg(figure: Figure, rows: _Rows) -> str:
    """Return a figure as SVG text."""
    draw = {"curves": _curves, "bars": _curves, "heatmap": _heatmap, "cdf": _cdf, "series": _over_time}[figure.draws]
    names = list(dict.fromkeys(row["panel"] for row in rows))
    width = max(_WIDTH, _NAME_WIDTH * len({cell.row for cell in figure.cells}))
    if len(names) == 1 and not names[0]:
        drawn: Any = draw(figure, rows, rows, (width, _HEIGHT))
    else:
        panels = [
            draw(figure, [row for row in rows if row["panel"] == name], rows, (_PANEL_WIDTH, _PANEL_HEIGHT)).properties(
                title=textwrap.wrap(name, 40)
            )
            for name in names
        ]
        abreast = 1 if figure.draws == "heatmap" else _ABREAST
        drawn = altair.concat(*panels, columns=abreast).resolve_scale(
            color="shared", shape="shared", strokeDash="shared"
        )
    configured = drawn.configure(font=charts.FONT, background="transparent").configure_view(stroke="#999999")
    return charts.svg(configured)


def _has_names(rows: _Rows) -> bool:
    """Return whether the x axis has names instead of numbers."""
    return any(isinstance(row["x"], str) for row in rows)


def _x(figure: Figure, rows: _Rows) -> altair.X:
    if _has_names(rows):
        order = list(dict.fromkeys(row["x"] for row in rows))
        return altair.X("x:N", title=titled(figure.x), sort=order, axis=altair.Axis(labelAngle=-20))
    if figure.log:
        ticks = altair.Axis(values=sorted({row["x"] for row in rows}))
        return altair.X("x:Q", title=titled(figure.x), scale=altair.Scale(type="log"), axis=ticks)
    return altair.X("x:Q", title=titled(figure.x), scale=altair.Scale(zero=False, padding=10))


def _line_names(rows: _Rows) -> list[str]:
    return list(dict.fromkeys(str(row["line"]) for row in rows))


def _legend(figure: Figure, names: Sequence[str]) -> altair.Legend | None:
    """Return the legend of lines, with a title unless they are algorithms; None if no line has a name."""
    title = None if figure.lines is None or set(names) <= set(_ALGORITHMS) else titled(figure.lines)
    return altair.Legend(title=title, orient="top", columns=4, labelLimit=300) if any(names) else None


def _coloured(figure: Figure, rows: _Rows) -> Mapping[str, Any]:
    """Return the colours and shapes of lines: an algorithm's are the same in all figures, other lines' come in turn."""
    names = _line_names(rows)
    places = list(map(_ALGORITHMS.index, names)) if set(names) <= set(_ALGORITHMS) else range(len(names))
    ranges = [[values[at % len(values)] for at in places] for values in (charts.SERIES_COLOURS, charts.SHAPES)]
    legend = _legend(figure, names)
    colour, shape = (altair.Scale(domain=names, range=marks) for marks in ranges)
    return {
        "color": altair.Color("line:N", scale=colour, legend=legend),
        "shape": altair.Shape("line:N", scale=shape, legend=legend),
    }


def _dashed(figure: Figure, rows: _Rows) -> Mapping[str, Any]:
    """Return the colours of lines without marks, and dashes that say the same."""
    names = _line_names(rows)
    dashes = altair.Scale(domain=names, range=[_DASHES[at % len(_DASHES)] for at in range(len(names))])
    return {
        "color": _coloured(figure, rows)["color"],
        "strokeDash": altair.StrokeDash("line:N", scale=dashes, legend=_legend(figure, names)),
    }


def _curves(figure: Figure, rows: _Rows, every: _Rows, size: tuple[int, int]) -> altair.LayerChart | altair.FacetChart:
    """Draw medians with their intervals, and published values as hollow marks.

    If the x axis has names, which have no order, marks are side by side and no line joins them.
    """
    base = altair.Chart(altair.Data(values=list(rows)))
    title = METRICS[figure.metric].label if figure.metric else ""
    both = _coloured(figure, every)
    at: dict[str, Any] = {"x": _x(figure, rows)}
    measured = base.transform_filter("datum.kind == 'seen'")
    if _has_names(rows):
        at["xOffset"] = altair.XOffset("line:N", sort=_line_names(every))
        marks = measured.mark_point(size=50, filled=True, opacity=1)
    else:
        marks = measured.mark_line(point=altair.OverlayMarkDef(size=40, filled=True), strokeWidth=1)
    bars = measured.mark_rule(strokeWidth=2)
    published = base.transform_filter("datum.kind == 'published'").mark_point(size=130, filled=False, strokeWidth=2)
    drawing: altair.LayerChart | altair.FacetChart = altair.layer(
        marks.encode(y=altair.Y("median:Q", title=title), **at, **both),
        bars.encode(y="low:Q", y2="high:Q", color=both["color"], **at),
        published.encode(y="median:Q", color=both["color"], shape=altair.value("diamond"), **at),
    ).properties(width=size[0], height=size[1])
    return drawing


def _cdf(figure: Figure, rows: _Rows, every: _Rows, size: tuple[int, int]) -> altair.Chart:
    metric = METRICS[figure.metric]
    of_flows = figure.metric in OF_A_FLOW
    what = "completion" if metric.unit == "s" else "goodput"
    x_title = f"{what} of each flow, {metric.unit}" if of_flows else metric.label
    y_title = "share of flows" if of_flows else "share of trials"
    drawing: altair.Chart = (
        altair.Chart(altair.Data(values=list(rows)))
        .mark_line(interpolate="step-after")
        .encode(
            x=altair.X("x:Q", title=x_title, scale=altair.Scale(zero=False)),
            y=altair.Y("share:Q", title=y_title, scale=altair.Scale(domain=[0, 1])),
            **_dashed(figure, every),
        )
        .properties(width=size[0], height=size[1])
    )
    return drawing


def _over_time(figure: Figure, rows: _Rows, every: _Rows, size: tuple[int, int]) -> altair.Chart:
    drawing: altair.Chart = (
        altair.Chart(altair.Data(values=list(rows)))
        .mark_line(strokeWidth=1.2)
        .encode(
            x=altair.X("x:Q", title="seconds"),
            y=altair.Y("median:Q", title=over_time_title(figure)),
            **_dashed(figure, every),
        )
        .properties(width=size[0], height=size[1])
    )
    return drawing


def _heatmap(figure: Figure, rows: _Rows, every: _Rows, size: tuple[int, int]) -> altair.HConcatChart:
    """Draw a heatmap for each of the figure's lines, side by side."""
    full = METRICS[figure.metric].full_scale
    scale = altair.Scale(range=[f"#{anchor}" for anchor in colours.VIRIDIS], domain=[0, full], clamp=True)
    parts = []
    for name in _line_names(every):
        of_line = [row for row in rows if str(row["line"]) == name]
        base = altair.Chart(altair.Data(values=of_line)).encode(
            x=altair.X("x:O", title=titled(figure.x), axis=altair.Axis(labelAngle=0)),
            y=altair.Y("y:O", title=titled(figure.y)),
        )
        boxes = base.mark_rect(stroke="white").encode(color=altair.Color("median:Q", scale=scale, legend=None))
        ink = altair.condition(f"datum.median < {0.6 * full}", altair.value("white"), altair.value("black"))
        columns, lines = ({row[of] for row in of_line} for of in ("x", "y"))
        parts.append(
            altair.layer(boxes, base.mark_text(fontSize=11).encode(text="text:N", color=ink)).properties(
                width=_CELL_WIDTH * len(columns),
                height=_CELL_HEIGHT * len(lines),
                title=valued(figure.lines or "", name),
            )
        )
    drawing: altair.HConcatChart = altair.hconcat(*parts)
    return drawing

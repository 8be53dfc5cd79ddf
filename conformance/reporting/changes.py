"""Draw the chart of `conformance compare`: differences with intervals, in units of the smallest one that matters."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import altair

from conformance.model.studies.comparison import Compared, Movement
from conformance.reporting import charts
from conformance.reporting.text import compare as compare_text
from conformance.support.console import printable

if TYPE_CHECKING:
    from conformance.commands.compare_result import Comparison

#: differences and ends of intervals are clamped to this many units: beyond that, their size says no more
_MOST = 10.0
#: colours of Okabe and Ito, as in the other charts; the shapes say the same without colour
_COLOURS = {Movement.MOVED: "#d55e00", Movement.UNCLEAR: "#999999", Movement.SAME: "#0072b2"}
_SHAPES = {Movement.MOVED: "diamond", Movement.UNCLEAR: "circle", Movement.SAME: "square"}


def svg(comparison: "Comparison") -> bytes:
    """Draw each quantity's difference and its interval as SVG; no difference between the dashed lines matters."""
    data = altair.Data(values=list(_rows(comparison.compared)))
    names = [str(change) for change in Movement]
    base = altair.Chart(data).encode(
        y=altair.Y("name:N", title=None, sort=None, axis=altair.Axis(labelLimit=420)),
        color=altair.Color(
            "change:N", title=None, scale=altair.Scale(domain=names, range=[_COLOURS[Movement(n)] for n in names])
        ),
    )
    scale = altair.Scale(domain=[-_MOST, _MOST], clamp=True)
    title = "head - base, in units of the smallest difference that matters"
    intervals = base.mark_rule().encode(x=altair.X("low:Q", scale=scale, title=title), x2="high:Q")
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=altair.X("difference:Q", scale=scale, title=title),
        shape=altair.Shape(
            "change:N", title=None, scale=altair.Scale(domain=names, range=[_SHAPES[Movement(n)] for n in names])
        ),
    )
    limits = altair.Chart(altair.Data(values=[{"x": -1}, {"x": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="x:Q")
    first, second = comparison.sides
    sides = printable(f"{first.given} -> {second.given}")
    drawn = altair.layer(limits, intervals, points).properties(
        width=500,
        title=altair.TitleParams(compare_text.ending(comparison), subtitle=sides, anchor="start"),
    )
    return charts.render(drawn.configure(font=charts.FONT), "svg")


def _rows(compared: Sequence[Compared]) -> Iterator[dict[str, Any]]:
    """Yield the chart's record of each quantity."""
    for c in compared:
        q = c.quantity
        low, high = (_in_units(end, c.matters) for end in c.interval)
        yield {
            "name": f"{compare_text.title(q)} at {q.place.id}, {q.algorithm}" + ("" if q.label else f" ({q.profile})"),
            "difference": _in_units(c.difference, c.matters), "low": low, "high": high, "change": str(c.change),
        }  # fmt: skip


def _in_units(value: float, matters: float) -> float:
    """Return a difference in units of what matters, at most _MOST. If `matters` is 0, any difference is _MOST."""
    if not value or math.isnan(value):
        return 0.0
    return max(-_MOST, min(_MOST, value / matters)) if matters else math.copysign(_MOST, value)

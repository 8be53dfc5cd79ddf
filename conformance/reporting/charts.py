"""Draw charts for papers and comparisons with Vega-Altair.

vl-convert renders them as SVG, PNG or PDF, without a browser or network.
"""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair
import vl_convert

from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status
from conformance.model.metrics.table import METRICS
from conformance.reporting.heatmaps import Heatmap, Series
from conformance.reporting.html import colours, compare, heatmap_table, slugs
from conformance.reporting.marks import LOOKS
from conformance.support.console import printable

FORMATS = ("svg", "png", "pdf")
Chart = altair.VConcatChart | altair.FacetChart
_CELL_PX, _CELL_HEIGHT = 48, 34
_DIFFERENCE = ["Difference", "colour: share of the way to the zone's bound; number: measured - reference"]
FONT = "DejaVu Sans, sans-serif"
#: colours of Okabe and Ito (2008), the most distinct ones first; SHAPES say the same without colour
SERIES_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]


def rows(drawn: Heatmap) -> Iterator[dict[str, Any]]:
    """Yield the chart's record of each cell; a value that is not known is None, and its text is empty."""
    metric = drawn.metric
    for cell, result in drawn.results.items():
        yield {
            "bandwidth": f"{cell.bandwidth_mbps:g} Mbit/s",
            "bandwidth_mbps": cell.bandwidth_mbps,
            "delay_ms": cell.one_way_delay_ms,
            "loss_pct": cell.loss_pct,
            "measured": result.value,
            "measured_text": heatmap_table.value_text(metric, result),
            "measured_ink": colours.ink_of(colours.value_step(metric, result.value)),
            "reference": result.reference,
            "reference_text": heatmap_table.permitted_text(metric, result),
            "reference_ink": colours.ink_of(colours.value_step(metric, result.reference)),
            "difference": result.difference,
            "difference_text": heatmap_table.signed(metric, result.difference),
            "difference_ink": colours.ink_of(heatmap_table.distance_step(result)),
            "distance": heatmap_table.distance(result),
            "verdict": str(result.status),
            "mark": LOOKS[result.status].mark,
            "framed": result.status.against or result.status is Status.ERROR,
        }


def heatmap(drawn: Heatmap) -> altair.VConcatChart:
    """Draw a Heatmap's measured values, and below them its zone and the difference, if any; bandwidths side by side."""
    data = list(rows(drawn))
    metric = drawn.metric
    of = METRICS[metric]
    values = {"scale": _scale(colours.VIRIDIS, (0, of.full_scale)), "title": f"{of.title}{of.suffix}"}
    panels = [_panel(data, "measured", f"Measured: median of {drawn.trials_words}", values)]
    if drawn.zone is not None:
        full = colours.FULL_DISTANCE
        distances = {"scale": _scale(colours.PUOR, (-full, full)), "title": ["share of the way", "to the zone's bound"]}
        panels.append(_panel(data, "reference", "Permissible zone: low and high, coloured by the reference", values))
        panels.append(_panel(data, "difference", _DIFFERENCE, distances, "distance"))
    lines = [*textwrap.wrap(drawn.scheme.stack_version, 80), drawn.settings]
    shown = {result.status for result in drawn.results.values()}
    marks = [f"{look.mark} {status}" for status, look in LOOKS.items() if status in shown and look.mark]
    lines += ["; ".join(marks)] if marks else []
    title = altair.TitleParams(drawn.scheme.id, subtitle=lines, anchor="start")
    chart: altair.VConcatChart = (
        altair.vconcat(*panels, spacing=18, title=title)
        .resolve_scale(color="independent")
        .configure(font=FONT)
        .configure_title(offset=12)
    )
    return chart


def _scale(anchors: Sequence[str], domain: tuple[float, float]) -> altair.Scale:
    return altair.Scale(range=[f"#{anchor}" for anchor in anchors], domain=_even(domain, len(anchors)), clamp=True)


def _even(domain: tuple[float, float], count: int) -> list[float]:
    low, high = domain
    return [low + (high - low) * at / (count - 1) for at in range(count)]


def _panel(
    data: Sequence[Mapping[str, Any]], value: str, title: str | list[str], color: Mapping[str, Any],
    coloured_by: str = "",
) -> altair.FacetChart:  # fmt: skip
    """Draw the texts of `value`, coloured by it or by the numbers of another name."""
    base = altair.Chart(altair.Data(values=data)).encode(
        x=altair.X("loss_pct:O", title="loss, %", axis=altair.Axis(labelAngle=0)),
        y=altair.Y("delay_ms:O", title="one-way delay, ms"),
    )
    boxes = base.mark_rect(stroke="white").encode(
        color=altair.Color(
            f"{coloured_by or value}:Q", scale=color["scale"], legend=altair.Legend(title=color["title"])
        ),
    )
    ink = altair.condition(f"datum.{value}_ink == 'white'", altair.value("white"), altair.value("black"))
    two_lines = value == "reference"
    words = base.mark_text(fontSize=11, lineBreak="\n", baseline="middle", dy=-6 if two_lines else 0)
    layers = [boxes, words.encode(text=f"{value}_text:N", color=ink)]
    if not two_lines:
        width, height = _CELL_PX - 5, _CELL_HEIGHT - 5
        frame: dict[str, Any] = {"filled": False, "fillOpacity": 0, "width": width, "height": height, "strokeWidth": 2}
        bad = base.transform_filter("datum.framed").mark_rect(**frame)
        unclear = base.transform_filter("datum.verdict == 'inconclusive'").mark_rect(**frame, strokeDash=[4, 3])
        layers += [bad.encode(stroke=ink), unclear.encode(stroke=ink)]
        # A frame says that a cell does not conform; the mark in its corner says which verdict it is.
        right, bottom = _CELL_PX / 2 - 9, _CELL_HEIGHT / 2 - 2
        marks = base.mark_text(fontSize=10, fontWeight="bold", baseline="bottom", dx=right, dy=bottom)
        layers.append(marks.encode(text="mark:N", color=ink))
    delays = len({row["delay_ms"] for row in data})
    losses = len({row["loss_pct"] for row in data})
    layered = altair.layer(*layers).properties(width=_CELL_PX * losses, height=_CELL_HEIGHT * delays)
    return layered.facet(
        column=altair.Column("bandwidth:N", title=None, sort=altair.SortField("bandwidth_mbps"))
    ).properties(title=altair.TitleParams(title, anchor="start"))


def comparison(section: compare.ComparedSection) -> altair.FacetChart:
    """Draw utilization over loss for several series: rows are bandwidths, columns are delays, the zone is a band."""
    points, zone = [], []
    for row in section.rows:
        results = [series.utilization.results.get(row.cell) for series in section.series]
        place = {**_place(row.cell.bandwidth_mbps, row.cell.one_way_delay_ms), "loss_pct": row.cell.loss_pct}
        if row.permitted:
            zone.append({**place, "low": row.permitted.low, "high": row.permitted.high})
        for name, result in zip(section.names, results, strict=True):
            if result is not None and result.value is not None:
                points.append({**place, "scheme": name, "utilization": result.value})
    # Vega places facets in sequence: if a pair of bandwidth and delay had no record, all later facets would move up.
    bandwidths = sorted({row.cell.bandwidth_mbps for row in section.rows})
    places = [_place(b, d) for b in bandwidths for d in sorted({row.cell.one_way_delay_ms for row in section.rows})]
    everything = altair.Data(
        values=[
            {"kind": kind, **v} for kind, entries in (("", places), ("zone", zone), ("point", points)) for v in entries
        ]
    )
    x = altair.X("loss_pct:Q", title="loss, %", scale=altair.Scale(nice=False, padding=8))
    y_scale = altair.Scale(domain=[0, 1])
    base = altair.Chart(everything)
    band = base.transform_filter("datum.kind == 'zone'").mark_area(color="#888888", opacity=0.3, line=False)
    layers = [
        band.encode(x=x, y=altair.Y("low:Q", scale=y_scale, title="utilization"), y2="high:Q"),
        base.transform_filter("datum.kind == 'point'")
        .mark_line(point=altair.OverlayMarkDef(size=26, filled=True), strokeWidth=1)
        .encode(
            x=x,
            y=altair.Y("utilization:Q", scale=y_scale),
            color=altair.Color("scheme:N", scale=_names(section, SERIES_COLOURS), legend=_LEGEND),
            shape=altair.Shape("scheme:N", scale=_names(section, SHAPES, shifted=True), legend=_LEGEND),
        ),
    ]
    chart: altair.FacetChart = (
        altair.layer(*layers)
        .properties(width=170, height=120)
        .facet(
            row=altair.Row("bandwidth:N", title=None, sort=altair.SortField("bandwidth_mbps")),
            column=altair.Column("delay:N", title=None, sort=altair.SortField("delay_ms")),
            spacing=8,
        )
        .configure(font=FONT, background="transparent")
        .configure_view(stroke="#999999")
    )
    return chart


def _place(bandwidth_mbps: float, delay_ms: float) -> dict[str, Any]:
    """Return the facet that a cell is in."""
    return {
        "bandwidth": f"{bandwidth_mbps:g} Mbit/s", "bandwidth_mbps": bandwidth_mbps,
        "delay": f"{delay_ms:g} ms", "delay_ms": delay_ms,
    }  # fmt: skip


_LEGEND = altair.Legend(title=None, orient="top", columns=2, labelLimit=400)


def _names(section: compare.ComparedSection, values: Sequence[str], shifted: bool = False) -> altair.Scale:
    """Return a scale that gives the section's names the values in turn.

    With `shifted`, each further round begins one value later, so that no pair of colour and shape recurs.
    """
    n = len(values)
    repeated = [values[(at + (at // n if shifted else 0)) % n] for at in range(len(section.names))]
    return altair.Scale(domain=list(section.names), range=repeated)


def specified(chart: altair.TopLevelMixin) -> str:
    """Return a chart's JSON for vl_convert, with control characters escaped: one would end the process."""

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {printable(name): shown(member) for name, member in value.items()}
        if isinstance(value, list):
            return [shown(member) for member in value]
        return printable(value) if isinstance(value, str) else value

    return json.dumps(shown(chart.to_dict()))


def render(chart: altair.TopLevelMixin, form: str, scale: float = 2) -> bytes:
    """Return the chart as bytes in one of FORMATS. `scale`: pixels of a PNG for each of the chart's."""
    specification = specified(chart)
    if form == "svg":
        return vl_convert.vegalite_to_svg(specification).encode()
    if form == "png":
        return vl_convert.vegalite_to_png(specification, scale=scale)
    return vl_convert.vegalite_to_pdf(specification)


def svg(chart: altair.TopLevelMixin) -> str:
    """Return the chart as SVG text."""
    return render(chart, "svg").decode()


def chosen(
    what: str, all_series: Sequence[Series], algorithm: str | None = None, stack: str | None = None
) -> Iterator[tuple[str, Any]]:
    """Yield (name, chart) of each figure: one for each series, or for `compare` one for each algorithm and profile.

    Raises UserError if there are no results of this algorithm and stack.
    """
    kept = [
        s for s in all_series if algorithm in (None, s.scheme.algorithm) and stack in (None, s.scheme.stack)
    ]  # fmt: skip
    if not kept:
        schemes = ", ".join(dict.fromkeys(s.scheme.id for s in all_series))
        raise UserError("there are no results of that algorithm and stack", f"there are results of {schemes}")
    if what == "compare":
        yield from _comparisons(kept)
        return
    for series in kept:
        drawn = series.utilization if what == "heatmap" else series.lost
        suffix = "" if what == "heatmap" else "-loss"
        yield f"{slugs.of_series(series)}{suffix}", heatmap(drawn)


def _comparisons(kept: Sequence[Series]) -> Iterator[tuple[str, Any]]:
    for algorithm in dict.fromkeys(s.scheme.algorithm for s in kept):
        sections = compare.sections([s for s in kept if s.scheme.algorithm == algorithm])
        for section in sections:
            profile = section.series[0].setting
            end = f"-{profile.profile}-{profile.profile_digest[:4]}" if len(sections) > 1 else ""
            yield f"compare-{slugs.of_name(algorithm)}{end}", comparison(section)

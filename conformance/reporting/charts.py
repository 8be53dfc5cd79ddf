"""Charts for papers and comparisons (Vega-Altair); SVG, PNG or PDF by vl-convert: no browser, no network."""

import json

import altair
import vl_convert

from conformance.reporting import colours, grids

FORMATS = ("svg", "png", "pdf")
_CELL_PX = 46
_FONT = "DejaVu Sans, sans-serif"
#: Okabe and Ito (2008), in an order that begins with the most different ones; shapes say the same without colour
_SERIES_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999"]
_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]


def rows(heatmap):
    """One record for each cell of a Heatmap, as its chart reads them; None where something is not known."""
    for cell, result in heatmap.results.items():
        permitted = result.permitted
        form = grids.METRICS[heatmap.metric][1]
        yield {
            "bandwidth": f"{cell.bandwidth_mbps:g} Mbit/s",
            "bandwidth_mbps": cell.bandwidth_mbps,
            "delay_ms": cell.one_way_delay_ms,
            "loss_pct": cell.loss_pct,
            "measured": result.value,
            "zone": f"{permitted.low:{form}}\n{permitted.high:{form}}" if permitted else None,
            "reference": result.reference,
            "difference": result.difference,
            "verdict": result.status,
            "mark": colours.MARKS[result.status],
        }


def heatmap(drawn):
    """Measured, zone and difference of a Heatmap, one above the other; bandwidths side by side."""
    data = list(rows(drawn))
    name, form, unit = grids.METRICS[drawn.metric]
    values = {"scale": _scale(colours.VIRIDIS, [0, colours.FULL_SCALE[drawn.metric]]), "title": f"{name}{unit}"}
    panels = [_panel(data, "measured", f"Measured: median {name}{unit}", values, form)]
    if drawn.zone is not None:
        full = colours.FULL_DIFFERENCE[drawn.metric]
        differences = {"scale": _scale(colours.PUOR, [-full, full]), "title": "difference"}
        panels.append(_panel(data, "reference", "Permissible zone: low and high", values, None, "zone"))
        panels.append(_panel(data, "difference", "Difference: measured minus reference", differences, f"+{form}"))
    return altair.vconcat(*panels, spacing=18).resolve_scale(color="independent").configure(font=_FONT)


def _scale(anchors, domain):
    return altair.Scale(range=[f"#{anchor}" for anchor in anchors], domain=_even(domain, len(anchors)), clamp=True)


def _even(domain, count):
    low, high = domain
    return [low + (high - low) * at / (count - 1) for at in range(count)]


def _panel(data, value, title, color, number_format, text=None):
    base = altair.Chart(altair.Data(values=data)).encode(
        x=altair.X("loss_pct:O", title="loss, %", axis=altair.Axis(labelAngle=0)),
        y=altair.Y("delay_ms:O", title="one-way delay, ms"),
    )
    boxes = base.mark_rect(stroke="white").encode(
        color=altair.Color(f"{value}:Q", scale=color["scale"], legend=altair.Legend(title=color["title"])),
    )
    # Black or white as on the pages: by the luminance of the colour, which Vega works out.
    dark = f"isValid(datum.{value}) && luminance(scale('color', datum.{value})) < 0.18"
    label = altair.Text(f"{text}:N") if text else altair.Text(f"{value}:Q", format=number_format)
    ink = altair.condition(dark, altair.value("white"), altair.value("black"))
    words = base.mark_text(fontSize=11, lineBreak="\n", baseline="middle", dy=-6 if text else 0).encode(
        text=label, color=ink
    )
    layers = [boxes, words]
    if value != "reference":
        bad = base.transform_filter("datum.verdict == 'violates' || datum.verdict == 'error'")
        layers.append(bad.mark_rect(filled=False, stroke="#d55e00", strokeWidth=3, fillOpacity=0))
        unclear = base.transform_filter("datum.verdict == 'inconclusive'")
        layers.append(
            unclear.mark_rect(filled=False, stroke="#e69f00", strokeWidth=2, strokeDash=[4, 3], fillOpacity=0)
        )
        # A frame is a colour too: the mark says which verdict it is.
        marks = base.mark_text(fontSize=9, baseline="top", align="right", dx=_CELL_PX / 2 - 3, dy=-_CELL_PX * 0.36 + 2)
        layers.append(
            marks.encode(text="mark:N", color=altair.condition(dark, altair.value("white"), altair.value("black")))
        )
    delays = len({row["delay_ms"] for row in data})
    losses = len({row["loss_pct"] for row in data})
    layered = altair.layer(*layers).properties(width=_CELL_PX * losses, height=_CELL_PX * 0.72 * delays)
    return layered.facet(
        column=altair.Column("bandwidth:N", title=None, sort=altair.SortField("bandwidth_mbps"))
    ).properties(title=altair.TitleParams(title, anchor="start"))


def comparison(section):
    """Utilization of several series (compare.Section) over loss: delays down, bandwidths across, the zone as a band."""
    points, zone = [], []
    for at, row in enumerate(section.rows):
        results = [series.utilization.results.get(row.cell) for series in section.series]
        place = {
            "bandwidth": f"{row.cell.bandwidth_mbps:g} Mbit/s", "bandwidth_mbps": row.cell.bandwidth_mbps,
            "delay": f"{row.cell.one_way_delay_ms:g} ms", "delay_ms": row.cell.one_way_delay_ms,
            "loss_pct": row.cell.loss_pct,
        }  # fmt: skip
        permitted = next((r.permitted for r in results if r is not None and r.permitted), None)
        if permitted:
            zone.append({**place, "low": permitted.low, "high": permitted.high, "at": at})
        for name, result in zip(section.names, results, strict=True):
            if result is not None and result.value is not None:
                points.append({**place, "scheme": name, "utilization": result.value})
    everything = altair.Data(values=[{"kind": "zone", **z} for z in zone] + [{"kind": "point", **p} for p in points])
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
            color=altair.Color("scheme:N", scale=_names(section, _SERIES_COLOURS), legend=_LEGEND),
            shape=altair.Shape("scheme:N", scale=_names(section, _SHAPES), legend=_LEGEND),
        ),
    ]
    return (
        altair.layer(*layers)
        .properties(width=120, height=70)
        .facet(
            row=altair.Row("delay:N", title=None, sort=altair.SortField("delay_ms")),
            column=altair.Column("bandwidth:N", title=None, sort=altair.SortField("bandwidth_mbps")),
            spacing=8,
        )
        .configure(font=_FONT, background="transparent")
        .configure_view(stroke="#999999")
    )


_LEGEND = altair.Legend(title=None, orient="top", columns=2, labelLimit=400)


def _names(section, values):
    repeated = [values[at % len(values)] for at in range(len(section.names))]
    return altair.Scale(domain=list(section.names), range=repeated)


def render(chart, form):
    """The chart as bytes in one of FORMATS."""
    specification = json.dumps(chart.to_dict())
    if form == "svg":
        return vl_convert.vegalite_to_svg(specification).encode()
    if form == "png":
        return vl_convert.vegalite_to_png(specification, scale=2)
    return vl_convert.vegalite_to_pdf(specification)


def svg(chart):
    """The chart as SVG text."""
    return render(chart, "svg").decode()

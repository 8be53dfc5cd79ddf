"""Heatmaps as charts (Vega-Altair), rendered to SVG or PNG by vl-convert: no browser, no network."""

import altair
import vl_convert

_CELL_PX = 46


def rows(heatmap):
    """One record for each cell, as the charts and the page's table read them."""
    for cell, result in heatmap.results.items():
        verdict = result.verdict
        permitted = verdict.permitted if verdict else None
        reference = permitted.basis["median"] if permitted else None
        yield {
            "bandwidth": f"{cell.bandwidth_mbps:g} Mbit/s",
            "bandwidth_mbps": cell.bandwidth_mbps,
            "delay_ms": cell.one_way_delay_ms,
            "loss_pct": cell.loss_pct,
            "n": result.n,
            "measured": result.value,
            "trials_low": result.low,
            "trials_high": result.high,
            "zone_low": permitted.low if permitted else None,
            "zone_high": permitted.high if permitted else None,
            "reference": reference,
            "difference": None if reference is None or result.value is None else result.value - reference,
            "verdict": str(verdict.status) if verdict else "not judged",
            "message": result.message or (verdict.reason if verdict else ""),
        }


def chart(heatmap):
    """Measured, zone and difference, one above the other; bandwidths side by side."""
    data = list(rows(heatmap))
    panels = [_panel(data, "measured", "Measured: median utilization", _sequential("utilization"), ".2f")]
    if heatmap.zone is not None:
        for row in data:
            row["zone"] = None if row["zone_low"] is None else f"{row['zone_low']:.2f}\n{row['zone_high']:.2f}"
        panels.append(
            _panel(data, "reference", "Permissible zone: low and high", _sequential("utilization"), None, "zone")
        )
        panels.append(_panel(data, "difference", "Difference: measured minus reference", _diverging(), "+.2f"))
    return (
        altair.vconcat(*panels, spacing=18).resolve_scale(color="independent").configure(font="DejaVu Sans, sans-serif")
    )


def _sequential(title):
    return {"scale": altair.Scale(scheme="viridis", domain=[0, 1]), "title": title}


def _diverging():
    return {"scale": altair.Scale(scheme="blueorange", domain=[-0.3, 0.3], clamp=True), "title": "difference"}


def _panel(data, value, title, color, number_format, text=None):
    base = altair.Chart(altair.Data(values=data)).encode(
        x=altair.X("loss_pct:O", title="loss, %", axis=altair.Axis(labelAngle=0)),
        y=altair.Y("delay_ms:O", title="one-way delay, ms"),
    )
    boxes = base.mark_rect(stroke="white").encode(
        color=altair.Color(f"{value}:Q", scale=color["scale"], legend=altair.Legend(title=color["title"])),
        tooltip=[
            f"{name}:N" for name in ("measured", "trials_low", "trials_high", "zone_low", "zone_high", "verdict", "n")
        ],
    )
    dark = (
        "datum.difference != null && abs(datum.difference) > 0.2" if value == "difference" else f"datum.{value} < 0.6"
    )
    label = altair.Text(f"{text}:N") if text else altair.Text(f"{value}:Q", format=number_format)
    words = base.mark_text(fontSize=11, lineBreak="\n", baseline="middle", dy=-6 if text else 0).encode(
        text=label, color=altair.condition(dark, altair.value("white"), altair.value("black"))
    )
    layers = [boxes, words]
    if value != "reference":
        bad = base.transform_filter("datum.verdict == 'violates' || datum.verdict == 'error'")
        layers.append(bad.mark_rect(filled=False, stroke="#d7191c", strokeWidth=3, fillOpacity=0))
        unclear = base.transform_filter("datum.verdict == 'inconclusive'")
        layers.append(
            unclear.mark_rect(filled=False, stroke="#fdae61", strokeWidth=2, strokeDash=[4, 3], fillOpacity=0)
        )
    delays = len({row["delay_ms"] for row in data})
    losses = len({row["loss_pct"] for row in data})
    layered = altair.layer(*layers).properties(width=_CELL_PX * losses, height=_CELL_PX * 0.72 * delays)
    return layered.facet(
        column=altair.Column("bandwidth:N", title=None, sort=altair.SortField("bandwidth_mbps"))
    ).properties(title=altair.TitleParams(title, anchor="start"))


def svg(heatmap):
    return vl_convert.vegalite_to_svg(chart(heatmap).to_json())


def png(heatmap, scale=1.5):
    return vl_convert.vegalite_to_png(chart(heatmap).to_json(), scale=scale)

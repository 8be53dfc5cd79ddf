"""Draw a trial over time as one standalone SVG, for reports that take pictures: the panels of traces.py, stacked."""

import xml.etree.ElementTree as xml

from conformance.model.trials.trial import Measurement
from conformance.reporting.html import traces

_WIDTH, _HEIGHT, _ROW, _LEFT, _TOP = 720, 90, 140, 10, 28
#: {style: (colour of Okabe and Ito (2008), dashes)}; dashes say the same without colour
_STROKES = {"link": ("#767676", "2 4"), "queue": ("#d55e00", "6 4")}
_FRONT = ("#0072b2", "")


def svg(measurement: Measurement) -> bytes | None:
    """Return the picture of a Measurement as SVG; None if its result line has no trace."""
    trace = measurement.evidence.get("trace")
    if not trace:
        return None
    end = traces.end_s([trace])
    panels = traces.panels({"median": trace}, end, measurement.setting.cell.bandwidth_mbps)
    size = {"width": str(_WIDTH + 2 * _LEFT), "height": str(_ROW * len(panels))}
    root = xml.Element("svg", {
        "xmlns": "http://www.w3.org/2000/svg", **size, "viewBox": f"0 0 {size['width']} {size['height']}",
        "font-family": "sans-serif", "font-size": "12",
    })  # fmt: skip
    xml.SubElement(root, "rect", width="100%", height="100%", fill="#ffffff")
    for at, panel in enumerate(panels):
        _panel(root, panel, at * _ROW, end)
    return xml.tostring(root)


def _panel(root: xml.Element, panel: traces.TracePanel, y: int, end: float) -> None:
    _text(root, _LEFT, y + 16, f"{panel.title}, {panel.unit}" + (f" ({panel.hint})" if panel.hint else ""))
    if panel.missing:
        _text(root, _LEFT, y + 40, panel.missing)
        return
    frame = {"x": str(_LEFT), "y": str(y + _TOP), "width": str(_WIDTH), "height": str(_HEIGHT)}
    xml.SubElement(root, "rect", frame, fill="none", stroke="#bbbbbb")
    scale = f"translate({_LEFT} {y + _TOP}) scale({_WIDTH / traces.WIDTH:g} {_HEIGHT / traces.HEIGHT:g})"
    group = xml.SubElement(root, "g", fill="none", transform=scale)
    for line in panel.lines:
        colour, dashes = _STROKES.get(line.style, _FRONT)
        for piece in line.pieces:
            xml.SubElement(group, "polyline", {
                "points": piece, "stroke": colour, "stroke-dasharray": dashes,
                "vector-effect": "non-scaling-stroke", "stroke-width": "1.5",
            })  # fmt: skip
    _text(root, _LEFT + 3, y + _TOP + 12, panel.top)
    _text(root, _LEFT + _WIDTH, y + _TOP + _HEIGHT + 14, f"{end:.3g} s", anchor="end")


def _text(root: xml.Element, x: int, y: int, words: str, anchor: str = "start") -> None:
    xml.SubElement(root, "text", {"x": str(x), "y": str(y), "text-anchor": anchor}).text = words

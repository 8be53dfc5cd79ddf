"""Make a badge that counts verdicts, in the colour of the worst: as JSON for shields.io, and as SVG."""

import json

import jinja2

from conformance.model.judging.verdict import Status, counts, overall
from conformance.reporting.heatmaps import Drawn
from conformance.reporting.marks import LOOKS
from conformance.support import paths


def message(drawn: Drawn) -> tuple[str, Status]:
    """Return (how many verdicts of each status, the worst status) over all metrics of all cells and points."""
    verdicts = [verdict for series in drawn.series for verdict in series.verdicts] + [row.verdict for row in drawn.rows]
    worst = overall(verdicts)
    return counts(verdict.status for verdict in verdicts) or str(worst), worst


def label(drawn: Drawn) -> str:
    """Return what the badge is about: the algorithm, if there is only one."""
    schemes = [series.scheme for series in drawn.series] + [row.scheme for row in drawn.rows]
    algorithms = {scheme.algorithm for scheme in schemes}
    return f"{algorithms.pop()} conformance" if len(algorithms) == 1 else "congestion control"


def endpoint(drawn: Drawn) -> bytes:
    """Return JSON for https://shields.io/badges/endpoint-badge."""
    words, verdict = message(drawn)
    document = {
        "schemaVersion": 1,
        "label": label(drawn),
        "message": words,
        "color": LOOKS[verdict].tone.colour.lstrip("#"),
        "isError": verdict is Status.ERROR,
    }
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def svg(drawn: Drawn) -> bytes:
    """Return the same as SVG, which sets the width that text is drawn in, whatever the font."""
    words, verdict = message(drawn)
    name = label(drawn)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.data("reports", "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    left, right = _width(name), _width(words)
    page = environment.get_template("badge.svg").render(
        label=name, message=words, colour=LOOKS[verdict].tone.colour, left=left, right=right
    )
    return page.encode()


def _width(text: str) -> int:
    """Return the width in px of text in 11 px sans-serif, with some room on both sides."""
    return round(6.6 * len(text)) + 12

"""One self-contained HTML page: heatmaps, zones, differences, and every cell in a table."""

import jinja2
import markupsafe

from conformance import __version__, paths
from conformance.model.errors import UserError
from conformance.reporting import charts, terminal


def render(heatmaps):
    """The page as text. Everything that came from a stack is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(paths.data("reports", "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    sections = [
        {
            "heatmap": heatmap,
            "summary": terminal.summary(heatmap),
            "chart": markupsafe.Markup(charts.svg(heatmap)),  # made by vl-convert from numbers and our own words
            "rows": list(charts.rows(heatmap)),
        }
        for heatmap in heatmaps
    ]
    return environment.get_template("heatmaps.html").render(sections=sections, version=__version__)


def write(heatmaps, target):
    """Write the page, and beside it each heatmap as PNG. Raises UserError."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(render(heatmaps), encoding="utf-8")
        for heatmap in heatmaps:
            name = f"{heatmap.scheme_id.replace('/', '-')}-{heatmap.profile_digest}-{heatmap.lab_digest}.png"
            (target.parent / name).write_bytes(charts.png(heatmap))
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}", "choose another --out") from None

"""Draw heatmaps of split paths (measured rate, predicted rate and its error) as SVG and PNG."""

import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import altair

from conformance.model.groups import grouped
from conformance.reporting import charts
from conformance.support import files

if TYPE_CHECKING:
    from conformance.commands.split_accuracy import ComparedPanel, PanelPlace

_CELL_PX = 50
_ERROR_SHOWN = 0.3


def write(compared: "Iterable[ComparedPanel]", folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Write split-accuracy-SCHEME.svg and .png for each scheme; yield the path of each SVG. Raises UserError."""
    for scheme, panels in grouped((accuracy.algorithm, accuracy) for accuracy in compared).items():
        drawn = chart(panels)
        name = f"split-accuracy-{scheme.replace('/', '-')}"
        for form in ("png", "svg"):
            path = files.write(folder / f"{name}.{form}", charts.render(drawn, form, scale=1.5), "choose another --out")
        yield path


def chart(compared: "Sequence[ComparedPanel]") -> altair.VConcatChart:
    """Draw three heatmaps side by side for each panel of one scheme."""
    rows = []
    for accuracy in compared:
        top = max((v for v in (*accuracy.measured.values(), *accuracy.predicted.values()) if v is not None), default=1)
        mbps = altair.Scale(scheme="viridis", domain=[0, top])
        error = altair.Scale(scheme="blueorange", domain=[-_ERROR_SHOWN, _ERROR_SHOWN], clamp=True)
        rows.append(
            altair.hconcat(
                _heatmap(accuracy, accuracy.measured, "measured, Mbit/s", mbps, ".2f", f"datum.value < {0.6 * top}"),
                _heatmap(accuracy, accuracy.predicted, "predicted, Mbit/s", mbps, ".2f", f"datum.value < {0.6 * top}"),
                _heatmap(accuracy, accuracy.errors, "error", error, "+.0%", "abs(datum.value) > 0.2"),
            ).resolve_scale(color="independent")
        )
    drawing: altair.VConcatChart = altair.vconcat(*rows, spacing=24).configure(font="DejaVu Sans, sans-serif")
    return drawing


def _heatmap(
    compared: "ComparedPanel",
    values: "Mapping[PanelPlace, float | None]",
    title: str,
    scale: altair.Scale,
    number_format: str,
    dark: str,
) -> altair.LayerChart | altair.FacetChart:
    panel = compared.panel
    data = [{"row": row, "column": column, "value": values[row, column]} for row, column in panel.paths]
    rows = list(dict.fromkeys(row for row, _ in panel.paths))
    columns = list(dict.fromkeys(column for _, column in panel.paths))
    base = altair.Chart(altair.Data(values=data)).encode(
        x=altair.X("column:N", sort=columns, title=f"{panel.column_title}: client's + server's",
                   axis=altair.Axis(labelAngle=0)),
        y=altair.Y("row:N", sort=rows, title=panel.row_title),
    )  # fmt: skip
    boxes = base.mark_rect(stroke="white").encode(color=altair.Color("value:Q", scale=scale, legend=None))
    known = base.transform_filter("isValid(datum.value)")  # else the text would be the word null
    words = known.mark_text(fontSize=11).encode(
        text=altair.Text("value:Q", format=number_format),
        color=altair.condition(dark, altair.value("white"), altair.value("black")),
    )
    return altair.layer(boxes, words).properties(
        width=_CELL_PX * len(columns), height=0.7 * _CELL_PX * len(rows), title=f"{panel.title}: {title}"
    )

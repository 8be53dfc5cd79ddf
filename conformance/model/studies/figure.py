"""Read a study's figures: which points are drawn anew, and how. Pure; study.py reads the rest of the document."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance.model.errors import UserError, located
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Value
from conformance.model.studies.study_point import GROUP, Coordinates, StudyPoint, StudyQuantity

#: kinds of figures that show quantities by row and column; the document lists the quantities one by one
BY_CELL = ("table", "bars")
#: fields that BY_CELL figures do not take, and fields that only they take
_NOT_BY_CELL, _BY_CELL_ONLY = ("group", "x", "y", "lines", "panels", "log", "published"), ("rows", "columns")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A quantity in a table or in bars, and its published value (None: not published)."""

    row: str
    column: str
    quantity: StudyQuantity
    published: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the study that is drawn anew, of the kind `draws`.

    `x`, `y`, `lines`: the coordinates in which its quantities differ. `panels`: coordinates; there is a panel for each
    combination of their values. `metric`: "" if its cells have metrics of their own.
    """

    id: str
    title: str
    draws: str
    metric: str
    group: str | None
    x: str | None
    y: str | None
    lines: str | None
    panels: tuple[str, ...]
    log: bool
    published: tuple[Mapping[str, Any], ...]
    #: the points that it shows
    points: tuple[StudyPoint, ...]
    #: what a table or bars show instead
    cells: tuple[TableCell, ...] = ()

    def panel(self, point: StudyPoint) -> tuple[Value, ...]:
        """Return the coordinates of a point that say which panel it is in."""
        return tuple(point.coordinates()[name] for name in self.panels)


PointOf = Callable[[Coordinates], StudyPoint]
QuantityOf = Callable[[Coordinates], StudyQuantity]


def read(data: Sequence[Mapping[str, Any]], point_of: PointOf, quantity_of: QuantityOf) -> Iterator[Figure]:
    """Yield the figures of a document that satisfies the schema. Raises UserError with a JSON pointer."""
    ids: set[str] = set()
    for at, fields in enumerate(data):
        if fields["id"] in ids:
            raise UserError(f"/figures/{at}/id: two figures are called {fields['id']}")
        ids.add(fields["id"])
        if fields.get("metric", "") not in ("", *METRICS):
            raise UserError(f"/figures/{at}/metric: {fields['metric']!r} is not one of the metrics")
        by_cell = fields["draws"] in BY_CELL
        if strange := [name for name in (_NOT_BY_CELL if by_cell else _BY_CELL_ONLY) if name in fields]:
            raise UserError(f"/figures/{at}/{strange[0]}: a figure that draws {fields['draws']} does not take it")
        cells = tuple(_cells(f"/figures/{at}", fields, quantity_of)) if by_cell else ()
        points = () if by_cell else tuple(_points(f"/figures/{at}", fields, point_of))
        figure = Figure(
            id=fields["id"], title=fields["title"], draws=fields["draws"], metric=fields.get("metric", ""),
            group=fields.get("group"), x=fields.get("x"), y=fields.get("y"), lines=fields.get("lines"),
            panels=tuple(fields.get("panels", ())),
            log=fields.get("log", False), published=tuple(fields.get("published", ())), points=points, cells=cells,
        )  # fmt: skip
        _check(f"/figures/{at}", figure)
        yield figure


def _points(where: str, fields: Mapping[str, Any], point_of: PointOf) -> Iterator[StudyPoint]:
    """Yield the points of a figure's selection, or of each of its selections."""
    chosen = fields["at"] if isinstance(fields["at"], list) else [fields["at"]]
    for number, selection in enumerate(chosen):
        with located(f"{where}/at" + (f"/{number}" if isinstance(fields["at"], list) else "")):
            yield from map(point_of, product(selection))


def _cells(where: str, fields: Mapping[str, Any], quantity_of: QuantityOf) -> Iterator[TableCell]:
    columns = fields["columns"]
    for number, row in enumerate(fields["rows"]):
        published = row.get("published", [None] * len(columns))
        if len(published) != len(columns):
            raise UserError(f"{where}/rows/{number}/published: {len(published)} values for {len(columns)} columns")
        for column, value in zip(columns, published, strict=True):
            with located(f"{where}/rows/{number}"):
                quantity = quantity_of({**fields.get("at", {}), **row["at"], **column["at"]})
            yield TableCell(row=row["title"], column=column["title"], quantity=quantity, published=value)


def _check(where: str, figure: Figure) -> None:
    """Raise UserError if a point lacks a coordinate that the figure draws by, or a published value has no panel."""
    named = (name for name in (figure.x, figure.y, figure.lines, *figure.panels) if name not in (None, GROUP, "index"))
    for name in named:
        if any(name not in point.coordinates() for point in figure.points):
            raise UserError(f"{where}: not all of its points have a coordinate {name!r}")
    panels = set(map(figure.panel, figure.points))
    for number, published in enumerate(figure.published):
        if tuple(published.get("panel", ())) not in panels:
            raise UserError(f"{where}/published/{number}/panel: the figure has no such panel")


def product(selection: Mapping[str, Any]) -> Iterator[dict[str, Value]]:
    """Yield each combination of the values of a selection."""
    each = [value if isinstance(value, list) else [value] for value in selection.values()]
    for values in itertools.product(*each):
        yield dict(zip(selection, values, strict=True))

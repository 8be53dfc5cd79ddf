"""Prepare a study's tables for a page: what was seen of each cell, beside what was published."""

import dataclasses
import math

from conformance.model.studies.claims import Look, Seen
from conformance.model.studies.figure import Figure


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Names of columns, and rows of (name, cells); a cell is (what was seen, what was published)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def of(figure: Figure, look: Look) -> Table | None:
    """Return a figure as a Table; None if nothing of it was seen."""
    seen = {cell: look(cell.quantity) for cell in figure.cells}
    if not any(isinstance(one, Seen) for one in seen.values()):
        return None
    words: dict[str, list[tuple[str, str]]] = {}
    for cell, one in seen.items():
        published = "" if cell.published is None else f"{cell.published:g}"
        words.setdefault(cell.row, []).append((_seen(one) if isinstance(one, Seen) else "not measured", published))
    columns = dict.fromkeys(cell.column for cell in figure.cells)
    return Table(columns=tuple(columns), rows=tuple((row, tuple(cells)) for row, cells in words.items()))


def _seen(one: Seen) -> str:
    bounds = "" if one.low == one.high or math.isinf(one.high - one.low) else f" ({one.low:.4g} to {one.high:.4g})"
    return f"{one.median:.4g}{bounds}"

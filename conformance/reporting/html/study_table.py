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
    estimates = {cell: look(cell.quantity) for cell in figure.cells}
    if not any(isinstance(estimate, Seen) for estimate in estimates.values()):
        return None
    words: dict[str, list[tuple[str, str]]] = {}
    for cell, estimate in estimates.items():
        published = "" if cell.published is None else f"{cell.published:g}"
        words.setdefault(cell.row, []).append(
            (_seen(estimate) if isinstance(estimate, Seen) else "not measured", published)
        )
    columns = dict.fromkeys(cell.column for cell in figure.cells)
    return Table(columns=tuple(columns), rows=tuple((row, tuple(cells)) for row, cells in words.items()))


def _seen(estimate: Seen) -> str:
    bounds = (
        ""
        if estimate.low == estimate.high or math.isinf(estimate.high - estimate.low)
        else f" ({estimate.low:.4g} to {estimate.high:.4g})"
    )
    return f"{estimate.median:.4g}{bounds}"

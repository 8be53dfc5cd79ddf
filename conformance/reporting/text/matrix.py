"""Show the matrix of stacks and algorithms (`conformance matrix`) in a terminal and as Markdown."""

from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.judging.verdict import ALPHA
from conformance.reporting.marks import LOOKS
from conformance.reporting.text.markdown import table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.matrix import Matrix, MatrixRow

_RATE = f"false alarms in at most {ALPHA:.0%} of the runs of a row (Holm over its cells)"
_HEADER = ("stack", "algorithm", "called", "verdict", "verdicts (+ above, - below the zone)", "wall s a trial")


def show(matrix: "Matrix", console: rich.console.Console) -> None:
    by = f"grid {matrix.grid}" if matrix.grid else "smoke cells"
    drawn = rich.table.Table(title=f"every adapter and algorithm, by {by}", title_justify="left")
    for column in _HEADER[:-1]:
        drawn.add_column(column, overflow="fold")
    drawn.add_column(_HEADER[-1], justify="right")
    last = None
    for row in matrix.rows:
        drawn.add_row(
            row.stack if row.stack != last else "",
            row.algorithm,
            row.called,
            rich.text.Text(row.verdict, LOOKS[row.verdict].style),
            row.what,
            _wall(row),
        )
        last = row.stack
    console.print(drawn)
    console.print(_RATE, soft_wrap=True)


def markdown(matrix: "Matrix") -> str:
    """Return the same table as Markdown, for a page."""
    rows = [(row.stack, row.algorithm, row.called, row.verdict, row.what, _wall(row)) for row in matrix.rows]
    return "\n".join([*table(_HEADER, rows), "", f"{_RATE[0].upper()}{_RATE[1:]}."]) + "\n"


def _wall(row: "MatrixRow") -> str:
    return "" if row.wall_s is None else f"{row.wall_s:.2f}"

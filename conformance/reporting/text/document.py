"""Terminal text of `conformance dev document`."""

from typing import TYPE_CHECKING

import rich.console

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.document_check import DraftChanges
    from conformance.commands.document_play import Played


def show_checked(checked: "DraftChanges", console: rich.console.Console) -> None:
    """Show what of the draft differs, and what of the adapter cites it."""
    if not checked.changes:
        console.print(f"nothing differs from {checked.version}", soft_wrap=True, markup=False)
        return
    for change in checked.changes:
        about = f" {change.name}" if change.name else ""
        cited = "; ".join(change.cited_by) or "nothing cites it"
        console.print(f"{change.section}{about} {change.what}: {cited}", soft_wrap=True, markup=False)
    console.print(f"{len(checked.changes)} parts differ from {checked.version}", soft_wrap=True, markup=False)


def show_played(played: "Played", console: rich.console.Console) -> None:
    """Show a line for each cell: the play's medians and, where there are any, those of guests."""
    for row in played.rows:
        beside = "" if row.measured is None else f"; in guests {row.measured:.3f}, ratio {row.ratio:.2f}"
        line = f"{row.cell.id}: utilization {row.utilization:.3f}, lost {row.lost_pct:.2f} %{beside}"
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    console.print(f"{played.called}: medians of {played.trials} plays", soft_wrap=True, markup=False)

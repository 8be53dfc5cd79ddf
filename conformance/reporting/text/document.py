"""Terminal text of `conformance dev document`."""

from typing import TYPE_CHECKING

import rich.console

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.document_check import Checked


def show_checked(found: "Checked", console: rich.console.Console) -> None:
    """Show what of the draft differs, and what of the adapter cites it."""
    if not found.changes:
        console.print(f"nothing differs from {found.version}", soft_wrap=True, markup=False)
        return
    for change in found.changes:
        about = f" {change.name}" if change.name else ""
        cited = "; ".join(change.cited_by) or "nothing cites it"
        console.print(f"{change.section}{about} {change.what}: {cited}", soft_wrap=True, markup=False)
    console.print(f"{len(found.changes)} parts differ from {found.version}", soft_wrap=True, markup=False)

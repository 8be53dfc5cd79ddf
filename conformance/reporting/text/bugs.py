"""Show what came of the catalogue of bugs (`conformance dev bugs run`), in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.catalogue.bugs import ABSOLUTE, EntryRun
from conformance.support.console import count, one_line, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.bugs import Ran


def show(ran: "Ran", console: rich.console.Console) -> None:
    """Show each entry, then how many were caught."""
    shams = {bug.id for bug, _ in ran.tally.shams}
    header = ("entry", "compare", "absolute", "named", "trials", "minutes", "what is said first")
    rows = [cells(run, sham=run.id in shams) for run in ran.runs]
    if rows:
        title = "Bugs that stacks had, and what catches them"
        console.print(table(header, rows, ("trials", "minutes"), fold=True, title=title))
    for name, why in ran.absent.items():
        console.print(f"not run: {name}: {one_line(why)}", soft_wrap=True, markup=False)
    console.print(summary(ran), style="bold", soft_wrap=True)
    if ran.recorded:
        console.print(f"recorded: {ran.recorded}", soft_wrap=True)


def cells(run: EntryRun, sham: bool) -> list[str]:
    """Return the cells of an entry's row."""
    cheapest = run.cheapest
    caught, not_caught = ("moved", "same") if sham else ("caught", "missed")
    return [
        run.id,
        caught if run.by("compare") else not_caught if run.ran("compare") else "not run",
        next(iter(run.tells(*ABSOLUTE)), not_caught),
        "" if cheapest is None or sham else "right" if run.named else "no",
        str(run.trials),
        f"{run.minutes:.1f}",
        str(one_line((cheapest or run.tiers[-1]).first)),
    ]


def summary(ran: "Ran") -> str:
    """Return how many entries were caught, and how many shams moved."""
    tally = ran.tally
    return (
        f"{count(len(tally.real), 'bug')}: {ran.caught} caught ({tally.named} of them named right),"
        f" {ran.missed} missed; {count(len(tally.shams), 'sham')}: {len(tally.moved)} moved; {len(ran.absent)} not run"
    )

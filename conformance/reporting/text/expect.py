"""Show known deviations and changes to them (`conformance expect`) in a terminal."""

from typing import TYPE_CHECKING

import rich.console

from conformance.model.judging.expectation import UNEXPLAINED
from conformance.support.console import count, one_line

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.expect import KnownDeviations, Update
    from conformance.model.judging.expectation import Expected


def show_known(known: "KnownDeviations", console: rich.console.Console) -> None:
    for entry in known.entries:
        cells = "all cells" if entry.ids is None else ", ".join(entry.ids)
        link = f" ({entry.link})" if entry.link else ""
        words = f"{entry.zone_id}: {_deviation(entry)}: {one_line(entry.reason)}{one_line(link)}: {cells}"
        console.print(words, soft_wrap=True)
    if not known.entries:
        console.print(f"{known.stack} has no known deviations: every violation of a zone is a failure")


def _deviation(entry: "Expected") -> str:
    return f"{entry.verdict} ({entry.side})" if entry.side else entry.verdict


def show(update: "Update", console: rich.console.Console) -> None:
    if update.left_out:
        console.print(f"left out: {'; '.join(update.left_out)}", soft_wrap=True)
    entries = count(len(update.after), "entry", "entries")
    if not update.written and not update.after and not update.path.exists():
        words = f"in these results, {update.stack} does what its zones say: there is nothing to record"
        console.print(words, soft_wrap=True)
        return
    if not update.written:
        console.print(f"{update.path}: unchanged, {entries}")
        return
    for sign, changed in (("-", update.gone), ("+", update.new)):
        for entry in sorted(changed, key=lambda e: e.zone_id):
            n = "all cells" if entry.cells is None else count(len(entry.cells), "cell")
            what = f"{entry.zone_id}, {n}: {_deviation(entry)}, {one_line(entry.reason)}"
            console.print(f"{sign} {what}", soft_wrap=True)
    unexplained = any(entry.reason == UNEXPLAINED for entry in update.after)
    ask = f"; give a reason for each that is {UNEXPLAINED!r}" if unexplained else ""
    console.print(f"{update.path}: {entries}{ask}", soft_wrap=True)

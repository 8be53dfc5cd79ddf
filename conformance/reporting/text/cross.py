"""Show how algorithms are judged by each other's zones (`conformance dev cross`) in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.judging.verdict import Status, counts, false_alarms, overall
from conformance.reporting.marks import LOOKS

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.cross import Cross


def show(cross: "Cross", console: rich.console.Console) -> None:
    table = rich.table.Table(
        title=f"{len(cross.cells)} smoke cells x {cross.trials} trials, judged by utilization and loss",
        title_justify="left",
    )
    table.add_column("measured", no_wrap=True)
    for algorithm in cross.algorithms:
        table.add_column(f"zone {algorithm}")
    for algorithm in cross.algorithms:
        row: list[str | rich.text.Text] = [cross.schemes[algorithm]]
        for other in cross.algorithms:
            verdicts = cross.verdicts[algorithm, other]
            row.append(rich.text.Text(counts(verdict.status for verdict in verdicts), LOOKS[overall(verdicts)].style))
        table.add_row(*row)
    console.print(table)
    each = len(next(iter(cross.verdicts.values())))
    console.print(f"for each zone: {false_alarms(each, 'Bonferroni')}", soft_wrap=True)
    for status, reason in sorted({(v.status, v.reason) for verdict in cross.verdicts.values() for v in verdict}):
        if status in (Status.ERROR, Status.UNSUPPORTED):
            console.print(f"{status}: {reason}", soft_wrap=True)

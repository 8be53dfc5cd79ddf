"""Show lines and a progress bar for work that takes long: measuring, tracing, building.

On a terminal there is a bar with the remaining time, which is removed when the work is done. Elsewhere, as in CI, a
line is printed now and then.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

import rich.console
import rich.progress
import rich.text

from conformance.model.errors import UserError
from conformance.support.console import one_line, printable
from conformance.support.notes import Bar

#: least time between two lines if there is no terminal, in seconds
LINE_S = 30.0
_BAR_CHARACTERS = 20


class ConsoleNotes:
    """The Notes of commands, shown on a console."""

    def __init__(self, console: rich.console.Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)

    def warn(self, line: str) -> None:
        self._console.print(line, style="yellow", soft_wrap=True)

    def error(self, line: str) -> None:
        self._console.print(rich.text.Text.assemble(("error ", "red"), printable(line)), soft_wrap=True)

    def mistake(self, error: UserError) -> None:
        for line in error.lines:
            self._console.print(f"  {line}", style="dim", markup=False, highlight=False, soft_wrap=True)
        self._console.print(f"conformance: {error}", style="red", soft_wrap=True)

    def bar(
        self, what: str, *, total: float | None = None, unit: str = "", budget_s: float | None = None
    ) -> contextlib.AbstractContextManager[Bar]:
        return bar(self._console, what, total=total, unit=unit, budget_s=budget_s)


@contextlib.contextmanager
def bar(
    console: rich.console.Console,
    what: str,
    *,
    total: float | None = None,
    unit: str = "",
    budget_s: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Bar]:
    """Show the progress of `what` ("measuring", "kernel 7.2") while the block runs, and remove the bar after it.

    `total`: how many pieces of work there are; `unit`: a plural noun for them ("trials"), without which a percentage is
    shown. `budget_s`: a time budget in seconds; how much of it is left is shown, too.
    """
    if not console.is_terminal:
        last = clock()

        def print_line(words: str, done: float, total: float | None, at_once: bool) -> None:
            nonlocal last
            if at_once or clock() - last >= LINE_S:
                last = clock()
                console.print(f"{what}: {words}", soft_wrap=True)

        yield Bar(print_line, total, unit, budget_s, clock)
        return
    columns = (
        rich.progress.TextColumn("{task.description}", markup=False),
        rich.progress.BarColumn(_BAR_CHARACTERS),
        rich.progress.TextColumn("{task.fields[words]}", markup=False),
    )
    with rich.progress.Progress(*columns, console=console, transient=True, refresh_per_second=4) as shown:
        task = shown.add_task(one_line(what), total=total, words="starting")

        def update(words: str, done: float, total: float | None, at_once: bool) -> None:
            shown.update(task, completed=done, total=total, words=words)

        yield Bar(update, total, unit, budget_s, clock)

"""Print to the console. Text of stacks, files and users is shown literally: brackets, colons and control characters in
it have no effect.
"""

import os
from collections.abc import Collection, Iterable
from typing import IO, Any, Literal

import rich.console
import rich.segment
import rich.table
import rich.text

from conformance.model.errors import UserError
from conformance.support.characters import is_shown


class Console(rich.console.Console):
    """A rich console without markup, emoji and highlighting, which escapes characters that no terminal should see."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[rich.segment.Segment]:
        # Text objects that were built elsewhere, such as cells of a table, pass through render() only.
        if isinstance(renderable, rich.text.Text) and (shown := printable(renderable.plain)) != renderable.plain:
            renderable = renderable.copy()
            renderable.plain = shown
        return super().render(renderable, options)

    def on_broken_pipe(self) -> None:
        """Go on in silence when the reader of the output has gone: results are still kept, and the exit status is still
        right.
        """
        self.quiet = True
        silence(self.file)


def table(
    header: Iterable[str], rows: Iterable[Iterable[Any]], right: Collection[str] = (), *,
    fold: bool = False, whole: Collection[str] = (), **options: Any,
) -> rich.table.Table:  # fmt: skip
    """Return a table whose columns in `right` are aligned to the right, and whose columns in `whole` are not wrapped.

    `fold`: words that are too long for a column are continued, and not cut off.
    """
    drawn = rich.table.Table(title_justify="left", **options)
    for name in header:
        justify: Literal["left", "right"] = "right" if name in right else "left"
        drawn.add_column(name, justify=justify, overflow="fold" if fold else "ellipsis", no_wrap=name in whole)
    for row in rows:
        drawn.add_row(*row)
    return drawn


def silence(stream: IO[str]) -> None:
    """Redirect a stream of this process to /dev/null."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def printable(text: str) -> str:
    r"""Return text with control characters (except newlines), characters that switch the direction of text, and lone
    surrogates written as \x1b or \ud800.
    """
    return "".join(c if is_shown(c) or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Return a count with its noun: 1 cell, 2 cells."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def one_line(text: str) -> str:
    """Return printable() text with newlines escaped, too: text after a newline could pass for a line of ours."""
    return printable(text).replace("\n", "\\n")


def mistake(error: UserError) -> str:
    """Return what to show of a user's mistake: its one_line() message and, indented below it, the last lines of the
    program that failed, if any.
    """
    return "\n  ".join(one_line(text) for text in (str(error), *error.lines))


def duration(seconds: float) -> str:
    """Return a length of time for people: 45 s, 3 min 20 s, 2 h 05 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def seconds_of(text: str) -> float:
    """Return the number of seconds in a text that duration() returned."""
    words = text.split()
    units = {"s": 1, "min": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True))

"""Define the one exception that a user sees: a sentence that names the cause and, if there is one, the remedy."""

import contextlib
from collections.abc import Iterator, Sequence


class UserError(Exception):
    """An error that the user can remedy. It is shown as one line, without a traceback, with exit status 2.

    `lines`: the last lines that a program printed, to be shown below it; the code that shows them escapes them.
    """

    def __init__(self, cause: object, mend: str | None = None, lines: Sequence[str] = ()) -> None:
        super().__init__(f"{cause}; {mend}" if mend else cause)
        self.cause, self.mend, self.lines = cause, mend, lines


@contextlib.contextmanager
def located(where: object, within: str = "") -> Iterator[None]:
    """Prefix UserErrors raised in the block with `where`, a file or a file and JSON pointer, and append `within`."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error.cause}{within}", error.mend, error.lines) from None

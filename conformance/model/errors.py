"""The one exception a user sees: a sentence that names the cause and, where there is one, the mend."""

import contextlib
from collections.abc import Iterator, Sequence


class UserError(Exception):
    """Something the user can mend. Shown as one line, without a traceback; exit status 2.

    `lines`: the last that a program printed, for below it; the code that shows them escapes them.
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

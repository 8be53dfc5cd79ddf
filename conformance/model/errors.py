"""The one exception a user sees: a sentence that names the cause and, where there is one, the mend."""

import contextlib


class UserError(Exception):
    """Something the user can mend. Shown as one line, without a traceback; exit status 2."""

    def __init__(self, cause, mend=None):
        super().__init__(f"{cause}; {mend}" if mend else cause)
        self.cause, self.mend = cause, mend


@contextlib.contextmanager
def located(where, within=""):
    """What goes wrong within is said to be there: a file, and the JSON pointer of a place in it; `within`: of what."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{where}: {error.cause}{within}", error.mend) from None

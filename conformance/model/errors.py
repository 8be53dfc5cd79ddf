"""The one exception a user sees: a sentence that names the cause and, where there is one, the mend."""


class UserError(Exception):
    """Something the user can mend. Shown as one line, without a traceback; exit status 2."""

    def __init__(self, cause, mend=None):
        super().__init__(f"{cause}; {mend}" if mend else cause)

"""Suggestions for names that were misspelt."""

import difflib
from collections.abc import Iterable

_CLOSE = 0.7
#: so many names that begin alike are a question, and more are a list
_MOST = 5


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return "did you mean bbrv3?" where one of the `known` names is close to `name`, else None.

    Where several begin with it, as with bbr, none is closer than the others, and all of them are named.
    """
    by_lower = {one.lower(): one for one in known}
    longer = [one for lower, one in by_lower.items() if name and lower.startswith(name.lower())]
    if len(longer) == 1:
        return f"did you mean {longer[0]}?"
    if 1 < len(longer) <= _MOST:
        return f"did you mean {', '.join(longer[:-1])} or {longer[-1]}?"
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_CLOSE)
    return f"did you mean {by_lower[close[0]]}?" if close else None


def mend(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to mend a misspelt name: the close one if there is any, and in either case `otherwise`."""
    guess = did_you_mean(name, known)
    return f"{guess} {otherwise}" if guess else otherwise

"""Suggestions for names that were misspelt."""

import difflib
from collections.abc import Iterable

_CLOSE = 0.7


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return "did you mean bbrv3?" where one of the `known` names is close to `name`, else None."""
    close = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=_CLOSE)
    return f"did you mean {close[0]}?" if close else None


def mend(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to mend a misspelt name: the close one if there is any, and in either case `otherwise`."""
    guess = did_you_mean(name, known)
    return f"{guess} {otherwise}" if guess else otherwise

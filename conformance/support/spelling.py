"""Suggestions for names that were misspelt."""

import difflib
from collections.abc import Iterable

_CLOSE = 0.7
#: the most names that are suggested at once
_MOST = 5


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return "did you mean bbrv3?" if one of the `known` names is close to `name`, else None.

    Names that begin with `name` are the closest, and all of them are suggested: bbr may be any of three.
    """
    by_lower = {word.lower(): word for word in known}
    close = [lower for lower in by_lower if name and lower.startswith(name.lower())]
    if not 0 < len(close) <= _MOST:
        close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=_CLOSE)
    if not close:
        return None
    *others, last = (by_lower[lower] for lower in close)
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


def mend(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return the remedy for a misspelt name: `otherwise`, after a suggestion if there is a close name."""
    guess = did_you_mean(name, known)
    return f"{guess} {otherwise}" if guess else otherwise

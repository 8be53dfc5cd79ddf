"""Say in words what was measured, what is permitted, and what that rests on."""

import math
from typing import TYPE_CHECKING

from conformance.model.judging.zone import Interval

if TYPE_CHECKING:
    from conformance.model.judging.verdict import Verdict

#: decimal places of values and bounds in a sentence, unless more are needed to tell them apart
DIGITS = 3


def interval(verdict: "Verdict", digits: int = DIGITS) -> str:
    """Return the interval of a verdict's median."""
    low, high = verdict.interval or (-math.inf, math.inf)
    if high == math.inf:
        return "too few for an interval"
    if low == -math.inf:
        return f"at most {high:.{digits}f}, as some timed out"
    return f"{100 * verdict.confidence:.5g}% interval {low:.{digits}f}..{high:.{digits}f}"


def permitted(verdict: "Verdict", before: str | None = None, digits: int = DIGITS) -> str:
    """Return the bounds of a verdict, and how likely what they rest on would be outside; `before`: see Rule.lines()."""
    who = "its earlier self" if before else "the reference itself"
    chance = "" if verdict.p is None else f"; {who} would be so far outside in {verdict.p:.1g} of runs"
    return f"{verdict.permitted.low:.{digits}f}..{verdict.permitted.high:.{digits}f}{chance}"


def basis(bounds: Interval, before: str | None = None) -> str:
    """Return the first of the bases of what is permitted, and the margin."""
    first = bounds.basis
    what = f"before, in {before}" if before else first.reference
    trials = f"median {first.median:.3f} of {first.n} trials ({first.min:.3f}..{first.max:.3f})"
    return f"{what}: {trials}; {bounds.margin.words}"

"""Round bounds outward, and compute how many digits people need to see that two numbers differ."""

import math
from collections.abc import Iterable

#: the most digits that `digits_to_tell` adds: a value that is even closer to a bound is no matter of rounding
_MOST_MORE_DIGITS = 6
#: tolerance for floating-point errors when bounds are rounded, in units of 0.0001
_SLACK = 1e-6


def rounded_outward(low: float, high: float) -> tuple[float, float]:
    """Return bounds rounded to 0.0001, away from each other. A floating-point error in 0.896, say, does not move a
    bound by a whole step.
    """
    return math.floor(low * 10_000 + _SLACK) / 10_000, math.ceil(high * 10_000 - _SLACK) / 10_000


def told(value: float, low: float, high: float, digits: int) -> str:
    """Return a value and the permitted interval in words, with `digits` or as many more as tell them apart."""
    enough = digits_to_tell([value], low, high, digits)
    return f"{value:.{enough}f}, permitted {low:.{enough}f}..{high:.{enough}f}"


def digits_to_tell(values: Iterable[float], low: float, high: float, digits: int) -> int:
    """Return how many digits, `digits` or more, tell values apart from the bounds of an interval.

    With that many, a value that is outside the interval is also outside when all are rounded. Otherwise a person might
    read that 0.06 violates 0.06 to 0.10, and could not see why.
    """
    known = list(values)

    def hidden(digits: int) -> bool:
        below, above = round(low, digits), round(high, digits)
        return any((v < low and round(v, digits) >= below) or (v > high and round(v, digits) <= above) for v in known)

    most = digits + _MOST_MORE_DIGITS
    return next((enough for enough in range(digits, most) if not hidden(enough)), most)

"""Compute the fewest trials that a violation takes, and refuse a session that can never have so many.

Such a session would always pass.
"""

import itertools
from collections.abc import Iterable

from conformance.model.errors import UserError
from conformance.model.judging import statistics
from conformance.model.judging.verdict import CONFIDENCE, level
from conformance.model.judging.zone import Interval, Zone
from conformance.model.networks.place import Point
from conformance.model.split.split_zone import SplitZone


def trials_to_violate(zone: Zone, family: int, places: Iterable[Point] | None = None) -> int:
    """Return the fewest trials with which any of these places (None: of all) can violate, if all trials are outside.

    `family`: how many places are judged. A place that is not counted cannot violate; the result is 0 if none is
    counted.
    """
    asked = (zone.intervals[place] for place in (zone.intervals if places is None else places))
    return min((_fewest(permitted, family) for permitted in asked if permitted.counted), default=0)


def refuse_blind(zone: Zone, family: int, most: int, places: Iterable[Point] | None = None) -> None:
    """Raise UserError if `most` trials can never show that a zone is violated at any of these places.

    `places`, `family`: see trials_to_violate().
    """
    needed = trials_to_violate(zone, family, places)
    if needed > most:
        raise UserError(
            f"zone {zone.id}: {most} trials can never show that one of {family} cells violates it",
            f"give --max-trials {needed}, fewer cells, or a zone that rests on more trials",
        )


def refuse_blind_split(zone: SplitZone, family: int, most: int) -> None:
    """Raise UserError if `most` trials can never show that a prediction is violated, by intervals of medians at the
    family's level.
    """
    needed = next(n for n in itertools.count(1) if 2 / 2**n <= level(family))
    if needed > most:
        raise UserError(
            f"zone {zone.id}: {most} trials can never show that a prediction from {family} cells violates it",
            f"give --max-trials {needed}, or fewer cells",
        )


def _fewest(permitted: Interval, family: int) -> int:
    known = (n for n in itertools.count(1) if 1 - 2 / 2**n >= CONFIDENCE)  # by the median's widest interval
    return next(n for n in known if _least_chance(n, permitted) <= level(family))


def _least_chance(n: int, permitted: Interval) -> float:
    """Return the p-value if all n trials lie beyond all values of every basis: no verdict has a smaller one."""
    return min(1.0, 2 * max(statistics.exceedance_p(n, n, basis.n) if basis.n else 0.5**n for basis in permitted.bases))

"""Which algorithm does it behave like? Scores against every algorithm's zones, and a conclusion that may be none.

A *feature* is a metric in a cell of a zone. A scheme's score for an algorithm is the share of that algorithm's features
whose median lies inside the permissible interval.
"""

import dataclasses
import re

from conformance.model import statistics
from conformance.model.setting import Cell
from conformance.model.trial import Outcome

#: of the features, to be called by an algorithm's name ...
ENOUGH = 0.9
#: ... of which so many must have been seen, ...
SEEN = 0.8
#: ... and by so much more than for any other algorithm
LEAD = 0.15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Miss:
    """A feature outside its interval; `value` is the median that was measured."""

    zone_id: str
    metric: str
    cell: Cell
    value: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Score:
    """How much of an algorithm's zones the measurements are inside of. `seen` of its `features` were measured."""

    algorithm: str
    features: int
    seen: int
    misses: tuple[Miss, ...]

    @property
    def share(self):
        return 1 - len(self.misses) / self.seen if self.seen else 0.0


def scores(zones, measurements):
    """Scores, best first, for every algorithm that `zones` are about.

    `measurements` is {cell: [Measurement]} under the zones' profile. Where a trial timed out, its utilization is an
    upper bound: a miss where that is below the zone, and else not seen.
    """
    found = []
    for algorithm in sorted({zone.algorithm for zone in zones}):
        features, seen, misses = 0, 0, []
        for zone in (z for z in zones if z.algorithm == algorithm):
            for cell, permitted in zone.intervals.items():
                features += 1
                value = _value(zone.metric, permitted, measurements.get(cell, ()))
                if value is None:
                    continue
                seen += 1
                if value not in permitted:
                    misses.append(
                        Miss(zone_id=zone.id, metric=zone.metric, cell=cell, value=value, low=permitted.low,
                             high=permitted.high)
                    )  # fmt: skip
        found.append(Score(algorithm=algorithm, features=features, seen=seen, misses=tuple(misses)))
    return sorted(found, key=lambda score: (-score.share, score.algorithm))


def _value(metric, permitted, measurements):
    """The median, or None where it is not known."""
    values = [m.value(metric) for m in measurements]
    if not values or None in values or not {m.outcome for m in measurements} <= {Outcome.OK, Outcome.TIMEOUT}:
        return None
    value = statistics.median(values)
    if any(m.outcome is Outcome.TIMEOUT for m in measurements) and not (
        metric == "utilization" and value < permitted.low
    ):
        return None
    return value


def conclusion(scores):
    """The algorithm's name, or None: inconclusive is better than wrong."""
    best, *others = scores
    second = max((other.share for other in others), default=0.0)
    enough = best.seen >= SEEN * best.features and best.share >= ENOUGH and best.share - second >= LEAD
    return best.algorithm if enough else None


def contradicts(called, found, known):
    """Whether what a scheme is called denies what it was found to be.

    A name without a version ("bbr") is true of every version; a name of no family that is `known` says nothing.
    """
    if _family(called) not in {_family(name) for name in known}:
        return False
    return _family(found) != called if _family(called) == called else found != called


def _family(name):
    return re.sub(r"v\d+$", "", name)

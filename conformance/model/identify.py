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
    """How much of an algorithm's zones the measurements are inside of."""

    algorithm: str
    features: int
    misses: tuple[Miss, ...]

    @property
    def share(self):
        return 1 - len(self.misses) / self.features


def scores(zones, measurements):
    """Scores, best first, for every algorithm that `zones` are about.

    `measurements` is {cell: [Measurement]} under the zones' profile. A trial that timed out or saw no value makes
    its feature a miss of no zone: it is left out for all of them. Raises ValueError where no feature is left.
    """
    found = []
    for algorithm in sorted({zone.algorithm for zone in zones}):
        features, misses = 0, []
        for zone in (z for z in zones if z.algorithm == algorithm):
            for cell, permitted in zone.intervals.items():
                values = [m.value(zone.metric) for m in measurements.get(cell, ()) if m.outcome is Outcome.OK]
                if not values or None in values:
                    continue
                features += 1
                value = statistics.median(values)
                if value not in permitted:
                    misses.append(
                        Miss(zone_id=zone.id, metric=zone.metric, cell=cell, value=value, low=permitted.low,
                             high=permitted.high)
                    )  # fmt: skip
        if not features:
            raise ValueError(f"nothing was measured that a zone of {algorithm} is about")
        found.append(Score(algorithm=algorithm, features=features, misses=tuple(misses)))
    return sorted(found, key=lambda score: (-score.share, score.algorithm))


def conclusion(scores):
    """The algorithm's name, or None: inconclusive is better than wrong."""
    best, *others = scores
    second = max((other.share for other in others), default=0.0)
    return best.algorithm if best.share >= ENOUGH and best.share - second >= LEAD else None


def contradicts(called, found, known):
    """Whether what a scheme is called denies what it was found to be.

    A name without a version ("bbr") is true of every version; one that is none of the `known` says nothing.
    """
    families = {_family(name) for name in known}
    if called in known:
        return called != found
    return called in families and called != _family(found)


def _family(name):
    return re.sub(r"v\d+$", "", name)

"""Identify the algorithm that a scheme behaves like: score it against every algorithm's zones, and conclude or not.

A *feature* is a metric in a cell of a zone. A scheme's score for an algorithm is the share of that algorithm's features
whose median lies where trials of that algorithm may lie. An identification rests on few trials of a cell, often one, so
it uses the interval for single trials (Interval.of_trials), not that for medians.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence

from conformance.model.judging import statistics
from conformance.model.judging.verdict import permitted_to
from conformance.model.judging.zone import Interval, Zone
from conformance.model.metrics.metric import Timeout
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point
from conformance.model.trials.trial import Measurement, Outcome

#: a scheme is identified as an algorithm if it matches at least this share of the algorithm's seen features, ...
ENOUGH = 0.9
#: ... if at least this share of the algorithm's features was seen, ...
SEEN = 0.8
#: ... and if its share of matches is larger by at least this much than for any other algorithm
LEAD = 0.15
#: An algorithm is named by at least so many seen features. Recorded references show 12 to 15 in a trace without random
#: loss, and at most 6 with. Without any loss, one of CUBIC, Reno, Vegas or Westwood+ shows 6, which they nearly share.
LEAST_FEATURES = 8
#: rounding error of sums of fractions
_SLACK = 1e-9
#: a lead of fewer features does not make an algorithm the only nearest one: one cell more or less may reverse it
_CLEAR_FEATURES = 2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A feature outside its interval; `value` is the median that was measured."""

    SHOWN = ("zone=zone_id", "metric", "cell", "median=value", "permitted")

    #: For a flow of a scenario, the scheme that was traced in its place.
    zone_id: str
    metric: str
    cell: Point
    value: float
    low: float
    high: float

    @property
    def permitted(self) -> tuple[float, float]:
        return self.low, self.high


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyScore:
    """How well measurements match an algorithm's zones."""

    SHOWN = ("algorithm", "features", "seen=visible", "inside", "share", "misses")

    algorithm: str
    #: A feature is a metric in a cell of a zone.
    features: int
    #: Features that were measured.
    visible: int
    misses: tuple[Miss, ...]

    @property
    def inside(self) -> int:
        """How many of the measured features lie inside their intervals."""
        return self.visible - len(self.misses)

    @property
    def share(self) -> float:
        """The share of the seen features that lie inside their intervals; 0 if none was seen."""
        return 1 - len(self.misses) / self.visible if self.visible else 0.0


def scores(
    zones: Iterable[Zone], measurements: Mapping[Cell, Sequence[Measurement]], called: str = ""
) -> list[IdentifyScore]:
    """Return scores, best first, for every algorithm that `zones` are about.

    Among equal scores, the algorithm that the scheme is `called` comes first. `measurements` is {cell: [Measurement]}
    under the zones' profile. If a trial timed out, its utilization is an upper bound: the feature is a miss if the
    bound is below the zone, and otherwise not seen.
    """
    zones, unranked = list(zones), []
    for algorithm in sorted({zone.algorithm for zone in zones}):
        features, visible = 0, 0
        misses: list[Miss] = []
        for zone in (z for z in zones if z.algorithm == algorithm):
            for cell, permitted in zone.by_cell.items():
                features += 1
                measured = measurements.get(cell, ())
                permitted, _ = permitted_to(permitted, measured)
                value = _value(zone.metric, permitted, measured)
                if value is None:
                    continue
                visible += 1
                if missed := miss(zone, cell, value, permitted):
                    misses.append(missed)
        unranked.append(IdentifyScore(algorithm=algorithm, features=features, visible=visible, misses=tuple(misses)))
    return sorted(unranked, key=lambda s: (-s.share, called not in (s.algorithm, _family(s.algorithm)), s.algorithm))


def miss(zone: Zone, cell: Cell, value: float, permitted: Interval) -> Miss | None:
    """Return the Miss of a value, or None if a trial of the zone's algorithm may have the value.

    `permitted`: the zone's interval in the cell, for packets of the size that the trials had.
    """
    low, high = permitted.of_trials
    if low <= value <= high:
        return None
    return Miss(zone_id=zone.id, metric=zone.metric, cell=cell, value=value, low=low, high=high)


def _value(metric: str, permitted: Interval, measurements: Sequence[Measurement]) -> float | None:
    """Return the median, or None if it is not known."""
    values = [value for m in measurements if (value := m.value(metric)) is not None]
    unseen = not values or len(values) < len(measurements)
    if unseen or not {m.outcome for m in measurements} <= {Outcome.OK, Outcome.TIMEOUT}:
        return None
    value = float(statistics.median(values))
    if any(m.outcome is Outcome.TIMEOUT for m in measurements) and not (
        METRICS[metric].timeout is Timeout.UPPER_BOUND and value < permitted.of_trials[0]
    ):
        return None
    return value


def conclusion(scores: Sequence[IdentifyScore]) -> str | None:
    """Return the algorithm's name, or None: inconclusive is better than wrong."""
    best, *others = scores
    second = max((other.share for other in others), default=0.0)
    enough = best.visible >= max(SEEN * best.features, LEAST_FEATURES) and best.share >= ENOUGH
    leads = best.share - second >= LEAD - _SLACK and len(nearest(scores)) == 1
    return best.algorithm if enough and leads else None


def nearest(scores: Sequence[IdentifyScore]) -> list[IdentifyScore]:
    """Return the best of `scores`, ordered as by scores(), and all others that it leads by fewer than two features."""
    best = scores[0]
    return [score for score in scores if (best.share - score.share) * best.visible < _CLEAR_FEATURES - _SLACK]


def checkable(called: str, known: Iterable[str]) -> bool:
    """Return whether a scheme's name can be checked: whether its family is `known`."""
    return _family(called) in {_family(name) for name in known}


def contradicts(called: str, conclusion: str, known: Iterable[str]) -> bool:
    """Return whether the name of a scheme contradicts the algorithm that it was found to be.

    A name without a version ("bbr") fits every version. A name whose family is not `known` contradicts nothing.
    """
    if not checkable(called, known):
        return False
    return _family(conclusion) != called if _family(called) == called else conclusion != called


def _family(name: str) -> str:
    return re.sub(r"v\d+$", "", name)

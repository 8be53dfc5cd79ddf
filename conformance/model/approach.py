"""How near trials come to a violation: what false alarms are watched by."""

import math
from collections.abc import Sequence

from conformance.model import chance, modes
from conformance.model.metrics import METRICS
from conformance.model.place import Place
from conformance.model.trial import Measurement, Outcome
from conformance.model.verdict import level, permitted_to
from conformance.model.zone import Zone


def approach(zone: Zone, place: Place, measurements: Sequence[Measurement], family: int) -> float:
    """Return how near measurements of a place come to a violation: the chance of a basis over that which convicts.

    1 and less would be enough, if the interval of the median is outside, too; 2 over the level is as far inside as can
    be. Raises ValueError where a trial has no value.
    """
    values = [zone.value(m) for m in measurements]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        raise ValueError(f"{zone.metric} was not seen in every trial")
    permitted, _ = permitted_to(zone.intervals[place], measurements)
    lowest = [-math.inf if m.outcome is Outcome.TIMEOUT else v for m, v in zip(measurements, known, strict=True)]
    least = min(chance.above(lowest, permitted), chance.below(known, permitted))
    shares = None if -math.inf in lowest else modes.shares(known, permitted, METRICS[zone.metric])
    return (least if shares is None else 2 * min(least, shares.p)) / level(family)

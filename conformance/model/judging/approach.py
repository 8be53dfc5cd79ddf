"""Compute how near the trials of a place come to a violation; commands/false_alarms.py watches this number."""

import math
from collections.abc import Sequence

from conformance.model.judging import chance, modes
from conformance.model.judging.verdict import level, permitted_to
from conformance.model.judging.zone import Zone
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Outcome


def approach(zone: Zone, place: Point, measurements: Sequence[Measurement], family: int) -> float:
    """Return how near a place's measurements come to a violation: their p-value over the one that a violation needs.

    A result of 1 or less suffices for a violation if the interval of the median is outside as well. The greatest
    possible result, 2 / level(family), means as far inside as can be. Raises ValueError if a trial has no value.
    """
    values = [zone.value(m) for m in measurements]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        raise ValueError(f"{zone.metric} has no value in some trials")
    permitted, _ = permitted_to(zone.intervals[place], measurements)
    lowest = [-math.inf if m.outcome is Outcome.TIMEOUT else v for m, v in zip(measurements, known, strict=True)]
    least = min(chance.above(lowest, permitted), chance.below(known, permitted))
    shares = None if -math.inf in lowest else modes.shares(known, permitted, METRICS[zone.metric])
    return (least if shares is None else 2 * min(least, shares.p)) / level(family)

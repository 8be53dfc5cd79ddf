"""Give each trial one value of each feature, so that two builds can be compared (model/studies/comparison.py).

`conformance why` takes the samples of all seeds together. A comparison needs independent values, and only trials are
independent of each other. So each trial's value is the median or mean of its own samples.
"""

from collections.abc import Mapping, Sequence

import numpy

from conformance.model.diagnosis import features, ranking
from conformance.model.diagnosis.feature_table import CELLS, FEATURES, PROFILE, Feature, label_of
from conformance.model.diagnosis.flow import Flow
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import MATTERS, Quantity, Tolerance

#: of one trial: {feature's name: its samples, in order of time}
FeatureSamples = Mapping[str, Sequence[float]]
#: of one side: {cell's name: {seed: FeatureSamples}}
SideSamples = Mapping[str, Mapping[int, FeatureSamples]]
#: decimal places of a sample that are kept: more are the clocks' rounding
_DIGITS = 9


def sampled(cell: str, flow: Flow) -> dict[str, list[float]]:
    """Return the samples that one trial in a cell has of each feature that is read there."""
    names = dict.fromkeys(feature.name for feature in FEATURES if feature.cell == cell)
    return {name: [round(float(v), _DIGITS) for v in getattr(features, name)(flow).values] for name in names}


def told(algorithm: str) -> list[Feature]:
    """Return the features that say something about an algorithm: BBR has others than senders that a loss slows down."""
    return [feature for feature in FEATURES if label_of(feature, algorithm) is not None]


def quantity(
    feature: Feature, algorithm: str, matters: float = MATTERS, place: Point | None = None, profile: str = PROFILE,
    is_steady: bool = True,
) -> Quantity:  # fmt: skip
    """Return a feature as a Quantity to compare; `matters`: the share of the feature's tolerance that counts.

    `place`, `profile`: where it is read, if that is no cell of feature_table.py. `is_steady`: see Quantity.
    """
    tolerance = (
        Tolerance(relative=feature.tolerance**matters - 1)
        if feature.ratio
        else Tolerance(absolute=feature.tolerance * matters)
    )
    return Quantity(
        algorithm=algorithm, name=feature.name, place=place or CELLS[feature.cell][0], profile=profile,
        tolerance=tolerance,
        digits=feature.digits, weight=feature.weight, label=label_of(feature, algorithm), is_steady=is_steady,
    )  # fmt: skip


def seeds(feature: Feature, side: SideSamples) -> list[int]:
    """Return the seeds of the trials that show a feature, be they too few for a value."""
    return [seed for seed, of in side.get(feature.cell, {}).items() if of.get(feature.name)]


def values(feature: Feature, side: SideSamples) -> dict[int, float]:
    """Return {seed: the feature's value} of the trials that show it; empty if it was seen too seldom."""
    by_seed = {seed: side[feature.cell][seed][feature.name] for seed in seeds(feature, side)}
    if sum(map(len, by_seed.values())) < feature.least:
        return {}
    by = 1.0
    if feature.of_kept:
        if (kept := _kept(side)) is None:
            return {}
        by = kept
    return {seed: value / by for seed, value in middles(feature, by_seed).items()}


def middles(feature: Feature, samples: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return {seed: the median of its samples, or the mean if the feature asks for that}, in order of seed."""
    middle = numpy.mean if feature.mean else numpy.median
    return {seed: float(middle(of)) for seed, of in sorted(samples.items())}


def reading(feature: Feature, side: SideSamples) -> ranking.Reading | None:
    """Return the Reading that `why` would take of all of a side's trials together; None if it was seen too seldom."""
    each = values(feature, side)
    if not each:
        return None
    by = _kept(side) if feature.of_kept else None
    everything = numpy.concatenate([side[feature.cell][seed][feature.name] for seed in each]) / (by or 1.0)
    low, high = (float(x) for x in numpy.percentile(everything, (25, 75)))
    middle = numpy.mean if feature.mean else numpy.median
    return ranking.Reading(
        value=float(middle(everything)), low=low, high=high, n=len(everything),
        spread=(max(each.values()) - min(each.values())) / 2, sightings=(),
    )  # fmt: skip


def sentence(feature: Feature, side: SideSamples) -> str:
    """Return what a side does, in words; "" if the feature was seen too seldom."""
    reading_here = reading(feature, side)
    if reading_here is None:
        return ""
    return reading_here.says(feature)


def _kept(side: SideSamples) -> float | None:
    """Return the share of the window that isolated losses leave; None if it is unknown, or losses leave all of it."""
    feature = next(feature for feature in FEATURES if feature.name == "kept")
    samples = [v for of in side.get(feature.cell, {}).values() for v in of.get(feature.name, ())]
    if len(samples) < feature.least:
        return None
    kept = float(numpy.median(samples))
    return kept if 0 < kept < ranking.KEPT_ALL else None

"""Read what both sides of a comparison do when their network or application changes, in networks of clauses.

Transfers over constant networks show none of it: a build that is deaf to marks behaves there as any other.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence

from conformance.catalogue import clauses
from conformance.model.clauses import changes
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Invisible, View
from conformance.model.diagnosis import by_trial, ranking
from conformance.model.diagnosis.feature_table import Feature, label_of
from conformance.model.diagnosis.samples import Samples
from conformance.model.errors import UserError
from conformance.model.judging.question import Key
from conformance.model.networks.setting import Setting
from conformance.model.studies.comparison import Quantity, Values
from conformance.model.trials.trial import Measurement


def keys(algorithm: str) -> list[Key]:
    """Return the settings in which an algorithm shows what it does when something changes. Raises UserError."""
    return [
        (algorithm, clauses.setting(network))
        for name, network in changes.COMPARED_NETWORKS.items()
        if _features(algorithm, name)
    ]


def is_change(setting: Setting) -> bool:
    """Return whether a setting is one of keys(), of any algorithm."""
    return setting in _names()


def quantities(algorithm: str, setting: Setting, matters: float) -> dict[Quantity, Feature]:
    """Return {Quantity: the Feature that it is} of what a setting of keys() shows; `matters`: as in by_trial."""
    place = setting.point
    return {
        by_trial.quantity(feature, algorithm, matters, place, setting.profile): feature
        for feature in _features(algorithm, _names()[setting])
    }


def values(feature: Feature, measurements: Sequence[Measurement]) -> Values:
    """Return {seed: the feature's value} of the trials that show it; empty if it was seen too seldom."""
    samples = _samples(feature, measurements)
    if sum(map(len, samples.values())) < feature.least:
        return {}
    return by_trial.middles(feature, {seed: of.values.tolist() for seed, of in samples.items()})


def sentence(feature: Feature, measurements: Sequence[Measurement]) -> str:
    """Return what a side does, in words; "" if it was seen too seldom."""
    reading = ranking.of_samples(feature, _samples(feature, measurements))
    return reading.says(feature) if reading else ""


def why_invisible(measurements: Sequence[Measurement], features: Iterable[Feature]) -> str:
    """Return why trials of a setting show none of its features, as the end of a sentence."""
    for measurement in measurements:
        if measurement.message:
            return f"{measurement.outcome}: {measurement.message}"
        for feature in features:
            try:
                OBSERVABLES[feature.name].samples(View.of(measurement))
            except (Invisible, UserError) as why:
                return str(why)
    return "it was seen too seldom"


def _samples(feature: Feature, measurements: Sequence[Measurement]) -> dict[int, Samples]:
    by_seed = {}
    for measurement in measurements:
        try:
            by_seed[measurement.trial.seed] = View.of(measurement)
        except Invisible:
            continue
    return changes.samples(feature, by_seed)


@functools.cache
def _names() -> Mapping[Setting, str]:
    return {clauses.setting(network): name for name, network in changes.COMPARED_NETWORKS.items()}


def _features(algorithm: str, name: str) -> list[Feature]:
    return [f for f in changes.COMPARED if f.cell == name and label_of(f, algorithm) is not None]

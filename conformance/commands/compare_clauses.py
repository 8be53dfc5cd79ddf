"""Read what both sides of a comparison do in networks of clauses.

There, networks and applications change. Transfers over constant networks show none of it: a build that is deaf to marks
behaves there as any other. What clauses look at is compared by its values, and not only by whether these are permitted:
a build that violates a clause before and after a change has the same verdict, whatever the change did.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from conformance.catalogue import clauses
from conformance.model.clauses import changes
from conformance.model.clauses.document import Clause
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.clauses.seen import Invisible, View
from conformance.model.diagnosis import by_trial, ranking
from conformance.model.diagnosis.feature_table import Feature, label_of
from conformance.model.diagnosis.samples import Samples
from conformance.model.errors import UserError
from conformance.model.judging import statistics
from conformance.model.judging.question import Key
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.networks.setting import Setting
from conformance.model.studies.comparison import Quantity, Tolerance, Values
from conformance.model.trials.trial import Measurement

#: what two implementations may differ by, as a share of a value, and in units of its last digit
_RELATIVE, _DIGITS = 2 * RELATIVE_MARGIN, 2


@dataclasses.dataclass(frozen=True, slots=True)
class SideReading:
    """How a quantity is read from a side's trials.

    `values` returns {seed: value} of the trials that show it, none if too few do; `seeds` those of all trials that show
    it; `sentence` what the side does, in words, "" if it is not shown.
    """

    values: Callable[[Sequence[Measurement]], Values]
    seeds: Callable[[Sequence[Measurement]], Collection[int]]
    sentence: Callable[[Sequence[Measurement]], str]


def changing(algorithm: str) -> list[Key]:
    """Return the settings in which an algorithm shows what it does when something changes. Raises UserError.

    Of BBR, those that show something of BBR alone come first, the shortest of them first: one trial of each tells 44 of
    72 deviations (clauses/plays.json) in two minutes of transfers, where the order of the list tells 14 in three.
    """

    def turn(setting: Setting) -> float:
        of_bbr = any(feature.label[0] is None for feature in _features(algorithm, setting))
        return setting.transfer_s if of_bbr else math.inf

    settings = [setting for setting in _names() if _features(algorithm, setting)]
    return [(algorithm, setting) for setting in sorted(settings, key=turn)]


def is_change(setting: Setting) -> bool:
    """Return whether a setting is one of changing(), of any algorithm."""
    return setting in _names()


def keys(algorithm: str, transport: str) -> list[Key]:
    """Return the settings of the clauses that are about an algorithm of a stack with this transport."""
    settings = {
        clauses.setting(clause.network): None
        for clause in clauses.all_clauses()
        if transport in clause.transports and algorithm in clause.algorithms
    }
    return [(algorithm, setting) for setting in settings]


def readings(key: Key, matters: float, with_clauses: bool) -> dict[Quantity, SideReading]:
    """Return what a setting shows: features of what changes, and what else clauses look at, if `with_clauses`.

    `matters`: as in Comparison.
    """
    algorithm, setting = key
    is_steady = _names().get(setting) in changes.STEADY
    shown = {
        by_trial.quantity(feature, algorithm, matters, setting.point, setting.profile, is_steady): SideReading(
            functools.partial(_values_of_feature, feature),
            functools.partial(_seeds_of_feature, feature),
            functools.partial(_sentence_of_feature, feature),
        )
        for feature in _features(algorithm, setting)
    }
    names = {quantity.name for quantity in shown}
    for clause in _by_setting().get(setting, {}).get(algorithm, {}).values() if with_clauses else ():
        if clause.observable.name not in names:
            shown[_quantity(clause, key, matters)] = SideReading(
                functools.partial(_values_of_clause, clause),
                functools.partial(_seeds_of_clause, clause),
                functools.partial(_sentence_of_clause, clause),
            )
    return shown


def why_invisible(key: Key, measurements: Sequence[Measurement]) -> str:
    """Return why trials of a setting that changes show none of its features, as the end of a sentence."""
    for measurement in measurements:
        if measurement.message:
            return f"{measurement.outcome}: {measurement.message}"
        for feature in _features(*key):
            try:
                OBSERVABLES[feature.name].samples(View.of(measurement))
            except (Invisible, UserError) as why:
                return str(why)
    return "it was seen too seldom"


@functools.cache
def _names() -> Mapping[Setting, str]:
    return {clauses.setting(network): name for name, network in changes.COMPARED_NETWORKS.items()}


def _features(algorithm: str, setting: Setting) -> list[Feature]:
    name = _names().get(setting)
    return [f for f in changes.COMPARED if f.cell == name and label_of(f, algorithm) is not None]


def _values_of_feature(feature: Feature, measurements: Sequence[Measurement]) -> Values:
    samples = _samples(feature, measurements)
    if sum(map(len, samples.values())) < feature.least:
        return {}
    return by_trial.middles(feature, {seed: of.values.tolist() for seed, of in samples.items()})


def _seeds_of_feature(feature: Feature, measurements: Sequence[Measurement]) -> Collection[int]:
    return _samples(feature, measurements).keys()


def _sentence_of_feature(feature: Feature, measurements: Sequence[Measurement]) -> str:
    reading = ranking.of_samples(feature, _samples(feature, measurements))
    return reading.says(feature) if reading else ""


def _samples(feature: Feature, measurements: Sequence[Measurement]) -> dict[int, Samples]:
    by_seed = {}
    for measurement in measurements:
        try:
            by_seed[measurement.trial.seed] = View.of(measurement)
        except Invisible:
            continue
    return changes.samples(feature, by_seed)


@functools.cache
def _by_setting() -> Mapping[Setting, Mapping[str, Mapping[str, Clause]]]:
    """Return {setting: {algorithm: {observable's name: the first clause that looks at it}}}."""
    first: dict[Setting, dict[str, dict[str, Clause]]] = {}
    for clause in clauses.all_clauses():
        for algorithm in clause.algorithms:
            by_name = first.setdefault(clauses.setting(clause.network), {}).setdefault(algorithm, {})
            by_name.setdefault(clause.observable.name, clause)
    return first


def _quantity(clause: Clause, key: Key, matters: float) -> Quantity:
    algorithm, setting = key
    observable = clause.observable
    return Quantity(
        algorithm=algorithm, name=observable.name, place=setting.point, profile=setting.profile,
        tolerance=Tolerance(absolute=_DIGITS * matters * 10.0**-observable.digits, relative=_RELATIVE * matters),
        digits=observable.digits, unit=observable.unit, label=clause.id,
    )  # fmt: skip


def _values_of_clause(clause: Clause, measurements: Sequence[Measurement]) -> Values:
    shown = _shown(clause, measurements)
    return shown if len(shown) >= min(clause.trials, len(measurements)) else {}


def _seeds_of_clause(clause: Clause, measurements: Sequence[Measurement]) -> Collection[int]:
    return _shown(clause, measurements).keys()


def _sentence_of_clause(clause: Clause, measurements: Sequence[Measurement]) -> str:
    """Return what a clause looks at, its value, and what the document permits."""
    values = _values_of_clause(clause, measurements).values()
    if not values:
        return ""
    middle = f"{statistics.median(values):.{clause.observable.digits}f} {clause.observable.unit}".strip()
    return f"{clause.observable.title} is {middle} ({clause.source}; permitted: {clause.permitted})"


def _shown(clause: Clause, measurements: Sequence[Measurement]) -> dict[int, float]:
    looks = {m.trial.seed: clause.observable.look(m) for m in sorted(measurements, key=lambda m: m.trial.seed)}
    return {
        seed: clause.observable.value(look) for seed, look in looks.items() if not isinstance(look, Invisible)
    }  # fmt: skip

"""Read what clauses look at, on both sides of a comparison: their values, and not only whether these are permitted.

A build that violates a clause before and after a change has the same verdict, whatever the change did.
"""

import functools
from collections.abc import Mapping, Sequence

from conformance.catalogue import clauses
from conformance.model.clauses.document import Clause
from conformance.model.clauses.seen import Invisible
from conformance.model.diagnosis.samples import Samples
from conformance.model.judging.question import Key
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.networks.setting import Setting
from conformance.model.studies.comparison import Quantity, Tolerance, Values
from conformance.model.trials.trial import Measurement

#: what two implementations may differ by, as a share of a value, and in units of its last digit
_RELATIVE, _DIGITS = 2 * RELATIVE_MARGIN, 2


def keys(algorithm: str, transport: str) -> list[Key]:
    """Return the settings of the clauses that are about an algorithm of a stack with this transport."""
    settings = {
        clauses.setting(clause.network): None
        for clause in clauses.all_clauses()
        if transport in clause.transports and algorithm in clause.algorithms
    }
    return [(algorithm, setting) for setting in settings]


def quantities(algorithm: str, setting: Setting, matters: float) -> dict[Quantity, Clause]:
    """Return {Quantity: the first Clause that looks at it} of what a setting shows; `matters`: as in Comparison."""
    return {
        Quantity(
            algorithm=algorithm, name=clause.observable.name, place=setting.point, profile=setting.profile,
            tolerance=Tolerance(
                absolute=_DIGITS * matters * 10.0**-clause.observable.digits, relative=_RELATIVE * matters
            ),
            digits=clause.observable.digits, unit=clause.observable.unit, label=clause.id,
        ): clause
        for clause in _by_setting().get(setting, {}).get(algorithm, {}).values()
    }  # fmt: skip


def values(clause: Clause, measurements: Sequence[Measurement]) -> Values:
    """Return {seed: value} of the trials that show what a clause looks at; empty if too few do."""
    found = {seed: clause.observable.value(of) for seed, of in _samples(clause, measurements).items()}
    return found if len(found) >= min(clause.trials, len(measurements)) else {}


def sentence(clause: Clause, measurements: Sequence[Measurement]) -> str:
    """Return what a clause looks at, its value on a side, and what the document permits."""
    by_seed = sorted(values(clause, measurements).values())
    if not by_seed:
        return ""
    middle = by_seed[len(by_seed) // 2]
    value = f"{middle:.{clause.observable.digits}f} {clause.observable.unit}".strip()
    return f"{clause.observable.title} is {value} ({clause.source}; permitted: {clause.permitted})"


def _samples(clause: Clause, measurements: Sequence[Measurement]) -> dict[int, Samples]:
    looked = {m.trial.seed: clause.observable.look(m) for m in sorted(measurements, key=lambda m: m.trial.seed)}
    return {seed: of for seed, of in looked.items() if not isinstance(of, Invisible)}


@functools.cache
def _by_setting() -> Mapping[Setting, Mapping[str, Mapping[str, Clause]]]:
    """Return {setting: {algorithm: {observable's name: the first clause that looks at it}}}."""
    found: dict[Setting, dict[str, dict[str, Clause]]] = {}
    for clause in clauses.all_clauses():
        for algorithm in clause.algorithms:
            of = found.setdefault(clauses.setting(clause.network), {}).setdefault(algorithm, {})
            of.setdefault(clause.observable.name, clause)
    return found

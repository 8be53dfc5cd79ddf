"""Simulate how often `identify` is right, inconclusive and wrong, from the references' own trials.

The implementation to be identified is made up. Its value of a feature is the median of trials drawn from those of an
algorithm's reference, times a random factor. Without a spread of these factors it is the reference itself; with a
spread it is another honest implementation. The random draws are the same in every run.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from conformance.model.judging import statistics
from conformance.model.judging.zone import Zone
from conformance.model.networks.place import Cell
from conformance.model.studies.identify import IdentifyScore, Miss, conclusion, miss

#: {metric: standard deviation of the factors of another honest implementation}; other metrics have utilization's
SPREAD = {"utilization": 0.08, "queue_mean_bdp": 0.15}
RUNS = 100


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationRates:
    """Shares of simulated identifications, over all algorithms that can be named. `runs`: how many for each algorithm.

    `spread`: whether the implementation differs from the references as honest ones do.
    """

    trials: int
    runs: int
    spread: bool
    right: float
    inconclusive: float
    wrong: float


def rates(zones: Sequence[Zone], trials: int, spread: bool, runs: int = RUNS) -> IdentificationRates:
    """Return the IdentificationRates with `trials` trials in each cell. `spread`: as in IdentificationRates."""
    algorithms = sorted({zone.algorithm for zone in zones})
    conclusions = []
    for at, algorithm in enumerate(algorithms):
        chance = np.random.default_rng(at)
        for _ in range(runs):
            conclusions.append((algorithm, conclusion(_scores(zones, _seen(zones, algorithm, trials, spread, chance)))))
    right = sum(algorithm == named for algorithm, named in conclusions)
    none = sum(named is None for _, named in conclusions)
    n = len(conclusions)
    return IdentificationRates(
        trials=trials, runs=runs, spread=spread, right=right / n, inconclusive=none / n, wrong=(n - right - none) / n
    )


#: {(metric, cell): median}
_Seen = dict[tuple[str, Cell], float]


def _seen(zones: Sequence[Zone], algorithm: str, trials: int, spread: bool, chance: np.random.Generator) -> _Seen:
    medians: _Seen = {}
    for zone in (zone for zone in zones if zone.algorithm == algorithm):
        sd = SPREAD.get(zone.metric, SPREAD["utilization"]) if spread else 0.0
        for cell, permitted in zone.by_cell.items():
            factor = max(float(chance.normal(1, sd)), 0.0)
            drawn = [float(chance.choice(permitted.basis.values)) for _ in range(trials)]
            value = factor * statistics.median(drawn)
            medians[zone.metric, cell] = min(value, 1.0) if zone.metric == "utilization" else value
    return medians


def _scores(zones: Sequence[Zone], drawn: _Seen) -> list[IdentifyScore]:
    by_algorithm: dict[str, tuple[int, list[Miss]]] = {}
    for zone in zones:
        features, misses = by_algorithm.get(zone.algorithm, (0, []))
        missed = (miss(zone, cell, drawn[zone.metric, cell], of) for cell, of in zone.by_cell.items())
        misses += [miss for miss in missed if miss]
        by_algorithm[zone.algorithm] = features + len(zone.intervals), misses
    scores = [
        IdentifyScore(algorithm=algorithm, features=features, visible=features, misses=tuple(misses))
        for algorithm, (features, misses) in by_algorithm.items()
    ]
    return sorted(scores, key=lambda score: (-score.share, score.algorithm))

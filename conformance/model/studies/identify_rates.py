"""How often `identify` is right, inconclusive and wrong, by simulation from the references' own trials.

What is identified is made up: in each feature it does what an algorithm's reference did, times a factor of its own,
and its median is over so many trials. Without a spread of these factors it is the reference itself; with one it is
another honest implementation. Draws are always the same.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from conformance.model import statistics
from conformance.model.setting import Cell
from conformance.model.studies.identify import Miss, Score, conclusion, miss
from conformance.model.zone import Basis, Zone

#: standard deviations of the factors of another honest implementation, by metric; of utilization where none is named
SPREAD = {"utilization": 0.08, "queue_mean_bdp": 0.15}
RUNS = 100
#: what the largest of 20 normal values is beyond their mean, on average, in standard deviations
_LARGEST_OF_20 = 1.867


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Shares of simulated identifications, over all algorithms that can be named. `runs`: how many of each.

    `spread`: of an implementation that differs from the references as honest ones do.
    """

    trials: int
    runs: int
    spread: bool
    right: float
    inconclusive: float
    wrong: float


def rates(zones: Sequence[Zone], trials: int, spread: bool, runs: int = RUNS) -> Rates:
    """Return the Rates of `trials` a cell. `spread`: of another implementation than the references."""
    algorithms = sorted({zone.algorithm for zone in zones})
    found = []
    for at, algorithm in enumerate(algorithms):
        chance = np.random.default_rng(at)
        for _ in range(runs):
            found.append((algorithm, conclusion(_scores(zones, _seen(zones, algorithm, trials, spread, chance)))))
    right = sum(algorithm == named for algorithm, named in found)
    none = sum(named is None for _, named in found)
    n = len(found)
    return Rates(
        trials=trials, runs=runs, spread=spread, right=right / n, inconclusive=none / n, wrong=(n - right - none) / n
    )


#: {(metric, cell): median}
_Seen = dict[tuple[str, Cell], float]


def _seen(zones: Sequence[Zone], algorithm: str, trials: int, spread: bool, chance: np.random.Generator) -> _Seen:
    seen: _Seen = {}
    for zone in (zone for zone in zones if zone.algorithm == algorithm):
        sd = SPREAD.get(zone.metric, SPREAD["utilization"]) if spread else 0.0
        for cell, permitted in zone.by_cell.items():
            factor = max(float(chance.normal(1, sd)), 0.0)
            drawn = [_draw(permitted.basis, chance) for _ in range(trials)]
            value = factor * statistics.median(drawn)
            seen[zone.metric, cell] = min(value, 1.0) if zone.metric == "utilization" else value
    return seen


def _draw(basis: Basis, chance: np.random.Generator) -> float:
    """Return a trial of a reference; where only its range is known, of a normal distribution, each side its own."""
    if basis.values:
        return float(chance.choice(basis.values))
    z = float(chance.normal())
    end = basis.max if z > 0 else basis.min
    return max(basis.median + abs(z) / _LARGEST_OF_20 * (end - basis.median), 0.0)


def _scores(zones: Sequence[Zone], seen: _Seen) -> list[Score]:
    by_algorithm: dict[str, tuple[int, list[Miss]]] = {}
    for zone in zones:
        features, misses = by_algorithm.get(zone.algorithm, (0, []))
        missed = (miss(zone, cell, seen[zone.metric, cell], of) for cell, of in zone.by_cell.items())
        misses += [one for one in missed if one]
        by_algorithm[zone.algorithm] = features + len(zone.intervals), misses
    scores = [
        Score(algorithm=algorithm, features=features, seen=features, misses=tuple(misses))
        for algorithm, (features, misses) in by_algorithm.items()
    ]
    return sorted(scores, key=lambda score: (-score.share, score.algorithm))

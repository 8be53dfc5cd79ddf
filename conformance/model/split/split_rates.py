"""Predict from rates of cells where splitting helps: predictions for paths, filters of paths, and their counts.

A transfer that timed out was slower than some rate, so only a bound is known. Therefore each value here is an interval,
which has no width if all transfers were completed, and a filter holds, does not hold, or is open (True, False, None).

Rates between the cells of a grid are interpolated, and it is known how wrong that is. Interpolation is multilinear in
the logarithm of the rate, over the logarithms of bandwidth and delay and the square root of loss. Where loss limits an
algorithm, its rate is a power of delay and loss; the square root is close to a logarithm, and exists for a loss of 0,
too. (Several scales were tried on the reference grids by leaving cells out. None was better for both CUBIC and BBRv3:
with linear loss, CUBIC's error is 39 % instead of 15 %; with the logarithm of loss, BBRv3's is 14 % instead of 11 %.) A
value is never above or below all of the cells around it, so a trough or a peak between them is missed.
"""

import collections
import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Self

from conformance.model.errors import UserError
from conformance.model.judging import statistics
from conformance.model.networks.place import Cell
from conformance.model.split import accuracy, split_paths
from conformance.model.trials.trial import Measurement, Outcome

#: (low, high): a value is known to lie between these
Bounds = tuple[float, float]
ByCell = Mapping[Cell, Sequence[Measurement]]
#: ways to count transfers that timed out. bound: their rate is between 0 and what they reached. zero: as in the
#: ATC'25 study's artifact, they are left out, a cell of only such trials has the rate 0, and a gain over 0 is infinite.
TIMEOUTS = ("bound", "zero")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rates:
    """The least and the greatest possible goodput of each measured cell, in Mbit/s. Both have the same cells."""

    low: Mapping[Cell, float]
    high: Mapping[Cell, float]
    zero_is_infinite_gain: bool = False

    @classmethod
    def medians(cls, by_cell: ByCell, timeouts: str = "bound") -> Self:
        """Return the medians of {cell: measurements}.

        A cell with an error or an unsupported trial counts as not measured, and so does a cell without trials.

        If some trials are only known by bounds, the median is between the medians of the lower and the upper bounds.
        """
        if timeouts not in TIMEOUTS:
            raise UserError(f"timeouts {timeouts!r} is not known", f"choose one of {', '.join(TIMEOUTS)}")
        low: dict[Cell, float] = {}
        high: dict[Cell, float] = {}
        for cell, measurements in by_cell.items():
            rates = trial_rates(measurements)
            if rates is None:
                continue
            low[cell], high[cell] = (statistics.median(values) for values in rates)
            if timeouts == "zero":
                completed = (rate for rate, m in zip(rates[1], measurements, strict=True) if m.outcome is Outcome.OK)
                low[cell] = high[cell] = accuracy.p50(completed) or 0.0
        return cls(low=low, high=high, zero_is_infinite_gain=timeouts == "zero")

    @classmethod
    def intervals(cls, by_cell: ByCell, confidence: float = 0.9) -> Self:
        """Return the confidence intervals of the cells' medians: 0 to infinity for a cell with too few trials."""
        low: dict[Cell, float] = {}
        high: dict[Cell, float] = {}
        for cell, measurements in by_cell.items():
            rates = trial_rates(measurements)
            if rates is not None:
                low[cell] = max(statistics.median_interval(rates[0], confidence)[0], 0.0)
                high[cell] = statistics.median_interval(rates[1], confidence)[1]
        return cls(low=low, high=high)

    def over(self, factors: Mapping[Cell, float]) -> Self:
        """Return these rates, with the rates of the cells in `factors` divided by their factors."""
        low, high = ({c: rate / factors.get(c, 1.0) for c, rate in of.items()} for of in (self.low, self.high))
        return dataclasses.replace(self, low=low, high=high)

    def and_others(self, low: Mapping[Cell, float], high: Mapping[Cell, float]) -> Self:
        """Return these rates and those of further cells."""
        return dataclasses.replace(self, low={**low, **self.low}, high={**high, **self.high})


def cut_off(measurements: Iterable[Measurement], timeout_s: float) -> Iterator[Measurement]:
    """Yield the measurements as they would be if transfers had been given up after `timeout_s` seconds."""
    for m in measurements:
        if m.outcome is Outcome.OK and m.metrics["completion_s"] > timeout_s:
            # How much had arrived by then is not known, but it was less than everything.
            reached = min(1.0, m.setting.transfer_s / timeout_s)
            flows = [{**flow, "utilization": reached if flow["judged"] else None} for flow in m.flows]
            m = dataclasses.replace(m, outcome=Outcome.TIMEOUT, flows=flows)
        yield m


def trial_rates(measurements: Sequence[Measurement]) -> tuple[list[float], list[float]] | None:
    """Return (least, greatest) possible goodput of each trial in Mbit/s, as two lists; None if it was not measured."""
    if not measurements or any(m.outcome not in (Outcome.OK, Outcome.TIMEOUT) for m in measurements):
        return None
    most = [(m.utilization or 0.0) * m.setting.cell.bandwidth_mbps for m in measurements]
    least = [0.0 if m.outcome is Outcome.TIMEOUT else rate for m, rate in zip(measurements, most, strict=True)]
    return least, most


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """Predicted rates of a path in Mbit/s, each as (low, high), or None if a cell that it needs was not measured."""

    path: split_paths.Path
    split: Bounds | None
    end_to_end: Bounds | None
    zero_is_infinite_gain: bool = False

    def utilization(self, of: str) -> Bounds | None:
        """Return (low, high) of `split` or `end_to_end`, divided by the path's bandwidth; None if it is not known."""
        rate: Bounds | None = getattr(self, of)
        return None if rate is None else (rate[0] / self.path.bandwidth_mbps, rate[1] / self.path.bandwidth_mbps)

    def gains(self, factor: float) -> bool | None:
        """Return whether splitting gives more than `factor` times the rate: True, False, or None if it is not known."""
        if self.split is None or self.end_to_end is None:
            return None
        if self.zero_is_infinite_gain and self.end_to_end[1] == 0:
            return True
        return _above(self.split, (factor * self.end_to_end[0], factor * self.end_to_end[1]))

    def uses(self, utilization: float) -> bool | None:
        """Return whether the split connection uses more than this share of the path's bandwidth, or None."""
        used = self.utilization("split")
        return None if used is None else _above(used, (utilization, utilization))

    def rests_on(self, of: str, rates: Rates) -> set[Cell]:
        """Return the cells on whose rates `split` or `end_to_end` may depend: no segment that is surely the faster."""
        if of == "end_to_end":
            return set() if self.path.end_to_end is None else {self.path.end_to_end}
        most = min(rates.high[segment] for segment in self.path.segments)
        return {segment for segment in self.path.segments if rates.low[segment] <= most}


def _above(value: Bounds, limit: Bounds) -> bool | None:
    if value[0] > limit[1]:
        return True
    return False if value[1] <= limit[0] else None


def predict(path: split_paths.Path, rates: Rates) -> Prediction:
    """Return the Prediction for a path. Both predictions grow with rates, so bounds of rates give their bounds."""
    bounds: dict[str, Bounds | None] = {}
    for name, function in (("split", split_paths.predict_split), ("end_to_end", split_paths.predict_end_to_end)):
        low, high = function(path, rates.low), function(path, rates.high)
        bounds[name] = None if low is None or high is None else (low, high)
    return Prediction(
        path=path, split=bounds["split"], end_to_end=bounds["end_to_end"],
        zero_is_infinite_gain=rates.zero_is_infinite_gain,
    )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Filter:
    """A filter for paths on which splitting gives more than `gain` times the rate, and uses more than `utilization`.

    A limit of None permits everything.
    """

    gain: float | None = None
    utilization: float | None = None

    @property
    def title(self) -> str:
        """A title short enough for tables, in which "use" is the split connection's predicted utilization."""
        gain = [] if self.gain is None else [f"gain > {self.gain:g}x"]
        return ", ".join(gain + ([] if self.utilization is None else [f"use > {self.utilization:g}"]))

    def scaled(self, factor: float) -> "Filter":
        """Return the same filter with both limits multiplied."""
        return Filter(*(None if limit is None else limit * factor for limit in (self.gain, self.utilization)))

    def passes(self, prediction: Prediction) -> bool | None:
        """Return whether a path passes: True, False, or None if that is not known."""
        answers: set[bool | None] = set()
        if self.gain is not None:
            answers.add(prediction.gains(self.gain))
        if self.utilization is not None:
            answers.add(prediction.uses(self.utilization))
        return False if False in answers else None if None in answers else True

    def in_doubt(self, prediction: Prediction) -> set[str]:
        """Return the predicted rates that leave it open whether a path passes: `split`, `end_to_end`, both or none."""
        if self.passes(prediction) is not None:
            return set()
        if self.gain is not None and prediction.gains(self.gain) is None:
            return {"split", "end_to_end"}
        return {"split"}


#: the filters of the published Table 3, and the one of the notebook for BBRv1: a gain of more than 1.5
FILTERS = (
    Filter(utilization=0.5),
    Filter(gain=1.5),
    Filter(gain=3),
    Filter(gain=3, utilization=0.5),
)


@dataclasses.dataclass
class Count:
    """The numbers of paths that pass a filter, that do not, and of which that is not known."""

    passed: int = 0
    failed: int = 0
    #: Paths for which a cell that they need was not measured.
    unknown: int = 0

    @property
    def paths(self) -> int:
        return self.passed + self.failed + self.unknown

    @property
    def share(self) -> Bounds:
        """(low, high) of the share of all paths that passes, whatever the unknown ones do."""
        return self.passed / self.paths, (self.passed + self.unknown) / self.paths

    def add(self, passes: bool | None) -> None:
        name = {True: "passed", False: "failed", None: "unknown"}[passes]
        setattr(self, name, getattr(self, name) + 1)


def count(predictions: Iterable[Prediction], filter_: Filter) -> dict[split_paths.PathClass, Count]:
    """Return {path class: Count} for one filter, in the order of PathClass, without classes that have no path."""
    counts: dict[split_paths.PathClass, Count] = collections.defaultdict(Count)
    for prediction in predictions:
        counts[prediction.path.path_class].add(filter_.passes(prediction))
    return {path_class: counts[path_class] for path_class in split_paths.PathClass if path_class in counts}


def largest_gain(predictions: Iterable[Prediction]) -> tuple[float, split_paths.Path] | None:
    """Return the largest factor by which a proxy would multiply a path's goodput, and that path.

    Return None if the cells of no path are known.
    """
    gains = [
        (p.split[0] / p.end_to_end[1], p.path) for p in predictions if p.split and p.end_to_end and p.end_to_end[1] > 0
    ]
    return max(gains, key=lambda pair: pair[0], default=None)


_AXES = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")


def _scale(axis: str, value: float) -> float:
    return math.sqrt(value) if axis == "loss_pct" else math.log(max(value, 1e-3))


def interpolate(rates: Mapping[Cell, float], cell: Cell) -> float | None:
    """Return the rate at `cell` from {cell: rate}; None outside the box of measured cells, or next to a missing one.

    A measured cell has its own rate. Rates must be above zero.
    """
    if cell in rates:
        return rates[cell]
    around = []
    for axis in _AXES:
        known = sorted({getattr(c, axis) for c in rates})
        bracket = _bracket(axis, known, getattr(cell, axis))
        if bracket is None:
            return None
        around.append(bracket)
    logarithm = 0.0
    for corner in itertools.product(*around):
        neighbour = rates.get(Cell(*(value for value, _ in corner)))
        if not neighbour:
            return None
        logarithm += math.prod(weight for _, weight in corner) * math.log(neighbour)
    return math.exp(logarithm)


def _bracket(axis: str, known: Sequence[float], value: float) -> list[tuple[float, float]] | None:
    """Return [(value, weight)] of the one or two `known` values next to `value`, or None if it is outside of them."""
    if value in known:
        return [(value, 1.0)]
    below = [k for k in known if k < value]
    above = [k for k in known if k > value]
    if not below or not above:
        return None
    low, high = below[-1], above[0]
    weight = (_scale(axis, value) - _scale(axis, low)) / (_scale(axis, high) - _scale(axis, low))
    return [(low, 1 - weight), (high, weight)]


def leave_one_out(rates: Mapping[Cell, float]) -> dict[str, list[tuple[Cell, float]]]:
    """Return {axis: [(cell, predicted over measured)]}, with each cell predicted from its neighbours along an axis.

    Cells without neighbours on both sides are left out. The gap that is bridged is twice the grid's own, so the error
    of a cell halfway between two cells of the grid is usually no larger.
    """
    errors = {}
    for axis in _AXES:
        ratios: list[tuple[Cell, float]] = []
        for cell, rate in rates.items():
            rest = [getattr(cell, other) for other in _AXES if other != axis]
            line = {c: r for c, r in rates.items() if [getattr(c, other) for other in _AXES if other != axis] == rest}
            del line[cell]
            guess = interpolate(line, cell)
            if guess is not None and rate:
                ratios.append((cell, guess / rate))
        errors[axis] = ratios
    return errors


def typical_and_worst(ratios: Sequence[tuple[Cell, float]]) -> tuple[float, float]:
    """Return (typical, worst) relative error of [(cell, predicted over measured)]; 0.1 stands for a factor of 1.1."""
    errors = [abs(math.log(ratio)) for _, ratio in ratios]
    return math.expm1(math.fsum(errors) / len(errors)), math.expm1(max(errors))

"""`conformance split analyze`: predict from end-to-end results where a splitting proxy would help each scheme."""

import dataclasses
import pathlib
import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

from conformance.commands.result import Result
from conformance.model.errors import UserError
from conformance.model.judging import grid as grids, seeds
from conformance.model.networks.place import Cell
from conformance.model.split import split_paths, split_rates
from conformance.model.split.split_paths import Path, PathClass
from conformance.model.split.split_rates import Count, Filter, Prediction, Rates
from conformance.model.trials import grouping
from conformance.model.trials.trial import Measurement
from conformance.results import store
from conformance.support.record import At, Record


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results to look at. A field that is None or empty selects all."""

    algorithms: tuple[str, ...] = ()
    stack: str | None = None
    kernel: str | None = None
    profile: str | None = None
    transfer_s: float | None = None

    def __contains__(self, measurement: Measurement) -> bool:
        setting, scheme = measurement.setting, measurement.scheme
        return (
            isinstance(setting.point, Cell)
            and not setting.rival
            and (not self.algorithms or scheme.algorithm in self.algorithms)
            and self.stack in (None, scheme.stack)
            and self.kernel in (None, scheme.kernel, scheme.kernel_release, scheme.kernel_digest)
            and self.profile in (None, setting.profile)
            and self.transfer_s in (None, setting.transfer_s)
        )


#: {scheme's id: {cell: measurements}}
MeasuredCells = Mapping[str, Mapping[Cell, Sequence[Measurement]]]


def load(results: Sequence[str | pathlib.Path], chosen: Selection = Selection()) -> MeasuredCells:
    """Return the chosen results of each scheme, without trials that repeat a violation, as in a report.

    Raises UserError if there are none, or if runs differ.
    """
    everything = store.read(*results)
    measurements = [m for m in everything if m in chosen]
    if not measurements:
        there = sorted({f"{m.scheme.id} under {m.setting.profile}" for m in everything})
        raise UserError(
            f"no matching results in {', '.join(map(str, results))}", f"available: {', '.join(there) or 'none'}"
        )
    return {
        scheme: {cell: seeds.repeats_apart(of_cell)[0] for cell, of_cell in cells.items()}
        for scheme, cells in sorted(grouping.by_scheme(measurements).items())
    }


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PredictionTable:
    """Predictions for the same paths, {name: predictions}; `where` names the paths in words."""

    SHOWN = ("where", "rows")

    where: str
    predictions: Mapping[str, Sequence[Prediction]]

    @property
    def rows(self) -> list["RowRecord"]:
        """How many paths pass each filter, for each name."""
        return [
            RowRecord(
                name=name,
                paths=len(predictions),
                filters=[_filter(predictions, wanted) for wanted in split_rates.FILTERS],
            )
            for name, predictions in self.predictions.items()
        ]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InterpolationError:
    """The error of rates that are interpolated along an axis: `cells` cells were left out one by one."""

    scheme: str
    axis: str
    cells: int
    typical: float
    worst: float


class MeasuredSchemeRecord(Record):
    scheme: str
    profile: str
    cells: int
    fewest_trials: int
    most_trials: int
    #: Number of cells with an error or without support by the stack.
    unknown_cells: int


class FilterRecord(Record):
    #: Null if the filter asks for no gain.
    gain_above: float | None
    #: Null if the filter asks for no utilization.
    utilization_above: float | None
    by_class: dict[str, Count]


class RowRecord(Record):
    name: str
    paths: int
    filters: list[FilterRecord]


class PredictionRecord(Record):
    path: Annotated[str, At("0.id")]
    path_class: Annotated[str, At("0.path_class")] = msgspec.field(name="class")
    scheme: Annotated[str, At("1")]
    #: (low, high), which are equal if the value is known; null if a cell that it needs was not measured.
    split_mbps: Annotated[list[float] | None, At("2.split")]
    #: The same end to end.
    end_to_end_mbps: Annotated[list[float] | None, At("2.end_to_end")]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Analysis(Result):
    """Where a proxy would help. `predictions`: {path to be drawn: {scheme: prediction}}."""

    SCHEMA = "split-analyze"
    SHOWN = ("transfer_s", "schemes", "tables", "interpolation", "predictions=drawn")

    measured: MeasuredCells
    transfer_s: float
    #: wall seconds that the first table took
    took_s: float = 0.0
    #: Empty if one path was requested.
    tables: tuple[PredictionTable, ...] = ()
    #: Null if it was not requested.
    interpolation: tuple[InterpolationError, ...] | None = None
    predictions: Mapping[Path, Mapping[str, Prediction]]

    @property
    def schemes(self) -> list[MeasuredSchemeRecord]:
        """What was measured of each scheme."""
        return [_scheme(name, list(cells.values())) for name, cells in self.measured.items()]

    @property
    def drawn(self) -> Annotated[list[tuple[Path, str, Prediction]], list[PredictionRecord]]:
        """The predictions to be drawn, path by path, with their schemes."""
        return [(path, scheme, of) for path, by_scheme in self.predictions.items() for scheme, of in by_scheme.items()]


def _scheme(name: str, by_trial: Sequence[Sequence[Measurement]]) -> MeasuredSchemeRecord:
    trials = [len(measurements) for measurements in by_trial]
    return MeasuredSchemeRecord(
        scheme=name, profile=by_trial[0][0].trial.setting.profile, cells=len(by_trial), fewest_trials=min(trials),
        most_trials=max(trials),
        unknown_cells=sum(split_rates.trial_rates(measurements) is None for measurements in by_trial),
    )  # fmt: skip


def _filter(predictions: Sequence[Prediction], wanted: Filter) -> FilterRecord:
    by_class = split_rates.count(predictions, wanted)
    return FilterRecord(
        gain_above=wanted.gain, utilization_above=wanted.utilization,
        by_class={str(c): by_class[c] for c in PathClass if c in by_class},
    )  # fmt: skip


def compute(
    results: Sequence[str | pathlib.Path], *, chosen: Selection, grid: str, path: str | None, interpolated: bool,
    timeouts: str, timeout_s: float | None,
) -> Analysis:  # fmt: skip
    """Predict every path of the grid, and representative paths in detail; or only `path`, in detail. Raises UserError.

    `interpolated`: estimate cells that were not measured from their neighbours. `timeout_s`: treat transfers as if they
    had been given up after so many seconds.
    """
    chosen_path = None if path is None else Path.parse(path)
    among = split_paths.paths(grids.cells(grid))
    if not among:
        raise UserError(
            f"grid {grid!r} has no path of two segments", "the cell that the segments compose to must be in it, too"
        )
    measured = load(results, chosen)
    if timeout_s is not None:
        measured = {
            scheme: {cell: list(split_rates.cut_off(measurements, timeout_s)) for cell, measurements in cells.items()}
            for scheme, cells in measured.items()
        }
    rates = {scheme: Rates.medians(cells, timeouts) for scheme, cells in measured.items()}
    first = next(iter(next(iter(measured.values())).values()))[0]
    analysis = Analysis(measured=measured, transfer_s=first.setting.transfer_s, predictions={})
    if chosen_path is not None:
        drawn = [chosen_path]
    else:
        bandwidth = None if grid == "full" else min(path.bandwidth_mbps for path in among)
        drawn = [path for path in split_paths.representative_paths(bandwidth).values() if path in set(among)]
        began = time.perf_counter()
        everything = {scheme: [split_rates.predict(p, of) for p in among] for scheme, of in rates.items()}
        tables = (PredictionTable(where=f"grid {grid}", predictions=everything),)
        analysis = dataclasses.replace(analysis, took_s=time.perf_counter() - began, tables=tables)
    if interpolated:
        analysis = dataclasses.replace(analysis, interpolation=tuple(_interpolation_errors(rates)))
    predictions = {path: {scheme: predict(path, of, interpolated) for scheme, of in rates.items()} for path in drawn}
    return dataclasses.replace(analysis, predictions=predictions)


def _interpolation_errors(rates: Mapping[str, Rates]) -> list[InterpolationError]:
    errors = []
    for scheme, of in rates.items():
        for axis, ratios in split_rates.leave_one_out(of.low).items():
            if ratios:
                typical, worst = split_rates.typical_and_worst(ratios)
                errors.append(
                    InterpolationError(scheme=scheme, axis=axis, cells=len(ratios), typical=typical, worst=worst)
                )
    return errors


def predict(path: Path, rates: Rates, interpolated: bool = False) -> Prediction:
    """Return the prediction for a path; with `interpolated`, interpolate the rates of cells that were not measured.

    If all cells of the path were measured, including the one that its segments compose to by the grid's rules, only
    these are used. Otherwise, the segments are composed exactly.
    """
    prediction: Prediction = split_rates.predict(path, rates)
    if not interpolated or not (prediction.split is None or prediction.end_to_end is None):
        return prediction
    path = dataclasses.replace(path, exact=True)
    bounds: dict[str, dict[Cell, float]] = {}
    for name in ("low", "high"):
        known = getattr(rates, name)
        interpolated_rates = {cell: split_rates.interpolate(known, cell) for cell in path.cells if cell is not None}
        bounds[name] = {cell: rate for cell, rate in interpolated_rates.items() if rate is not None}
    best: Prediction = split_rates.predict(path, dataclasses.replace(rates, low=bounds["low"], high=bounds["high"]))
    return best

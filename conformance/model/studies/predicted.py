"""Predict for a study what splitting gains, from many measured points at once.

The predictions are those of `conformance split analyze` (model/split). Here each has bounds as well, which come from
the confidence intervals of its cells' medians.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.model.errors import UserError
from conformance.model.judging import grid as grids
from conformance.model.networks.place import Cell
from conformance.model.split import split_paths, split_rates
from conformance.model.split.split_paths import Path, PathClass
from conformance.model.split.split_rates import Filter, Rates
from conformance.model.studies.claims import Estimate, NotSeen
from conformance.model.trials.trial import Measurement

#: {prediction: the parameters that it takes}. split_paths is how many of the grid's 7,875 paths pass a filter; the
#: others are the utilization of one path
ASKED: Mapping[str, tuple[str, ...]] = {
    "split_paths": ("gain_above", "utilization_above", "path_class"),
    "predicted_split": ("path",),
    "predicted_end_to_end": ("path",),
}
#: a name for both classes I together, as the study counts them
_CLASS_I = "I"
_CLASSES: Mapping[str, tuple[PathClass, ...]] = {
    "all": tuple(PathClass),
    _CLASS_I: (PathClass.I_NEAR, PathClass.I_FAR),
    **{str(path_class): (path_class,) for path_class in PathClass},
}


def check(metric: str, wanted_of: Mapping[str, Any]) -> None:
    """Raise UserError if a prediction is asked for with a parameter or a value that it does not take."""
    known = ASKED[metric]
    if lacking := [name for name in wanted_of if name not in known]:
        raise UserError(f"{metric} has no parameter {lacking[0]!r}", f"it takes {', '.join(known)}")
    if "path" in known:
        Path.parse(str(wanted_of.get("path", "")))
        return
    for name in ("gain_above", "utilization_above"):
        if isinstance(value := wanted_of.get(name, 0), bool) or not isinstance(value, int | float):
            raise UserError(f"{name}: {value!r} is not a number")
    if (name := wanted_of.get("path_class", "all")) not in _CLASSES:
        raise UserError(f"there is no path class {name!r}", f"choose one of {', '.join(_CLASSES)}")


def predict(
    metric: str, wanted_of: Mapping[str, Any], by_cell: Mapping[Cell, Sequence[Measurement]],
    known: Mapping[Cell, Estimate] = {},
) -> Estimate | NotSeen:  # fmt: skip
    """Return the prediction from the cells' medians, with the bounds that the intervals of these medians allow.

    `known`: the utilization of further cells, of which there are no measurements.
    """
    n = min([*map(len, by_cell.values()), *(estimate.n for estimate in known.values())], default=0)
    medians = Rates.medians(by_cell).and_others(_rates(known, "median"), _rates(known, "median"))
    intervals = Rates.intervals(by_cell).and_others(_rates(known, "low"), _rates(known, "high"))
    if metric == "split_paths":
        return _count(wanted_of, medians, intervals, n)
    path = Path.parse(str(wanted_of["path"]))
    of = "split" if metric == "predicted_split" else "end_to_end"
    median = split_rates.predict(path, medians).utilization(of)
    bounds = split_rates.predict(path, intervals).utilization(of)
    if median is None or bounds is None:
        return NotSeen(f"some cells of {path.id} were not measured")
    return Estimate(median=median[1], low=bounds[0], high=bounds[1], n=n)


def _rates(known: Mapping[Cell, Estimate], bound: str) -> dict[Cell, float]:
    """Return each cell's goodput in Mbit/s; `bound` is "median", "low" or "high"."""
    return {cell: max(getattr(estimate, bound), 0.0) * cell.bandwidth_mbps for cell, estimate in known.items()}


def _count(wanted_of: Mapping[str, Any], medians: Rates, intervals: Rates, n: int) -> Estimate | NotSeen:
    cells = tuple(grids.cells("full"))
    if lacking := sum(cell not in medians.low for cell in cells):
        return NotSeen(f"{lacking} of the grid's {len(cells)} cells were not measured")
    wanted = Filter(gain=wanted_of.get("gain_above"), utilization=wanted_of.get("utilization_above"))
    classes = _CLASSES[str(wanted_of.get("path_class", "all"))]
    among = [path for path in split_paths.paths(cells) if path.path_class in classes]
    by_medians = [wanted.passes(split_rates.predict(path, medians)) for path in among]
    by_intervals = [wanted.passes(split_rates.predict(path, intervals)) for path in among]
    surely, perhaps = by_intervals.count(True), by_intervals.count(None)
    return Estimate(median=by_medians.count(True), low=surely, high=surely + perhaps, n=n)

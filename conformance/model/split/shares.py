"""Compute what share of a grid's paths may pass a filter, by class, from the reference's trials in each cell.

The interval of a share reaches from the smallest to the largest of bootstrap replicates. A replicate draws as many
trials of each cell as a run makes by default, with replacement, and takes their median. The filter's limits are moved
by the relative margin to either side, so that a gain has the margin that a rate has in the heatmap.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

import numpy
import numpy.typing

from conformance.model.judging import grid, statistics
from conformance.model.metrics.metric import RELATIVE_MARGIN
from conformance.model.networks.place import Cell
from conformance.model.rounding import rounded_outward
from conformance.model.split import split_paths
from conformance.model.split.split_paths import Path, PathClass
from conformance.model.split.split_rates import FILTERS, Filter

_REPLICATES, _REPLICATE_TRIALS, _SEED = 1000, 5, 1
Rows = numpy.typing.NDArray[numpy.float64]
#: the utilizations of each cell's trials, in the order of a grid's cells
Values = tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The permitted share of a class's paths, `low` to `high`, and what it rests on.

    `median` is the share by the medians of all trials; `min` and `max` are those of the replicates.
    """

    low: float
    high: float
    median: float
    min: float
    max: float


@functools.lru_cache(maxsize=64)  # the full grid takes two seconds
def permitted(name: str, values: Values) -> Mapping[Filter, Mapping[PathClass, Share]]:
    """Return {filter: {class: Share}} of a grid; `values` are the reference's trials in each of its cells."""
    cells = grid.cells(name)
    paths = split_paths.paths(cells)
    by_cell = list(zip(cells, values, strict=True))
    medians = numpy.array([[statistics.median(trials) * cell.bandwidth_mbps for cell, trials in by_cell]])
    replicates = _replicates(numpy.array(trials) * cell.bandwidth_mbps for cell, trials in by_cell)
    by_class = {c: [path for path in paths if path.path_class is c] for c in PathClass}

    def share(among: Sequence[Path], filter_: Filter) -> Share:
        drawn = shares(among, cells, replicates, filter_)
        strict = shares(among, cells, replicates, filter_.scaled(1 + RELATIVE_MARGIN))
        lenient = shares(among, cells, replicates, filter_.scaled(1 - RELATIVE_MARGIN))
        low, high = rounded_outward(float(strict.min()), float(lenient.max()))
        (median,) = shares(among, cells, medians, filter_)
        return Share(low=low, high=high, median=float(median), min=float(drawn.min()), max=float(drawn.max()))

    return {filter_: {c: share(among, filter_) for c, among in by_class.items() if among} for filter_ in FILTERS}


def _replicates(rates: Iterable[Rows]) -> Rows:
    """Return an array of replicates x cells: medians of trials drawn with replacement. `rates`: the trials of each
    cell.
    """
    generator = numpy.random.default_rng(_SEED)
    drawn = [generator.choice(trials, size=(_REPLICATES, _REPLICATE_TRIALS)) for trials in rates]
    medians: Rows = numpy.median(numpy.stack(drawn), axis=2).T
    return medians


def _cell(path: Path, part: int) -> Cell:
    cell = path.cells[part]
    assert cell is not None  # paths of a grid compose to cells of it
    return cell


def shares(paths: Sequence[Path], cells: Sequence[Cell], rates: Rows, filter_: Filter) -> Rows:
    """Return the share of these paths that pass a filter, for each row of `rates` (rows x cells, Mbit/s).

    The result is that of split_rates.count, which would take minutes for the replicates of the full grid.
    """
    at = {cell: number for number, cell in enumerate(cells)}
    first, second, whole = (numpy.array([at[_cell(path, part)] for path in paths]) for part in range(3))
    bandwidths = numpy.array([path.bandwidth_mbps for path in paths])
    rate = numpy.minimum(rates[:, first], rates[:, second])
    passes = numpy.ones(rate.shape, dtype=bool)
    if filter_.gain is not None:
        passes &= rate > filter_.gain * rates[:, whole]
    if filter_.utilization is not None:
        passes &= rate > filter_.utilization * bandwidths
    passing: Rows = passes.mean(axis=1)
    return passing

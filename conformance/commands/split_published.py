"""Compare split predictions with the ATC'25 study: with its own counts, and with our model on its published cells.

Both are only compared; nothing is fitted to them. The study's counts cover all 7,875 paths; its published cells are 60
of the 150.
"""

import csv
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.commands import fidelity
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.place import Cell
from conformance.model.split import split_paths, split_rates
from conformance.model.split.split_rates import Count, Filter, Prediction, Rates
from conformance.support import paths

#: (algorithm, implementation), filter, path class or "all", number of paths
Counted = tuple[tuple[str, str], Filter, str, int]
#: (algorithm, implementation, dataset)
Dataset = tuple[str, str, str]


def counts(path: pathlib.Path | None = None) -> list[Counted]:
    """Return how many paths pass each filter, as the study counted them. Raises UserError."""
    path = path or paths.data("zones", "published", "atc25-split.csv")
    found: list[Counted] = []
    try:
        with open(path, newline="") as f:
            for row in csv.DictReader(f):
                limits = [None if row[name] == "" else float(row[name]) for name in ("gain_above", "utilization_above")]
                scheme = row["algorithm"], row["implementation"]
                found.append((scheme, split_rates.Filter(*limits), row["class"], int(row["paths"])))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    return found


def beside_counts(
    predictions: Mapping[str, Sequence[Prediction]], published: Iterable[Counted]
) -> list[tuple[str, Filter, str, int, Count]]:
    """Return (scheme's id, filter, class, published count, our Count) where the study counted the same scheme."""
    published = list(published)
    rows = []
    for scheme_id, made in predictions.items():
        for scheme, filter_, path_class, number in published:
            if tuple(scheme_id.split("/")[:2]) == scheme:
                chosen = [p for p in made if path_class in ("all", p.path.path_class)]
                ours = split_rates.Count()
                for prediction in chosen:
                    ours.add(filter_.passes(prediction))
                rows.append((scheme_id, filter_, path_class, number, ours))
    return rows


def rates(path: pathlib.Path | None = None) -> dict[Dataset, dict[Cell, float]]:
    """Return {dataset: {cell: Mbit/s}} of the published cells (means over their trials). Raises UserError."""
    found: dict[Dataset, dict[Cell, float]] = {}
    for row, cell, utilization in fidelity.published_rows(path or paths.data("zones", "published", "atc25.csv")):
        key = row["algorithm"], row["implementation"], row["dataset"]
        found.setdefault(key, {})[cell] = utilization * cell.bandwidth_mbps
    return found


def beside_cells(
    ours: Mapping[str, Rates], published: Mapping[Dataset, Mapping[Cell, float]]
) -> Iterator[tuple[dict[str, list[Prediction]], tuple[float, ...]]]:
    """Yield ({name: predictions}, bandwidths): tables of the study's datasets and of our schemes over the same paths.

    `ours` is {scheme's id: Rates}. There is one table for each set of bandwidths that the datasets have.
    """
    by_bandwidths: dict[tuple[float, ...], list[Dataset]] = {}
    for key, cells in published.items():
        by_bandwidths.setdefault(tuple(sorted({cell.bandwidth_mbps for cell in cells})), []).append(key)
    for bandwidths, keys in sorted(by_bandwidths.items(), key=lambda item: -len(item[0])):
        among = split_paths.paths([cell for cell in grids.cells("full") if cell.bandwidth_mbps in bandwidths])
        table: dict[str, list[Prediction]] = {}
        for scheme_id, known in ours.items():
            theirs = [key for key in keys if key[:2] == tuple(scheme_id.split("/")[:2])]
            if theirs:
                table[scheme_id] = [split_rates.predict(path, known) for path in among]
            for key in theirs:
                of = split_rates.Rates.exactly(published[key])
                table[f"published {'/'.join(key)}"] = [split_rates.predict(path, of) for path in among]
        if table:
            yield table, bandwidths

"""Derive the split part of a zone from reference runs, by an explicit margin rule.

A representative path has intervals for predictions. They follow from the permissible intervals of its cells, so a stack
that is inside the heatmap's zone in these cells is inside here, too. If the results hold trials over the path itself,
through the suite's own splitter, it also has an interval for these: their median, widened as in a cell of a heatmap.

The interval of a share of paths reaches from the smallest to the largest of bootstrap replicates. A replicate draws as
many trials of each cell as a run makes by default, with replacement, and takes their median. The filter's limits are
moved by the relative margin to either side, so that a gain has the margin that a rate has in the heatmap.
"""

import itertools
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy
import numpy.typing

from conformance.catalogue import bases, derive, documents
from conformance.model import grid, statistics
from conformance.model.errors import UserError
from conformance.model.metric import RELATIVE_MARGIN
from conformance.model.metrics import METRICS
from conformance.model.place import Cell
from conformance.model.setting import Setting
from conformance.model.split import split_document, split_paths, split_rates, split_zone
from conformance.model.split.split_paths import Path
from conformance.model.trial import Measurement
from conformance.model.zone import Basis, Margin
from conformance.results import store
from conformance.support import files, schema

_REPLICATES, _REPLICATE_TRIALS, _SEED = 1000, 5, 1
#: grids of shares. The first is the default: it takes minutes, and is all that stacks over UDP have zones for.
_GRIDS = ("10mbps", "full")
_METRIC = "utilization"
Rows = numpy.typing.NDArray[numpy.float64]
_PREDICT = {"split": split_paths.predict_split, "end_to_end": split_paths.predict_end_to_end}


def margin_rule(measured: bool = False) -> dict[str, Any]:
    """Return the margin rule of split zones; `measured`: whether any path was measured, besides its cells."""
    relative, absolute = RELATIVE_MARGIN, METRICS[_METRIC].margin
    also = f", measured paths as cells are, by {relative:.0%} and {absolute:g}" if measured else ""
    return {
        "text": f"paths: predictions from the intervals of their cells{also}; shares: smallest to largest of"
        f" {_REPLICATES} bootstrap replicates of {_REPLICATE_TRIALS} trials a cell, the filter's limits moved by"
        f" {relative:.0%} either way",
        "relative": relative,
        "absolute": absolute,
        "replicates": _REPLICATES,
        "replicate_trials": _REPLICATE_TRIALS,
        "seed": _SEED,
    }


def derive_split(
    measurements: Sequence[Measurement], algorithm: str, version_text: str, profile: str = "atc25", name: str = "split"
) -> dict[str, Any]:
    """Return the split-zone document of `algorithm`. Raises UserError if measurements cannot be a reference."""
    by_setting, head = derive.reference(measurements, algorithm, version_text, _METRIC, profile, name)
    values = {setting.cell: found for setting, found in by_setting.items()}
    grids = [known for known in _GRIDS if set(grid.cells(known)) <= set(values)]
    if not grids:
        raise UserError(f"the results lack cells of grid {_GRIDS[0]}", "measure all of it")
    (source,) = head["references"]
    paths = list(split_paths.representative_paths(grid.cells(grids[0])[0].bandwidth_mbps).values())
    measured, digest, about = _measured(measurements, algorithm, profile, paths)
    through = f"{source}-split"
    bounds = {cell: _bounds(found, algorithm, documents.profile(profile, cell)) for cell, found in values.items()}
    small = {cell.id: factor for cell in sorted(values) if (factor := small_packets(algorithm, profile, cell)) != 1.0}
    return {
        "$schema": "../../conformance/schemas/split-zone.json",
        **{key: value for key, value in head.items() if key != "references"},
        **({"path_profile_digest": digest} if measured else {}),
        "transfer_s": _transfer_s(measurements, profile),
        "default_grid": grids[0],
        "margin_rule": margin_rule(bool(measured)),
        "references": {**head["references"], **({through: about} if measured else {})},
        **({"small_packets": small} if small else {}),
        "paths": [{**_path(path, values, bounds, source), **_through(measured.get(path), through)} for path in paths],
        "shares": [row for known in grids for row in _shares(known, values, source)],
    }


def small_packets(algorithm: str, profile: str, cell: Cell) -> float:
    """Return the factor of small packets in a cell, as in the cell's own zone."""
    documented = bases.played_bases(algorithm, documents.profile(profile, cell))
    return documented[1] if documented else 1.0


def _transfer_s(measurements: Sequence[Measurement], profile: str) -> float:
    settings = (m.trial.setting for m in measurements)
    return next(s.transfer_s for s in settings if s.profile == profile and not s.segments)


def _bounds(trials: Sequence[float], algorithm: str, setting: Setting) -> tuple[float, float]:
    """Return (low, high) of a cell's interval, as in the cell's own zone."""
    documented = bases.played_bases(algorithm, setting)
    heatmap = f"{algorithm}/{documents.stem('heatmap', setting.profile)}"
    margin = Margin.of(derive.margin_rule(zone_id=heatmap), setting.cell)
    return derive.interval([Basis.of("reference", trials), *(documented[0] if documented else ())], margin=margin)


def predicted(of: str, path: Path, utilizations: Mapping[Cell, float]) -> float:
    """Return the utilization of a path, predicted from {cell: utilization} of its cells; `of`: one of
    split_zone.PREDICTIONS.
    """
    rates = {cell: utilizations[cell] * cell.bandwidth_mbps for cell in path.cells if cell is not None}
    rate = _PREDICT[of](path, rates)
    assert rate is not None  # all of its cells are there
    return rate / path.bandwidth_mbps


def predicted_bounds(of: str, path: Path, bounds: Mapping[Cell, tuple[float, float]]) -> tuple[float, float]:
    """Return (low, high) of what predicted() returns, from {cell: (low, high)}."""
    low, high = (predicted(of, path, {c: bounds[c][side] for c in path.cells if c is not None}) for side in (0, 1))
    return low, high


def _path(
    path: Path, values: Mapping[Cell, Sequence[float]], bounds: Mapping[Cell, tuple[float, float]], source: str
) -> dict[str, Any]:
    cells = [cell for cell in path.cells if cell is not None]
    n = min(len(values[cell]) for cell in cells)
    found = {}
    for of in _PREDICT:
        median, least, most = (
            predicted(of, path, {c: f(values[c]) for c in cells}) for f in (statistics.median, min, max)
        )
        low, high = derive.rounded_outward(*predicted_bounds(of, path, bounds))
        found[of] = {
            "low": low,
            "high": high,
            "basis": _basis(source, n, median, least, most),
        }
    return {"class": str(path.path_class), "path": path.id, **found}


def _measured(
    measurements: Sequence[Measurement], algorithm: str, profile: str, paths: Iterable[Path]
) -> tuple[dict[Path, list[float]], str | None, dict[str, Any] | None]:
    """Return ({path: utilizations of its split trials}, the digest of their settings, the reference's description).

    These trials may be of another run than those of the cells, for example on a later kernel, because nothing is
    computed from both. Trials that measured paths in other ways (end to end, with options) are left out.
    """
    settings = {documents.split_path(profile, path.segments): path for path in paths}
    own = [m for m in measurements if m.trial.scheme.algorithm == algorithm and m.trial.setting in settings]
    if not own:
        return {}, None, None
    values, about = derive.one_run(own, _METRIC, "our own runs in the virtual room, split by the suite's own splitter")
    digest = own[0].trial.setting.profile_digest
    return {settings[setting]: found for setting, found in values.items()}, digest, about


def _through(trials: Sequence[float] | None, through: str) -> dict[str, Any]:
    if not trials:
        return {}
    basis = Basis.of(through, [round(trial, 4) for trial in trials])
    low, high = derive.interval([basis], _METRIC)
    return {"measured": {"low": low, "high": high, "bases": [{"reference": through, "values": list(basis.values)}]}}


def _basis(source: str, n: int, median: float, least: float, most: float, **more: Any) -> dict[str, Any]:
    return {
        "reference": source, "n": n, **more,
        "median": round(median, 4), "min": round(least, 4), "max": round(most, 4),
    }  # fmt: skip


def _shares(name: str, values: Mapping[Cell, Sequence[float]], source: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each filter and class of one grid."""
    cells = grid.cells(name)
    paths = split_paths.paths(cells)
    medians = numpy.array([[statistics.median(values[cell]) * cell.bandwidth_mbps for cell in cells]])
    replicates = _replicates([numpy.array(values[cell]) * cell.bandwidth_mbps for cell in cells])
    n = min(len(values[cell]) for cell in cells)
    classes = [c for c in split_paths.PathClass if any(path.path_class is c for path in paths)]
    for filter_, path_class in itertools.product(split_rates.FILTERS, classes):
        own = [path for path in paths if path.path_class is path_class]
        (median,) = shares(own, cells, medians, filter_)
        drawn = shares(own, cells, replicates, filter_)
        strict = shares(own, cells, replicates, filter_.scaled(1 + RELATIVE_MARGIN))
        lenient = shares(own, cells, replicates, filter_.scaled(1 - RELATIVE_MARGIN))
        low, high = derive.rounded_outward(strict.min(), lenient.max())
        yield {
            "grid": name,
            "gain_above": filter_.gain,
            "utilization_above": filter_.utilization,
            "class": str(path_class),
            "low": low,
            "high": high,
            "basis": _basis(source, n, median, drawn.min(), drawn.max(), paths=len(own)),
        }


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


def shares(paths: Sequence[Path], cells: Sequence[Cell], rates: Rows, filter_: split_rates.Filter) -> Rows:
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
    found: Rows = passes.mean(axis=1)
    return found


def derive_file(
    results: pathlib.Path, algorithm: str, version_text: str, target: pathlib.Path, profile: str = "atc25"
) -> split_zone.SplitZone:
    """Write the split-zone document derived from a results file; returns the SplitZone."""
    document = derive_split(store.read(results), algorithm, version_text, profile, target.stem)
    schema.check("split-zone", document, target)
    zone = split_document.from_json(document, target)
    files.write(target, dumps({**document, "version": derive.version(zone, target)}))
    return zone


def dumps(document: Mapping[str, Any]) -> str:
    """Return the document as text: one line for each path and share, so that diffs between versions are readable."""
    rows = ("paths", "shares")
    text = json.dumps({k: v for k, v in document.items() if k not in rows}, indent=2, ensure_ascii=False)[:-2]
    for name in rows:
        lines = ",\n".join(f"    {json.dumps(row, ensure_ascii=False)}" for row in document[name])
        text += f',\n  "{name}": [\n{lines}\n  ]'
    return text + "\n}\n"

"""Write results to keep in a repository: a compressed file for each stack, without data that no page shows.

A trial of 13 KB shrinks to some hundred bytes. Every trial keeps the data that verdicts, tables and exports are made
from. A cell's front trial (the one nearest to the median) also keeps what the cell's page draws and quotes.
"""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.studies import study_results
from conformance.model.studies.study import Study
from conformance.model.studies.study_point import StudyPoint
from conformance.model.trials.trial import Measurement
from conformance.reporting import heatmaps
from conformance.reporting.html import cell_page, slugs
from conformance.results import compressed, merge, source, store
from conformance.support import files

#: fields of a front trial's evidence that its page shows
_SHOWN = ("calibration", "congestion_control", "kernel_release", "qdiscs", "trace")
#: significant digits of numbers in traces and series of rates: more than a drawing of 1000 by 100 units can show
_DIGITS = 4


def write(read: source.Source, target: pathlib.Path) -> list[pathlib.Path]:
    """Write STACK.jsonl.xz into the folder `target` for each stack of the Source; return their paths.

    An existing file keeps its results of algorithms that were not measured this time. A series that is all
    "unsupported" counts as not measured, since not every kernel and stack is built on every machine. Raises UserError.
    """
    by_stack: dict[str, list[Measurement]] = collections.defaultdict(list)
    for series in heatmaps.all_series(read.measurements):
        if all(result.unsupported for result in series.utilization.results.values()):
            continue
        front = {m.trial.key for cell in series.cells if (m := cell_page.front(series, cell))}
        by_stack[series.scheme.stack] += [
            _lean(m, read.whole(m) if m.trial.key in front else m)
            for result in series.utilization.results.values()
            for m in result.measurements
        ]
    return _write(target, by_stack, lambda m: m.scheme.algorithm)


def write_scenarios(read: source.Source, target: pathlib.Path) -> list[pathlib.Path]:
    """Write scenarios/STACK.jsonl.xz into the folder `target` for each stack whose flows share a network; return paths.

    Evidence is left out, and per-second rates are rounded. An existing file keeps its results of schemes and scenarios
    that were not measured this time. Raises UserError.
    """
    shared = (m for m in read.measurements if not m.setting.of_profile and m.metrics)
    by_stack = grouped((m.scheme.stack, _bare(m)) for m in shared)
    return _write(target / "scenarios", by_stack, lambda m: (m.scheme.id, m.setting.profile))


def write_study(study: Study, measurements: Iterable[Measurement], target: pathlib.Path) -> pathlib.Path:
    """Write STUDY.jsonl.xz into the folder `target`: all trials of the study's points, from one build per algorithm.

    An existing file keeps its trials of points that were not measured this time. Raises UserError if these are of
    another build than the new ones, since only one build of an algorithm is read from a file, and if there is nothing
    to write.
    """
    of_study = {
        point: measurements
        for point, measurements in study_results.of(study, measurements).measured.items()
        if study_results.anything_known(measurements)
    }
    if not of_study:
        raise UserError(
            f"these results have no measured points of {study.name}",
            f"measure it with `conformance study run {study.name}`",
        )
    path = target / f"{study.name}.jsonl.xz"
    before = study_results.of(study, store.read(path)).measured if path.exists() else {}
    before = {
        point: measurements for point, measurements in before.items() if study_results.anything_known(measurements)
    }
    _check_one_build(path, before, of_study)
    kept = {**before, **of_study}
    ordered = sorted(kept, key=lambda at: (at.scenario, at.stack, at.algorithm, at.point.id, at.client))
    # Two points may have the same setting, and so the same trials.
    lines = {m.trial.key: store.dumps(_bare(m)) for point in ordered for m in kept[point]}
    return files.write(path, compressed.compress(b"".join(lines.values())), "choose another --out")


def _check_one_build(
    path: pathlib.Path,
    before: Mapping[StudyPoint, Sequence[Measurement]],
    measurements: Mapping[StudyPoint, Sequence[Measurement]],
) -> None:
    """Raise UserError if the file would hold points of one algorithm from two builds, kernels or labs."""
    new = {
        study_results.of_point(point): study_results.build(measurements[0])
        for point, measurements in measurements.items()
    }
    left = (point for point in before if point not in measurements)
    for point in left:
        of = study_results.of_point(point)
        if of in new and study_results.build(before[point][0]) != new[of]:
            raise UserError(
                f"{path} holds {point.words}, which is from another build, kernel or lab and not in these results",
                "measure that point, too, or remove the file",
            )


def _bare(measurement: Measurement) -> Measurement:
    """Return the measurement without evidence, on which no claim rests.

    Per-second rates are rounded; in studies of many flows they are most of the bytes.
    """
    flows, links = _rounded_series(measurement.flows), _rounded_series(measurement.links)
    return dataclasses.replace(measurement, evidence={}, flows=flows, links=links)


def _rounded_series(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records of flows or links with their per-second rates rounded."""
    return [
        {name: [_short(v) for v in value] if name.endswith("_series_mbps") else value for name, value in record.items()}
        for record in records
    ]


def _write(
    folder: pathlib.Path, by_stack: Mapping[str, Sequence[Measurement]], of: Callable[[Measurement], object]
) -> list[pathlib.Path]:
    """Write a file for each stack; lines of an existing one stay if `of` returns for them what it does for no new one.

    The files are in the folder, whatever names a results file gives the stacks.
    """
    written = []
    for stack, measurements in sorted(by_stack.items()):
        path = folder / f"{slugs.of_name(stack)}.jsonl.xz"
        new = set(map(of, measurements))
        kept = [m for m in store.read(path) if of(m) not in new] if path.exists() else []
        lines = b"".join(store.dumps(m) for m in sorted([*measurements, *kept], key=lambda m: merge.order(m.trial)))
        written.append(files.write(path, compressed.compress(lines), "choose another --out"))
    return written


def _lean(measurement: Measurement, whole: Measurement) -> Measurement:
    """Return a measurement, as a Source has it without anything about the machine, with what pages show of `whole`."""
    evidence: dict[str, Any] = {name: whole.evidence[name] for name in _SHOWN if whole.evidence.get(name)}
    if isinstance(evidence.get("trace"), dict):
        evidence["trace"] = {
            name: [_short(value) for value in column] if isinstance(column, list) else column
            for name, column in evidence["trace"].items()
        }
    return dataclasses.replace(measurement, evidence=evidence)


def _short(value: object) -> object:
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value

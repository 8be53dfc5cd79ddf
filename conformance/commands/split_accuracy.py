"""`conformance dev split accuracy`: compare predicted with measured throughput for different splits of one path."""

import dataclasses
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import documents
from conformance.commands import common
from conformance.commands.measuring import measure
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus, of_outcomes
from conformance.engine import benches, runs
from conformance.engine.benches import Choice, Means
from conformance.lab import proxy as proxies
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell, end_to_end
from conformance.model.split import accuracy, split_paths
from conformance.model.split.accuracy import Accuracy, Panel
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support.record import Record

#: a path in a Panel: (row, column)
PanelPlace = tuple[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPanel:
    """A panel of one algorithm: {(row, column): Mbit/s, or None if unknown}, measured and predicted."""

    SHOWN = (
        "scheme=algorithm", "title=panel.title", "rows=panel.row_title", "columns=panel.column_title", "paths",
    )  # fmt: skip

    #: algorithm/stack/version
    algorithm: str
    panel: Panel
    measured: Mapping[PanelPlace, float | None]
    predicted: Mapping[PanelPlace, float | None]

    @property
    def paths(self) -> list["PathErrorRecord"]:
        """Each path with its throughput, measured and predicted, for a document."""
        return [
            PathErrorRecord(
                row=at[0], column=at[1], path=split_paths.Path(segments[0], segments[1], exact=True).id,
                measured_mbps=self.measured[at], predicted_mbps=self.predicted[at], error=self.errors[at],
            )
            for at, segments in self.panel.paths.items()
        ]  # fmt: skip

    @property
    def errors(self) -> dict[PanelPlace, float | None]:
        """The relative error of the prediction for each path; None if the prediction or measurement is unknown."""
        return {at: accuracy.relative_error(self.predicted[at], self.measured[at]) for at in self.panel.paths}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The errors of a scheme over one panel, or over all panels; `accuracy` is None if all errors are unknown."""

    scheme: str
    paths: str
    of: int
    accuracy: Accuracy | None


class PathErrorRecord(Record):
    row: str
    column: str
    path: str
    #: Null if nothing is known.
    measured_mbps: float | None
    predicted_mbps: float | None
    #: (predicted - measured) / measured
    error: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SplitAccuracy(Result):
    """All panels of all algorithms."""

    SCHEMA = "split-accuracy"
    SHOWN = ("settings", "trials", "took_s", "spent_s", "panels", "summaries", "problems")

    panels: tuple[ComparedPanel, ...]
    #: Trials that say nothing about the stack.
    problems: tuple[common.Trouble, ...]
    settings: int
    trials: int
    #: Wall seconds of this run.
    took_s: float
    #: Core seconds of all trials, whenever they were made.
    spent_s: float

    @property
    def summaries(self) -> list[Summary]:
        """The errors of each scheme, summarized: those of each panel, then of all panels together."""
        lines = []
        for scheme in dict.fromkeys(compared.algorithm for compared in self.panels):
            compared = [compared for compared in self.panels if compared.algorithm == scheme]
            groups = [(compared.panel.title, list(compared.errors.values())) for compared in compared]
            groups.append(("all", [error for _, errors in groups for error in errors]))
            lines += [
                Summary(scheme=scheme, paths=title, of=len(errors), accuracy=accuracy.summary(errors))
                for title, errors in groups
            ]
        return lines

    @property
    def exit_status(self) -> ExitStatus:
        """ERROR if a trial failed, UNKNOWN if an algorithm is not supported and nothing is worse, else DONE."""
        return of_outcomes(problem.outcome for problem in self.problems)


def compute(
    algorithms: Sequence[str], choice: Choice, means: Means, *, proxy: str, queue_sized_by: str, trials: int,
    profile: str | None,
) -> SplitAccuracy:  # fmt: skip
    """Measure the paths, and each segment alone, and compare. Raises UserError.

    Without a proxy, the paths are measured end to end, and predicted from the single cell that they amount to.
    """
    bench = benches.find(choice)
    if bench.adapter.manifest.transport != "tcp":
        raise UserError(f"a proxy splits TCP, but {bench.adapter.name} serves over {bench.adapter.manifest.transport}")
    for algorithm in algorithms:
        common.require_offered(bench, algorithm)
    profile = profile or str(bench.profile)
    chosen_proxy = proxies.choose(proxy)
    panels = accuracy.panels()
    paths = {
        segments: documents.path(profile, segments, chosen_proxy, queue_sized_by)
        for panel in panels
        for segments in panel.paths.values()
    }
    # A split path is predicted from its segments, an unsplit one from the cell that they amount to.
    predict = split_paths.predict_split if chosen_proxy else split_paths.predict_end_to_end
    composed = {segments: split_paths.Path(segments[0], segments[1], exact=True) for segments in paths}
    needed = {segments: segments if chosen_proxy else (end_to_end(segments),) for segments in paths}
    alone = {cell: documents.profile(profile, cell) for cells in needed.values() for cell in cells}
    settings = [*paths.values(), *alone.values()]
    work = [(algorithm, setting) for algorithm in algorithms for setting in settings]
    began = time.monotonic()
    measured: dict[Any, float | None] = {}
    problems: set[common.Trouble] = set()
    spent_s = 0.0
    for (algorithm, setting), measurements in measure(bench, work, runs.seeds(trials), means):
        measured[algorithm, setting] = _throughput(measurements)
        spent_s += sum(m.host.get("wall_s", 0) for m in measurements)
        problems |= {
            common.Trouble(outcome=m.outcome, message=f"{algorithm}, {setting.id}: {m.message}")
            for m in measurements
            if m.outcome in common.BAD
        }
    known = {key: rate for key, rate in measured.items() if rate is not None}

    def rates(algorithm: str, cells: Iterable[Cell]) -> dict[Cell, float]:
        return {cell: known[algorithm, alone[cell]] for cell in cells if (algorithm, alone[cell]) in known}

    compared = tuple(
        ComparedPanel(
            algorithm=bench.scheme(algorithm).id,
            panel=panel,
            measured={at: measured[algorithm, paths[segments]] for at, segments in panel.paths.items()},
            predicted={
                at: predict(composed[segments], rates(algorithm, needed[segments]))
                for at, segments in panel.paths.items()
            },
        )
        for algorithm in algorithms
        for panel in panels
    )
    return SplitAccuracy(
        panels=compared, problems=tuple(sorted(problems)), settings=len(work), trials=trials,
        took_s=time.monotonic() - began, spent_s=spent_s,
    )  # fmt: skip


def _throughput(measurements: Sequence[Measurement]) -> float | None:
    """Return the study's 50th percentile, in Mbit/s, of the transfers that completed; None if a trial failed."""
    if common.bad(measurements):
        return None
    ended = accuracy.p50([m.metrics["goodput_mbps"] for m in measurements if m.outcome is Outcome.OK])
    return None if ended is None else float(ended)

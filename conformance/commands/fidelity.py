"""`conformance dev fidelity`: compare our measurements with published cells, by bias and rms of utilization.

The published figures are for comparison only; nothing is fitted to them. They are means of 20 trials (the captions say
medians) and rounded to 0.01 in many cells, so differences below 0.005 mean nothing.
"""

import collections
import csv
import dataclasses
import pathlib
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.catalogue import documents
from conformance.commands.result import Result
from conformance.model.errors import UserError
from conformance.model.groups import grouped
from conformance.model.judging.statistics import bias_and_rms
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import paths

#: {scheme: the largest (rms, bias)} that `make fidelity` promises, over 60 cells and 20 trials; None: no promised bias
LIMITS: dict[str, tuple[float, float | None]] = {
    "cubic": (0.015, None),
    "reno": (0.03, None),
    "bbrv1": (0.03, None),
    "bbrv2": (0.04, 0.015),
    "bbrv3": (0.04, 0.015),
}

#: of several published figures for a cell, the first dataset's counts: 20 trials before 10, later before earlier
_DATASETS = ("figure4", "D3-2025-01-11", "D1-2024-12-22", "D2-2025-01-07")
_CELL = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")
_LINUX = "linux-tcp"
#: how long a published transfer takes at the bottleneck's full rate
_TRANSFER_S = 10.0
#: {adapter: the name under which another version of its stack was published}
_PUBLISHED_AS = {"cloudflare-quiche-0.24": "cloudflare-quiche"}


#: (scheme, cell, our utilization, the published one)
FidelityRow = tuple[str, Cell, float, float]
#: (utilization, dataset) by (algorithm, implementation, cell)
Published = Mapping[tuple[str, str, Cell], tuple[float, str]]


def published_rows() -> Iterator[tuple[dict[str, str], Cell, float]]:
    """Yield (row, cell, utilization) of the published cells; those without a utilization are left out."""
    with open(paths.data("zones", "published", "atc25.csv"), newline="", encoding="utf-8") as f:
        for row in csv.DictReader(f):
            if row["utilization"]:
                yield row, Cell(*(float(row[name]) for name in _CELL)), float(row["utilization"])


def published_cells() -> Published:
    """Return {(algorithm, implementation, cell): (utilization, dataset)}.

    If several datasets have a figure for a cell, the first of _DATASETS counts.
    """
    by_scheme: dict[tuple[str, str, Cell], tuple[float, str]] = {}
    for row, cell, utilization in published_rows():
        key, dataset = (row["algorithm"], row["implementation"], cell), row["dataset"]
        if dataset not in _DATASETS:
            continue
        if key not in by_scheme or _DATASETS.index(dataset) < _DATASETS.index(by_scheme[key][1]):
            by_scheme[key] = utilization, dataset
    return by_scheme


def compare(measurements: Iterable[Measurement], published: Published) -> list[FidelityRow]:
    """Return (scheme, cell, ours, published) of every published cell that was measured.

    Ours is the mean over trials, as the published figure is. A scheme is named by its algorithm (of Linux TCP) or as
    algorithm/stack. Only transfers of 10 s over one link are compared, as nothing else was published. A cell in which a
    trial did not complete has no mean, and is left out. Raises UserError if a scheme's results are of unlike runs,
    which are never pooled.
    """
    incomplete: set[tuple[str, str, Cell]] = set()
    values: dict[tuple[str, str, Cell], list[float]] = collections.defaultdict(list)
    runs: dict[tuple[str, str], object] = {}
    for m in measurements:
        t = m.trial
        single = not t.setting.segments and t.setting.profile in documents.PROFILES.values()
        if not single or t.setting.transfer_s != _TRANSFER_S:
            continue
        run = t.scheme.stack_digest, t.scheme.kernel_digest, t.setting.profile_digest, t.room, t.lab_digest
        scheme = t.scheme.algorithm, t.scheme.stack
        if runs.setdefault(scheme, run) != run:
            raise UserError(f"results of {_name(*scheme)} come from different runs", "compare one run at a time")
        if m.outcome is Outcome.OK and m.utilization is not None:
            values[*scheme, t.setting.cell].append(m.utilization)
        else:
            incomplete.add((*scheme, t.setting.cell))
    rows = []
    for (algorithm, stack, cell), ours in sorted(values.items()):
        key = algorithm, _PUBLISHED_AS.get(stack, stack), cell
        if key in published and (algorithm, stack, cell) not in incomplete:
            rows.append((_name(algorithm, stack), cell, statistics.fmean(ours), published[key][0]))
    return rows


def _name(algorithm: str, stack: str) -> str:
    return algorithm if stack == _LINUX else f"{algorithm}/{stack}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FidelityLine:
    """Our utilization minus the published one, over a scheme's cells at one bandwidth, or at all if that is None."""

    #: An algorithm of Linux TCP, or algorithm/stack.
    scheme: str
    #: Null for all of the scheme's cells together.
    bandwidth_mbps: float | None
    cells: int
    #: Mean of our values minus the published ones.
    bias: float
    rms: float
    worst_cell: Cell
    worst: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A limit on a scheme's "rms" or "bias" that `make fidelity` promises to keep, and the value that was found."""

    SHOWN = ("scheme", "cells", "name", "value", "limit", "kept")

    scheme: str
    cells: int
    #: "rms" or "bias"
    name: str
    value: float
    limit: float

    @property
    def kept(self) -> bool:
        """Whether the value is within the limit."""
        return abs(self.value) <= self.limit


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fidelity(Result):
    """Our utilization compared with what was published."""

    SCHEMA = "fidelity"
    SHOWN = ("lines", "limits")

    lines: tuple[FidelityLine, ...]

    @property
    def limits(self) -> list[Limit]:
        """What `make fidelity` promises: the limits of the schemes that have any, each over all cells of the scheme."""
        return [
            Limit(scheme=line.scheme, cells=line.cells, name=name, value=value, limit=limit)
            for line in self.lines
            if line.bandwidth_mbps is None and line.scheme in LIMITS
            for name, value, limit in zip(("rms", "bias"), (line.rms, line.bias), LIMITS[line.scheme], strict=True)
            if limit is not None
        ]


def table(rows: Iterable[FidelityRow]) -> list[FidelityLine]:
    """Return a FidelityLine for each scheme and bandwidth, and one for all of the scheme's cells."""
    groups = grouped(
        ((algorithm, bandwidth), (cell, ours - theirs))
        for algorithm, cell, ours, theirs in rows
        for bandwidth in (cell.bandwidth_mbps, None)
    )
    lines = []
    for (algorithm, bandwidth), differences in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or 1e9)):
        bias, rms = bias_and_rms([difference for _, difference in differences])
        worst_cell, worst = max(differences, key=lambda pair: abs(pair[1]))
        lines.append(
            FidelityLine(scheme=algorithm, bandwidth_mbps=bandwidth, cells=len(differences), bias=bias, rms=rms,
                 worst_cell=worst_cell, worst=worst)
        )  # fmt: skip
    return lines


def compute(results: Sequence[str | pathlib.Path]) -> Fidelity:
    """Compare results files with the published cells. Raises UserError."""
    rows = compare(store.read(*results), published_cells())
    if not rows:
        raise UserError("no cell of these results is among the published ones", "measure 10mbps or 20mbps cells")
    return Fidelity(lines=tuple(table(rows)))

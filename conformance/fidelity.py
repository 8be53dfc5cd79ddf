"""Compare our measurements with published cells: bias and rms of utilization, by algorithm.

The published figures are to compare with, not to fit to. They are means of 20 trials (captions: medians) and
rounded to 0.01 in many cells, so differences below 0.005 mean nothing.
"""

import collections
import csv
import pathlib
import statistics

import rich.table

from conformance import store
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.statistics import bias_and_rms
from conformance.model.trial import Outcome

#: where a checkout of the project's team keeps the published cells
DEFAULT_PUBLISHED = pathlib.Path("../shared/reference/atc25_heatmaps.csv")


def published_cells(path):
    """{(algorithm, cell): (utilization, dataset)} of Linux TCP; of several datasets the first one listed counts."""
    try:
        with open(path, newline="") as f:
            found = {}
            for number, row in enumerate(csv.DictReader(f), 2):
                try:
                    cell = Cell(float(row["bandwidth_mbps"]), float(row["one_way_delay_ms"]), float(row["loss_pct"]))
                    value = float(row["utilization"]) if row["utilization"] else None
                except (KeyError, TypeError, ValueError) as error:
                    raise UserError(f"{path}:{number}: {type(error).__name__}: {error}") from None
                if row["implementation"] == "linux-tcp" and value is not None:
                    found.setdefault((row["algorithm"], cell), (value, row["dataset"]))
            return found
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}", "give the published cells with --published") from None


def compare(measurements, published):
    """[(algorithm, cell, ours, published)]: means over trials, because the published figures are means."""
    values = collections.defaultdict(list)
    for m in measurements:
        if m.outcome is Outcome.OK:
            values[m.trial.scheme.algorithm, m.trial.setting.cell].append(m.utilization)
    return [
        (algorithm, cell, statistics.fmean(ours), published[algorithm, cell][0])
        for (algorithm, cell), ours in sorted(values.items())
        if (algorithm, cell) in published
    ]


def table(rows):
    """[(algorithm, bandwidth, number of cells, bias, rms, worst cell, its difference)], bandwidth None for all."""
    groups = collections.defaultdict(list)
    for algorithm, cell, ours, theirs in rows:
        for bandwidth in (cell.bandwidth_mbps, None):
            groups[algorithm, bandwidth].append((cell, ours - theirs))
    lines = []
    for (algorithm, bandwidth), found in sorted(groups.items(), key=lambda g: (g[0][0], g[0][1] or 1e9)):
        bias, rms = bias_and_rms([difference for _, difference in found])
        worst = max(found, key=lambda pair: abs(pair[1]))
        lines.append((algorithm, bandwidth, len(found), bias, rms, worst[0], worst[1]))
    return lines


def show(results, published, console):
    measurements = [m for path in results for m in store.read(path)]
    rows = compare(measurements, published_cells(published or DEFAULT_PUBLISHED))
    if not rows:
        raise UserError("no cell of these results is among the published ones", "measure 10mbps or 20mbps cells")
    shown = rich.table.Table(title="utilization: ours minus published (ATC'25, Linux 5.15)", title_justify="left")
    for name in ("algorithm", "bandwidth", "cells", "bias", "rms", "largest difference"):
        shown.add_column(name, justify="left" if name == "algorithm" else "right")
    for algorithm, bandwidth, n, bias, rms, cell, difference in table(rows):
        where = "all" if bandwidth is None else f"{bandwidth:g} Mbit/s"
        shown.add_row(algorithm, where, str(n), f"{bias:+.4f}", f"{rms:.4f}", f"{difference:+.3f} at {cell.id}")
    console.print(shown)

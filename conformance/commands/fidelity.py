"""Compare our measurements with published cells: bias and rms of utilization, by algorithm and implementation.

The published figures are to compare with, not to fit to. They are means of 20 trials (captions: medians) and
rounded to 0.01 in many cells, so differences below 0.005 mean nothing.
"""

import collections
import csv
import math
import statistics

import rich.table

from conformance.model.errors import UserError, located
from conformance.model.setting import Cell
from conformance.model.statistics import bias_and_rms
from conformance.model.trial import Outcome
from conformance.results import store
from conformance.support import paths

#: (rms, bias) that `make fidelity` promises, of 60 cells and 20 trials; None where no bias is promised
LIMITS = {
    "cubic": (0.015, None),
    "reno": (0.03, None),
    "bbrv1": (0.03, None),
    "bbrv2": (0.04, 0.015),
    "bbrv3": (0.04, 0.015),
}

#: of several published figures for a cell the first of these counts: 20 trials before 10, later before earlier
_DATASETS = ("figure4", "D3-2025-01-11", "D1-2024-12-22", "D2-2025-01-07")
_CELL = ("bandwidth_mbps", "one_way_delay_ms", "loss_pct")
_COLUMNS = (*_CELL, "algorithm", "implementation", "dataset", "utilization")
_LINUX = "linux-tcp"
#: adapters that are another version of what was published under this name
_PUBLISHED_AS = {"cloudflare-quiche-0.24": "cloudflare-quiche"}


def published_rows(path):
    """Yield (row, cell, utilization) of a CSV of published cells; those without a utilization are left out."""
    try:
        with open(path, newline="", encoding="utf-8") as f:
            for number, row in enumerate(csv.DictReader(f), 2):
                with located(f"{path}:{number}"):
                    if missing := [name for name in _COLUMNS if row.get(name) is None]:
                        raise UserError(f"no {', '.join(missing)}")
                    cell = Cell(*(_number(name, row[name]) for name in _CELL))
                    utilization = _number("utilization", row["utilization"]) if row["utilization"] else None
                if utilization is not None:
                    yield row, cell, utilization
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}",
            "give the published cells with --published",
        ) from None


def _number(name, text):
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise UserError(f"{name} is {text!r}, no number to count with")
    return found


def published_cells(path):
    """{(algorithm, implementation, cell): (utilization, dataset)}, the figure of the best dataset for each."""
    found = {}
    for row, cell, utilization in published_rows(path):
        key, dataset = (row["algorithm"], row["implementation"], cell), row["dataset"]
        if dataset not in _DATASETS:
            continue
        if key not in found or _DATASETS.index(dataset) < _DATASETS.index(found[key][1]):
            found[key] = utilization, dataset
    return found


def compare(measurements, published):
    """[(scheme, cell, ours, published)]: means over trials, because the published figures are means.

    A scheme is an algorithm of Linux TCP, or algorithm/stack. Raises UserError where one's results are of several runs:
    unlike runs are never pooled.
    """
    values = collections.defaultdict(list)
    runs = {}
    for m in measurements:
        t = m.trial
        if t.setting.segments:
            continue  # paths: the published cells are of one segment
        run = t.scheme.stack_digest, t.scheme.kernel_digest, t.setting.profile_digest, t.room, t.lab_digest
        scheme = t.scheme.algorithm, t.scheme.stack
        if runs.setdefault(scheme, run) != run:
            raise UserError(f"results of {_name(*scheme)} are of unlike runs", "compare one run at a time")
        if m.outcome is Outcome.OK:
            values[(*scheme, t.setting.cell)].append(m.utilization)
    rows = []
    for (algorithm, stack, cell), ours in sorted(values.items()):
        key = algorithm, _PUBLISHED_AS.get(stack, stack), cell
        if key in published:
            rows.append((_name(algorithm, stack), cell, statistics.fmean(ours), published[key][0]))
    return rows


def _name(algorithm, stack):
    return algorithm if stack == _LINUX else f"{algorithm}/{stack}"


def table(rows):
    """[(scheme, bandwidth, number of cells, bias, rms, worst cell, its difference)], bandwidth None for all."""
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
    measurements = store.read(*results)
    rows = compare(measurements, published_cells(published or paths.data("zones", "published", "atc25.csv")))
    if not rows:
        raise UserError("no cell of these results is among the published ones", "measure 10mbps or 20mbps cells")
    shown = rich.table.Table(title="utilization: ours minus published (ATC'25)", title_justify="left")
    for name in ("scheme", "bandwidth", "cells", "bias", "rms", "largest difference"):
        shown.add_column(name, justify="left" if name == "scheme" else "right", no_wrap=name == "scheme")
    for algorithm, bandwidth, n, bias, rms, cell, difference in table(rows):
        where = "all" if bandwidth is None else f"{bandwidth:g} Mbit/s"
        shown.add_row(algorithm, where, str(n), f"{bias:+.4f}", f"{rms:.4f}", f"{difference:+.3f} at {cell.id}")
    console.print(shown)
    for algorithm, bandwidth, n, bias, rms, _, _ in table(rows):
        if bandwidth is None and algorithm in LIMITS:
            console.print(f"{algorithm}, {n} cells: {_kept('rms', rms, LIMITS[algorithm][0])}", end="")
            most = LIMITS[algorithm][1]
            console.print("" if most is None else f"; {_kept('bias', bias, most)}")


def _kept(name, value, limit):
    return f"{name} {value:.4f} {'within' if abs(value) <= limit else 'ABOVE'} the limit of {limit}"

"""`conformance matrix`: every adapter and algorithm: built or not, verdict in its smoke cells or a grid, seconds."""

import collections
import dataclasses
import statistics

import rich.table
import rich.text

from conformance.catalogue import documents
from conformance.commands.run import measure
from conformance.engine import benches, runs
from conformance.lab import manifest
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.setting import Cell
from conformance.model.trial import Outcome
from conformance.model.verdict import ALPHA, Status, judge, overall
from conformance.support import files

#: where an algorithm that has no zone is measured, so that one sees that it runs
_ANY_CELL = Cell(10, 20, 0)
#: cells named in a row
_SHOWN = 2
_RATE = f"false alarms in at most {ALPHA:.0%} of the runs of a row (Bonferroni over its cells)"
_COLOURS = {Status.CONFORMS: "green", Status.VIOLATES: "red", Status.ERROR: "red"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One adapter and algorithm. `status` None: nothing was judged, and `what` says why."""

    stack: str
    algorithm: str
    called: str
    status: Status | None
    what: str
    wall_s: float | None = None


def run(stacks, choice, *, grid, trials, results, workers, target, console):
    """Measure and show; `stacks` empty means all that ship, `grid` None the smoke cells of each zone.

    Returns 0; what violates is the table's to say.
    """
    wanted = grids.cells(grid) if grid else None
    rows = []
    for about in [manifest.read(stack) for stack in stacks] or manifest.shipped():
        if about.offered():
            rows += _rows(about, stacks, choice, wanted, trials, results, workers, console)
    console.print(_table(rows, f"grid {grid}" if grid else "its smoke cells"))
    console.print(_RATE, soft_wrap=True)
    if target:
        files.write(target, markdown(rows))
        console.print(f"also as Markdown: {target}", soft_wrap=True)
    return 0


def _rows(about, stacks, choice, wanted, trials, results, workers, console):
    name = next((s for s in stacks if manifest.read(s) == about), about.name)
    try:
        bench = benches.find(dataclasses.replace(choice, stack=name))
    except UserError as error:
        return [
            Row(stack=about.name, algorithm=a, called=about.called(a), status=Status.UNSUPPORTED, what=str(error))
            for a in about.offered()
        ]
    plans = {algorithm: _plan(algorithm, bench.profile, wanted) for algorithm in about.offered()}
    work = [(a, documents.profile(bench.profile, cell)) for a, (_, cells) in plans.items() for cell in cells]
    found = {algorithm: {} for algorithm in plans}
    console.print(f"{about.name}: {len(plans)} algorithms, {len(work)} cells", soft_wrap=True)
    for (algorithm, setting), measurements in measure(bench, work, runs.seeds(trials), results, workers, console):
        found[algorithm][setting.cell] = measurements
    return [
        _row(about, algorithm, [(zone, cell, found[algorithm][cell]) for zone, cell in judged], found[algorithm])
        for algorithm, (judged, _) in plans.items()
    ]


def _plan(algorithm, profile, wanted=None):
    """([(zone, cell) to judge], cells to measure): the zones' smoke cells, or those `wanted`."""
    try:
        zones = [documents.zone_of(algorithm, kind, profile) for kind in documents.KINDS]
    except UserError:
        return [], list(wanted or [_ANY_CELL])
    judged = [(zone, cell) for zone in zones for cell in wanted or zone.smoke if cell in zone.intervals]
    return judged, list(wanted or dict.fromkeys(cell for _, cell in judged))


def _row(about, algorithm, judged, by_cell):
    measurements = [m for found in by_cell.values() for m in found]
    walls = [m.host["wall_s"] for m in measurements if "wall_s" in m.host]
    seen = {
        "stack": about.name, "algorithm": algorithm, "called": about.called(algorithm),
        "wall_s": statistics.median(walls) if walls else None,
    }  # fmt: skip
    verdicts = [judge(zone, cell, found, len(judged)) for zone, cell, found in judged]
    if verdicts:
        status = overall(verdicts)
        counted = collections.Counter(v.status for v in verdicts)[status]
        what = f"{counted} of {len(verdicts)}"
        if status in (Status.ERROR, Status.UNSUPPORTED):
            what += f": {next(v.reason for v in verdicts if v.status is status)}"
        elif status is not Status.CONFORMS:
            beside = [_beside(v) for v in verdicts if v.status is status]
            more = f" and {len(beside) - _SHOWN} more" if len(beside) > _SHOWN else ""
            what += f": {', '.join(beside[:_SHOWN])}{more}"
        return Row(**seen, status=status, what=what)
    bad = next((m for m in measurements if m.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)), None)
    if bad is not None:
        return Row(**seen, status=Status(str(bad.outcome)), what=bad.message)
    cell = _ANY_CELL if _ANY_CELL in by_cell else next(iter(by_cell))
    median = statistics.median(m.utilization for m in by_cell[cell])
    return Row(**seen, status=None, what=f"no zone; utilization {median:.3f} at {cell.id}")


def _beside(verdict):
    kind = "loss " if "/loss" in verdict.zone_id else ""
    sign = "+" if verdict.value > verdict.permitted.high else "-"
    return f"{kind}{verdict.cell.id} {sign}"


def _table(rows, by):
    table = rich.table.Table(title=f"every adapter and algorithm, by {by}", title_justify="left")
    for column in ("stack", "algorithm", "called", "verdict", "cells (+ above, - below the zone)"):
        table.add_column(column, overflow="fold")
    table.add_column("wall s a trial", justify="right")
    last = None
    for row in rows:
        table.add_row(
            row.stack if row.stack != last else "", row.algorithm, row.called,
            rich.text.Text(str(row.status or "not judged"), _COLOURS.get(row.status, "yellow")), row.what, _wall(row),
        )  # fmt: skip
        last = row.stack
    return table


def _wall(row):
    return "" if row.wall_s is None else f"{row.wall_s:.2f}"


def markdown(rows):
    """The same table, for a page."""
    lines = ["| stack | algorithm | called | verdict | cells (+ above, - below the zone) | wall s a trial |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        what = row.what.replace("|", "\\|").replace("<", "&lt;")
        lines.append(
            f"| {row.stack} | {row.algorithm} | {row.called} | {row.status or 'not judged'} | {what} | {_wall(row)} |"
        )
    return "\n".join([*lines, "", f"{_RATE[0].upper()}{_RATE[1:]}."]) + "\n"

"""`conformance run`: a grid without pytest. Measures, shows progress, judges, draws."""

import contextlib

import rich.markup
import rich.progress

from conformance import engine, specs, store
from conformance.model import grid as grids
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.model.verdict import Status, judge
from conformance.reporting import tables, terminal


def run(algorithm, *, stack, grid, trials, lab, kernel, results, profile, overrides, workers, console):
    """Measure and show; returns the verdicts, none where no zone applies. Raises UserError."""
    cells = grids.cells(grid)
    settings = [specs.profile(profile, cell, **overrides) for cell in cells]
    zone = _zone(algorithm, settings[0], console)
    bench = engine.bench(stack, lab, kernel)
    kept = store.Store(results)
    measured = {}
    work = [(algorithm, s) for s in settings]
    with (
        engine.Run(bench, kept, work, engine.seeds(trials), workers) as running,
        _bar(console, running.progress) as update,
    ):
        for (_, setting), measurements in running.as_completed():
            measured[setting.cell] = measurements
            update()
            _complain(console, setting.cell, measurements)
    heatmap = tables.heatmap([m for cell in cells for m in measured[cell]], zone)
    terminal.show([heatmap], console)
    console.print(f"results: {results}", soft_wrap=True)
    return [judge(zone, c, measured[c]) for c in cells if zone and c in zone.intervals]


def _zone(algorithm, setting, console):
    """The zone that applies to this setting, or None, having said why."""
    try:
        zone = specs.zone_of(algorithm)
    except UserError as error:
        console.print(f"not judged: {error}", style="yellow", markup=False, soft_wrap=True)
        return None
    if zone.profile_digest != setting.profile_digest:
        console.print(f"not judged: zone {zone.id} was measured under other settings", style="yellow", soft_wrap=True)
        return None
    return zone


@contextlib.contextmanager
def _bar(console, progress):
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TextColumn("{task.fields[line]}"),
    )
    with rich.progress.Progress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("measuring", total=progress.total, line="")

        def update():
            bar.update(task, completed=progress.done, line=progress.line())

        yield update


def _complain(console, cell, measurements):
    for message in sorted({m.message for m in measurements if m.outcome is Outcome.ERROR}):
        console.print(f"[red]error[/] {cell.id}: {rich.markup.escape(message)}", soft_wrap=True)


def exit_status(verdicts):
    """See conformance/cli.py for what the statuses mean."""
    found = {v.status for v in verdicts}
    if Status.VIOLATES in found:
        return 1
    if Status.ERROR in found:
        return 3
    return 4 if found & {Status.INCONCLUSIVE, Status.UNSUPPORTED} else 0

"""`conformance cross`: each algorithm, measured, against each one's zone. The diagonal should conform, nothing else."""

import collections

import rich.table

from conformance import engine, specs, store
from conformance.campaign import progress_bar
from conformance.model.errors import UserError
from conformance.model.verdict import Status, judge, overall

_COLOURS = {Status.CONFORMS: "green", Status.VIOLATES: "red", Status.ERROR: "red"}


def run(algorithms, *, stack, kernel, trials, first_seed, results, workers, console):
    """Measure every algorithm on the smoke cells of all of them, judge each by each zone, show.

    Returns the exit status: 0 the diagonal conforms and all else violates, 1 not so, 3 error.
    """
    zones = [specs.zone_of(algorithm) for algorithm in algorithms]
    if len({zone.profile_digest for zone in zones}) != 1:
        raise UserError("these zones were measured under different profiles", "cross zones of one profile")
    cells = sorted({cell for zone in zones for cell in zone.smoke})
    lacking = [f"{zone.id} lacks {cell.id}" for zone in zones for cell in cells if cell not in zone.intervals]
    if lacking:
        raise UserError(lacking[0], "cross zones of the same grid")
    bench = engine.bench(stack, kernel=kernel)
    work = [(algorithm, specs.profile(zones[0].profile, cell)) for algorithm in algorithms for cell in cells]
    measured = {}
    with (
        progress_bar(console, len(work) * trials) as show,
        engine.Run(
            bench, store.Store(results), work, engine.seeds(trials, first_seed), workers, on_trial=show
        ) as running,
    ):
        for (algorithm, setting), measurements in running.as_completed():
            measured[algorithm, setting.cell] = measurements
    verdicts = {
        (algorithm, zone.algorithm): [judge(zone, cell, measured[algorithm, cell]) for cell in cells]
        for algorithm in algorithms
        for zone in zones
    }
    _show(verdicts, algorithms, bench, cells, trials, console)
    statuses = {pair: overall(found) for pair, found in verdicts.items()}
    if Status.ERROR in statuses.values():
        return 3
    wanted = {pair: Status.CONFORMS if pair[0] == pair[1] else Status.VIOLATES for pair in statuses}
    return 0 if statuses == wanted else 1


def _show(verdicts, algorithms, bench, cells, trials, console):
    table = rich.table.Table(title=f"{len(cells)} smoke cells x {trials} trials", title_justify="left")
    table.add_column("measured")
    for algorithm in algorithms:
        table.add_column(f"zone {algorithm}")
    for algorithm in algorithms:
        row = [bench.scheme(algorithm).id]
        for other in algorithms:
            found = verdicts[algorithm, other]
            status = overall(found)
            count = collections.Counter(v.status for v in found)[status]
            colour = _COLOURS.get(status, "yellow")
            row.append(f"[{colour}]{status}[/] ({count} of {len(found)} cells)")
        table.add_row(*row)
    console.print(table)
    for message in sorted({v.reason for found in verdicts.values() for v in found if v.status is Status.ERROR}):
        console.print(f"error: {message}", markup=False, soft_wrap=True)

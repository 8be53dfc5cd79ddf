"""`conformance cross`: each algorithm, measured, against each one's zone. The diagonal should conform, nothing else."""

import collections

import rich.table
import rich.text

from conformance.catalogue import documents
from conformance.commands.run import measure
from conformance.engine import benches, runs
from conformance.model.errors import UserError
from conformance.model.verdict import Status, false_alarms, judge, overall

_COLOURS = {Status.CONFORMS: "green", Status.VIOLATES: "red", Status.ERROR: "red"}


def run(algorithms, choice, *, trials, first_seed, results, workers, console):
    """Measure every algorithm on the smoke cells of all of them, judge each by each zone, show.

    Returns the exit status: 0 the diagonal conforms and all else violates, 1 not so, 3 error, 4 an algorithm is
    unsupported here.
    """
    bench = benches.find(choice)
    zones = {
        algorithm: [documents.zone_of(algorithm, kind, bench.profile) for kind in documents.KINDS]
        for algorithm in algorithms
    }
    all_zones = [zone for found in zones.values() for zone in found]
    if len({zone.profile_digest for zone in all_zones}) != 1:
        raise UserError("these zones were measured under different profiles", "cross zones of one profile")
    features = sorted({(zone.metric, cell) for zone in all_zones for cell in zone.smoke})
    if not features:
        raise UserError("these zones have no smoke cells", "choose them with `conformance zones smoke`")
    for zone in all_zones:
        for metric, cell in features:
            if metric == zone.metric and cell not in zone.intervals:
                raise UserError(f"{zone.id} lacks {cell.id}", "cross zones of the same grid")
    cells = sorted({cell for _, cell in features})
    work = [(algorithm, documents.profile(all_zones[0].profile, cell)) for algorithm in algorithms for cell in cells]
    found = measure(bench, work, runs.seeds(trials, first_seed), results, workers, console)
    measured = {(algorithm, setting.cell): measurements for (algorithm, setting), measurements in found}
    verdicts = {
        (algorithm, other): [
            judge(zone, cell, measured[algorithm, cell], len(features))
            for zone in zones[other]
            for metric, cell in features
            if metric == zone.metric
        ]
        for algorithm in algorithms
        for other in algorithms
    }
    _show(verdicts, algorithms, bench, cells, trials, console)
    statuses = {pair: overall(found) for pair, found in verdicts.items()}
    if Status.ERROR in statuses.values():
        return 3
    if Status.UNSUPPORTED in statuses.values():
        return 4
    wanted = {pair: Status.CONFORMS if pair[0] == pair[1] else Status.VIOLATES for pair in statuses}
    return 0 if statuses == wanted else 1


def _show(verdicts, algorithms, bench, cells, trials, console):
    table = rich.table.Table(
        title=f"{len(cells)} smoke cells x {trials} trials, judged by utilization and loss", title_justify="left"
    )
    table.add_column("measured", no_wrap=True)
    for algorithm in algorithms:
        table.add_column(f"zone {algorithm}")
    for algorithm in algorithms:
        row = [bench.scheme(algorithm).id]
        for other in algorithms:
            found = verdicts[algorithm, other]
            status = overall(found)
            count = collections.Counter(v.status for v in found)[status]
            colour = _COLOURS.get(status, "yellow")
            row.append(rich.text.Text.assemble((str(status), colour), f" ({count} of {len(found)})"))
        table.add_row(*row)
    console.print(table)
    each = len(next(iter(verdicts.values())))
    console.print(f"of each zone, {false_alarms(each, 'Bonferroni')}", soft_wrap=True)
    reasons = {(v.status, v.reason) for found in verdicts.values() for v in found}
    for status, reason in sorted(reasons):
        if status in (Status.ERROR, Status.UNSUPPORTED):
            console.print(f"{status}: {reason}", soft_wrap=True)

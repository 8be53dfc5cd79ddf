"""`conformance identify`: which algorithm and version a stack behaves like, whatever it calls it."""

import collections

import rich.table
import rich.text

from conformance.catalogue import documents
from conformance.commands.run import measure
from conformance.engine import benches, runs
from conformance.model.errors import UserError
from conformance.model.studies import identify as model
from conformance.model.trial import Outcome


def zones():
    """The zones that identification rests on: all of one profile, each algorithm's over the same cells."""
    found = documents.all_zones("identify-*")
    if not found:
        raise UserError("no zones to identify by ship with this suite", "derive them (docs/add-a-zone.md)")
    if len({zone.profile_digest for zone in found}) != 1:
        raise UserError("the identify zones are of several profiles", "derive them anew from runs of one")
    return found


def _cells(zones):
    """Every cell of these zones once, in their order."""
    return list(dict.fromkeys(cell for zone in zones for cell in zone.intervals))


def run(cca, choice, *, trials, first_seed, results, workers, console):
    """Measure, score, show; returns the exit status: 0 behaves as named, 1 like another, 4 inconclusive, 3 error."""
    ours = zones()
    cells = _cells(ours)
    bench = benches.find(choice)
    work = [(cca, documents.profile(ours[0].profile, cell)) for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), results, workers, console)
    found = {setting.cell: measurements for (_, setting), measurements in measured}
    scheme = bench.scheme(cca)
    for outcome, status in ((Outcome.ERROR, 3), (Outcome.UNSUPPORTED, 4)):
        bad = collections.Counter(m.message for ms in found.values() for m in ms if m.outcome is outcome)
        if bad:
            console.print(f"{scheme.id}: {outcome}: {bad.most_common(1)[0][0]}", soft_wrap=True)
            return status
    scores = model.scores(ours, found)
    _show(scores, scheme, found, console)
    return _conclude(cca, scheme, model.conclusion(scores), scores, console)


def check(choice, *, trials, first_seed, results, workers, console):
    """Identify every algorithm that has zones for it `trials` times, from one trial a cell; count right and wrong.

    Returns the exit status: 0 never wrong, 1 wrong at least once, 3 error, 4 an algorithm is unsupported here.
    """
    ours = zones()
    algorithms = sorted({zone.algorithm for zone in ours})
    cells = _cells(ours)
    bench = benches.find(choice)
    work = [(algorithm, documents.profile(ours[0].profile, cell)) for algorithm in algorithms for cell in cells]
    measured = measure(bench, work, runs.seeds(trials, first_seed), results, workers, console)
    found = {(algorithm, setting.cell): measurements for (algorithm, setting), measurements in measured}
    table = rich.table.Table(
        title=f"{trials} identifications each, one trial of {len(cells)} cells", title_justify="left"
    )
    for name in ("measured", "right", "inconclusive", "wrong"):
        table.add_column(name, justify="left" if name == "measured" else "right")
    status = 0
    for algorithm in algorithms:
        names = collections.Counter()
        for at in range(trials):
            single = {cell: [found[algorithm, cell][at]] for cell in cells}
            failed = [m for ms in single.values() for m in ms if m.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)]
            if failed:
                console.print(f"{algorithm}: {failed[0].outcome}: {failed[0].message}", soft_wrap=True)
                status = max(status, 3 if failed[0].outcome is Outcome.ERROR else 4)
                break
            names[model.conclusion(model.scores(ours, single))] += 1
        else:
            wrong = names.total() - names[algorithm] - names[None]
            status = status or int(wrong > 0)
            table.add_row(bench.scheme(algorithm).id, str(names[algorithm]), str(names[None]), str(wrong))
    console.print(table)
    return status


def _show(scores, scheme, found, console):
    n = max(len(measurements) for measurements in found.values())
    table = rich.table.Table(title=f"{scheme.id}: {len(found)} cells x {n} trials", title_justify="left")
    for name, justify in (
        ("algorithm", "left"),
        ("inside", "right"),
        ("score", "right"),
        ("outside, for example", "left"),
    ):
        table.add_column(name, justify=justify)
    for score in scores:
        table.add_row(
            score.algorithm, f"{score.seen - len(score.misses)} of {score.seen}", f"{score.share:.2f}",
            _example(score.misses),
        )  # fmt: skip
    console.print(table)
    exported = {_exported(m) for measurements in found.values() for m in measurements} - {None}
    if exported:
        console.print(f"the kernel says: {', '.join(sorted(exported))}")


def _example(misses):
    """The feature that is farthest outside, by the width of its interval."""
    if not misses:
        return ""
    worst = max(misses, key=lambda m: max(m.low - m.value, m.value - m.high) / (m.high - m.low))
    return f"{worst.cell.id}: {worst.metric} {worst.value:.3f}, permitted {worst.low:.3f}..{worst.high:.3f}"


def _exported(measurement):
    about = measurement.evidence.get("congestion_control")
    if about is None:
        return None
    bbr = about.get("bbr")
    if not bbr:
        return about["name"]
    return f"{about['name']}, version {bbr['exported_version']}" + (
        f" (with gains of version {' or '.join(map(str, bbr['versions_with_the_gains_seen']))})"
        if bbr["versions_with_the_gains_seen"]
        else " (with gains of none that is known)"
    )


def _conclude(cca, scheme, name, scores, console):
    if name is None:
        best = scores[0]
        seen = f"{best.share:.2f} of the {best.seen} features that were seen (of {best.features})"
        console.print(f"inconclusive: nearest to {best.algorithm}, {seen}", style="yellow", soft_wrap=True)
        return 4
    contradicted = model.contradicts(cca, name, [score.algorithm for score in scores])
    words = rich.text.Text.assemble(f"{scheme.id} behaves like ", (name, "bold"))
    if contradicted:
        words.append(f", not like the {cca} it is called", "red")
    console.print(words, soft_wrap=True)
    return 1 if contradicted else 0

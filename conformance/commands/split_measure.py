"""`conformance split measure`: paths of two segments, with a proxy between them or without."""

import rich.table

from conformance.catalogue import documents
from conformance.commands.measuring import measure
from conformance.engine import benches, runs
from conformance.lab import proxy as proxies
from conformance.model import statistics
from conformance.model.setting import parse_path
from conformance.model.split import split_paths
from conformance.model.trial import Outcome

#: of the paths that zones have (derive_split: those of the smallest grid)
_BANDWIDTH_MBPS = 10


def run(
    algorithm, paths, choice, *, proxy, proxy_options, queue_sized_by, overrides, trials, results, workers, profile,
    console,
):  # fmt: skip
    """Measure and show each of `paths` (ids: 10mbps-20ms-0pct+50mbps-60ms-1pct, the client's segment first).

    None named: the representative paths that zones have, for their references (docs/add-a-zone.md).
    `proxy_options`: fields of a Proxy; `overrides`: see specs.profile(). Returns the exit status: 0 measured, 3 a trial
    was an error, 4 the algorithm is unsupported. Raises UserError.
    """
    representative = split_paths.representative_paths(_BANDWIDTH_MBPS).values()
    segments = [parse_path(path) for path in paths] or [path.segments for path in representative]
    through = proxies.choose(proxy, **proxy_options)
    bench = benches.find(choice)
    settings = [
        documents.path(profile or bench.profile, pair, through, queue_sized_by, **overrides)
        for pair in dict.fromkeys(segments)
    ]
    work = [(algorithm, setting) for setting in settings]
    found = {key[1]: ms for key, ms in measure(bench, work, runs.seeds(trials), results, workers, console)}
    how = "no proxy" if through is None else f"proxy {through.program}"
    table = rich.table.Table(title=f"{bench.scheme(algorithm).id}, {how}, {trials} trials", title_justify="left")
    for name in ("path, client's segment first", "Mbit/s: median", "smallest", "largest", "utilization"):
        table.add_column(name, justify="left" if name.startswith("path") else "right", overflow="fold")
    for setting in settings:
        table.add_row(setting.id, *_figures(setting, found[setting]))
    console.print(table)
    bad = (Outcome.ERROR, Outcome.UNSUPPORTED)
    for text in sorted({f"{s.id}: {m.message}" for s in settings for m in found[s] if m.outcome in bad}):
        console.print(text, soft_wrap=True)
    outcomes = {m.outcome for measurements in found.values() for m in measurements}
    return 3 if Outcome.ERROR in outcomes else 4 if Outcome.UNSUPPORTED in outcomes else 0


def _figures(setting, measurements):
    bad = next((m for m in measurements if m.outcome in (Outcome.ERROR, Outcome.UNSUPPORTED)), None)
    if bad:
        return (str(bad.outcome),)
    rates = [m.utilization * setting.cell.bandwidth_mbps for m in measurements]
    # Of a transfer that timed out it is known that it was slower.
    mark = "< " if any(m.outcome is Outcome.TIMEOUT for m in measurements) else ""
    median = statistics.median(rates)
    return (
        f"{mark}{median:.3f}", f"{mark}{min(rates):.3f}", f"{max(rates):.3f}",
        f"{mark}{median / setting.cell.bandwidth_mbps:.3f}",
    )  # fmt: skip

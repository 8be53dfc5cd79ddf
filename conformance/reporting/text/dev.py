"""Show the results of `conformance dev` record, document, fidelity, cross, search and proxy in a terminal."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import rich.console
import rich.text

from conformance.catalogue.bugs import ABSOLUTE, EntryRun
from conformance.model.groups import grouped
from conformance.model.judging.verdict import Status, counts, false_alarms, overall
from conformance.reporting.marks import LOOKS
from conformance.support.console import count, duration, one_line, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.bench import Benchmark, CellCost, Cost, Figures
    from conformance.commands.bugs import Ran
    from conformance.commands.cross import Cross
    from conformance.commands.document_check import DraftChanges
    from conformance.commands.document_play import Played
    from conformance.commands.fidelity import Fidelity
    from conformance.commands.proxy_check import Checked, ProxyRow
    from conformance.commands.record import RecordedReleases
    from conformance.commands.search import Searched, Sought


def show_recorded(recorded: "RecordedReleases", console: rich.console.Console) -> None:
    """Show what each release does otherwise than the one before, and what was not measured."""
    lines = []
    for added in recorded.releases:
        changes = added.changes
        what = f"{count(len(changes), 'change')} since {added.since}" if added.since else "the first on record"
        lines.append(f"- {added.release.stack} {added.release.version}, {added.release.algorithm}: {what}")
        lines += [f"  - {change.asked}: {change.before}, now {change.now}" for change in changes]
    lines += [f"- {name}: nothing new" for name in recorded.known]
    lines += [f"- {name}: not measured: {one_line(why)}" for name, why in recorded.not_measured.items()]
    for line in lines:
        console.print(line, soft_wrap=True)


def show_draft(checked: "DraftChanges", console: rich.console.Console) -> None:
    """Show what of the draft differs, and what of the adapter cites it."""
    if not checked.changes:
        console.print(f"nothing differs from {checked.version}", soft_wrap=True)
        return
    for change in checked.changes:
        about = f" {change.name}" if change.name else ""
        cited = "; ".join(change.cited_by) or "nothing cites it"
        console.print(f"{change.section}{about} {change.what}: {cited}", soft_wrap=True)
    console.print(f"{len(checked.changes)} parts differ from {checked.version}", soft_wrap=True)


def show_played(played: "Played", console: rich.console.Console) -> None:
    """Show a line for each cell: the play's medians and, where there are any, those of guests."""
    for row in played.rows:
        beside = "" if row.measured is None else f"; in guests {row.measured:.3f}, ratio {row.ratio:.2f}"
        medians = f"utilization {row.utilization:.3f}, lost {row.lost_pct:.2f} %"
        console.print(f"{row.cell.id}: {medians}{beside}", soft_wrap=True)
    console.print(f"{played.called}: medians of {played.trials} plays", soft_wrap=True)


def show_fidelity(fidelity: "Fidelity", console: rich.console.Console) -> None:
    """Show bias and rms by scheme and bandwidth, then whether the limits are kept."""
    numbers, rows = ("bandwidth", "cells", "bias", "rms", "largest difference"), []
    for line in fidelity.lines:
        where = "all" if line.bandwidth_mbps is None else f"{line.bandwidth_mbps:g} Mbit/s"
        largest = f"{line.worst:+.3f} at {line.worst_cell.id}"
        rows.append((line.scheme, where, str(line.cells), f"{line.bias:+.4f}", f"{line.rms:.4f}", largest))
    title = "utilization: ours minus published (ATC'25)"
    console.print(table(("scheme", *numbers), rows, numbers, whole=("scheme",), title=title))
    limits = fidelity.limits
    for scheme, cells in dict.fromkeys((limit.scheme, limit.cells) for limit in limits):
        said = [
            f"{limit.name} {limit.value:.4f} {'within' if limit.kept else 'ABOVE'} the limit of {limit.limit}"
            for limit in limits
            if limit.scheme == scheme
        ]
        console.print(f"{scheme}, {cells} cells: {'; '.join(said)}")


def show_crossed(cross: "Cross", console: rich.console.Console) -> None:
    rows = []
    for algorithm in cross.algorithms:
        by_zone = [cross.verdicts[algorithm, other] for other in cross.algorithms]
        texts = (rich.text.Text(counts(v.status for v in of), LOOKS[overall(of)].tone.style) for of in by_zone)
        rows.append((cross.schemes[algorithm], *texts))
    header = ("measured", *(f"zone {algorithm}" for algorithm in cross.algorithms))
    title = f"{len(cross.cells)} smoke cells x {cross.trials} trials, judged by utilization and loss"
    console.print(table(header, rows, whole=header[:1], title=title))
    each = len(next(iter(cross.verdicts.values())))
    console.print(f"for each zone: {false_alarms(each, 'Bonferroni')}", soft_wrap=True)
    for status, reason in sorted({(v.status, v.reason) for verdict in cross.verdicts.values() for v in verdict}):
        if status in (Status.ERROR, Status.UNSUPPORTED):
            console.print(f"{status}: {reason}", soft_wrap=True)


def show_searched(searched: "Searched", console: rich.console.Console) -> None:
    """Show each finding with the commands that look at it, what did not repeat, and how far the search came."""
    for sought in searched.sought:
        console.print(_sought(searched, sought), style="bold" if sought.repeated else "", soft_wrap=True)
        for message in sought.messages:
            console.print(f"  it says: {one_line(message)}", soft_wrap=True)
        if sought.scenario is not None:
            options = f"{searched.choice.options()} --scenario {sought.scenario}"
            console.print(f"  conformance trace {searched.algorithm}{options}", soft_wrap=True)
            console.print(f"  conformance why {searched.algorithm}{options}", soft_wrap=True)
    best = ", ".join(f"{goal} {score:.1f}" for goal, score in searched.best.items())
    console.print(
        f"{count(searched.tries, 'scenario')} tried of {searched.scheme} against {searched.against}, seed"
        f" {searched.seed}: {count(len(searched.findings), 'finding')}. Best scores, where 1 is the least that counts:"
        f" {best or 'none'}",
        soft_wrap=True,
    )  # fmt: skip


def _sought(searched: "Searched", sought: "Sought") -> str:
    goal = sought.goal
    if sought.compared is None:
        return f"{goal.title}: its repeats show nothing"
    medians = (sought.compared.after, sought.compared.before)
    ours, theirs = (f"{median:.{goal.digits}f} {goal.unit}".strip() for median in medians)
    said = f"{goal.title}: {searched.scheme} {ours}, {searched.against} {theirs}"
    repeat = f"p = {sought.compared.p:.2g} with {sought.n} fresh seeds each"
    return f"{said} ({repeat})" if sought.repeated else f"{said}: it did not repeat ({repeat})"


_CASES = {"killed": "killed", "restarted": "killed and restarted", "undelivered": "killed when full", "down": "without"}
_HOLDS = {True: "holds", False: "does not hold", None: ""}
_STYLES = {True: "green", False: "red", None: ""}


def show_proxies(checked: "Checked", console: rich.console.Console) -> None:
    """Show a line for each case: what was seen, and whether that is as required."""
    for row in checked.rows:
        case = " ".join(filter(None, [_CASES[row.case], row.about]))
        line = rich.text.Text(f"{case}, {row.via}: {row.trouble or words(row)}")
        if row.required is not None:
            line.append(f"; {row.required}: ")
            line.append(_HOLDS[row.holds], _STYLES[row.holds])
        console.print(line, soft_wrap=True)
    if checked.left_out is not None:
        console.print(rich.text.Text(f"not tried: {checked.left_out}"), soft_wrap=True)


def words(row: "ProxyRow") -> str:
    """Return what was seen in a case, in words."""
    observed = row.observed
    match row.case:
        case "killed":
            ends = "; ".join(_end(name, observed) for name in ("client", "server"))
            return f"{ends}; the stream goes on" if observed["goes_on"] else ends
        case "restarted":
            meanwhile = "served" if observed["served_meanwhile"] else "refused"
            served = "never" if observed["served_s"] is None else f"after {observed['served_s']:.2f} s"
            client, server = observed["client_how"], observed["server_how"]
            old = "goes on" if client == server == "nothing" else f"ends (client: {client}, server: {server})"
            return f"new connections {meanwhile} while it is gone, served {served}; the old one {old}"
        case "undelivered":
            return (
                f"{observed['undelivered_bytes']} of {observed['acked_bytes']} bytes acknowledged but never delivered"
            )
    resumed = (
        "never goes on" if observed["resumed_s"] is None else f"goes on {observed['resumed_s']:.2f} s after it is back"
    )
    return f"{resumed}, {'whole' if observed['whole'] else 'not whole'}"


def _end(name: str, observed: Mapping[str, Any]) -> str:
    noticed = observed[f"{name}_noticed_s"]
    return f"{name}: notices nothing" if noticed is None else f"{name}: {observed[f'{name}_how']} after {noticed:.2f} s"


_GRID = "150 cells x 20 trials"
#: {header of a column: function that gives its text}; headers are broken so that the table of stacks fits 80 columns
_CostColumns = dict[str, Callable[["CellCost", "Cost"], str]]
_STACK, _ALGORITHM, _RATE, _CELL, _VIRTUAL = "stack", "algo-\nrithm", "Mbit/s", "cell", "virtual\ns"
_COSTS: _CostColumns = {
    "utili-\nzation": lambda row, cost: f"{cost.utilization:.3f}",
    "wall\ns": lambda row, cost: f"{cost.wall_s:.2f}",
    _VIRTUAL: lambda row, cost: f"{cost.virtual_s:.1f}",
    "virtual\n/ wall": lambda row, cost: f"{cost.virtual_s / cost.wall_s:.0f}",
    "system\ncalls a\npacket": lambda row, cost: "" if cost.calls_a_packet is None else f"{cost.calls_a_packet:.1f}",
}
_BY_CELL: _CostColumns = {_CELL: lambda row, cost: row.cell.id if row.cell else "", **_COSTS}
_BY_STACK: _CostColumns = {
    _STACK: lambda row, cost: row.stack,
    _ALGORITHM: lambda row, cost: row.algorithm or "",
    _RATE: lambda row, cost: f"{row.cell.bandwidth_mbps:g}" if row.cell else "",
    **{name: text for name, text in _COSTS.items() if name != _VIRTUAL},
}


def show_costs(benchmark: "Benchmark", console: rich.console.Console) -> None:
    """Show a row for each cell, then what a whole grid would take; or a row for each stack and rate."""
    title = "cost of a 10-second trial at 20 ms on one core, by stack"
    if not benchmark.by_stack:
        title = f"{benchmark.rows[0].algorithm} on {benchmark.rows[0].stack}: cost of a trial on one core"
    columns = _BY_STACK if benchmark.by_stack else _BY_CELL
    rows = [[text(row, row.cost) for text in columns.values()] for row in benchmark.rows if row.cost]
    if rows:
        # Half of a stack's name or of a cell's id says nothing.
        names = (_STACK, _CELL)
        numbers = set(columns) - {*names, _ALGORITHM}
        console.print(table(columns, rows, numbers, fold=True, whole=names, title=title))
    for note in _not_measured(benchmark):
        console.print(note, soft_wrap=True)
    if benchmark.start_s is not None and benchmark.grid_s is not None:
        console.print(
            f"start and calibration: {benchmark.start_s:.2f} s a cell; {_GRID} on {benchmark.cores} cores:"
            f" about {duration(benchmark.grid_s)}"
        )


def _not_measured(benchmark: "Benchmark") -> Iterator[str]:
    """Yield a line for each cell that failed, then one for all stacks that could not be tried."""
    cell_costs = [row for row in benchmark.rows if row.trouble and row.cell]
    yield from (f"{row.algorithm} on {row.stack} at {row.cell and row.cell.id}: {row.trouble}" for row in cell_costs)
    why = grouped((row.trouble, row.stack) for row in benchmark.rows if row.trouble and not row.cell)
    if why:
        yield "not measured: " + "; ".join(f"{', '.join(stacks)} ({trouble})" for trouble, stacks in why.items())


def _time(seconds: float, form: str = ".2f") -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds:{form}}"


def show_figures(figures: "Figures", console: rich.console.Console) -> None:
    """Show a row for each figure: the time it takes, took before guests were made faster, and should take at most."""
    rows = []
    for figure in figures.figures:
        seconds = (figure.trouble or "") if figure.seconds is None else _time(figure.seconds)
        before, target = ("" if limit is None else _time(limit, "g") for limit in (figure.before_s, figure.target_s))
        estimate = "" if figure.estimate_s is None else f"{figure.estimate_s:.1f}, {figure.left_s:.1f}"
        rows.append((figure.name, seconds, before, target, estimate))
    numbers = ("wall s", "before", "target", "first estimate,\nactually left")
    console.print(table(("what", *numbers), rows, numbers, title=f"time taken on {figures.cores} cores", fold=True))


def show_bugs(ran: "Ran", console: rich.console.Console) -> None:
    """Show each entry, then how many were caught."""
    shams = {bug.id for bug, _ in ran.tally.shams}
    header = ("entry", "compare", "absolute", "named", "trials", "minutes", "what is said first")
    rows = [_of_run(run, sham=run.id in shams) for run in ran.runs]
    if rows:
        title = "Bugs that stacks had, and what catches them"
        console.print(table(header, rows, ("trials", "minutes"), fold=True, title=title))
    for name, why in ran.absent.items():
        console.print(f"not run: {name}: {one_line(why)}", soft_wrap=True, markup=False)
    console.print(summary(ran), style="bold", soft_wrap=True)
    if ran.recorded:
        console.print(f"recorded: {ran.recorded}", soft_wrap=True)


def _of_run(run: EntryRun, sham: bool) -> list[str]:
    """Return the cells of an entry's row."""
    cheapest = run.cheapest
    caught, not_caught = ("moved", "same") if sham else ("caught", "missed")
    return [
        run.id,
        caught if run.by("compare") else not_caught if run.ran("compare") else "not run",
        next(iter(run.tells(*ABSOLUTE)), not_caught),
        "" if cheapest is None or sham else "right" if run.named else "no",
        str(run.trials),
        f"{run.minutes:.1f}",
        str(one_line((cheapest or run.tiers[-1]).first)),
    ]


def summary(ran: "Ran") -> str:
    """Return how many entries were caught, and how many shams moved."""
    tally = ran.tally
    aside = f", {len(ran.aside)} set aside" if ran.aside else ""
    return (
        f"{count(len(tally.real), 'bug')}: {ran.caught} caught ({tally.named} of them named right),"
        f" {ran.missed} missed{aside}; {count(len(tally.shams), 'sham')}: {len(tally.moved)} moved;"
        f" {len(ran.absent)} not run"
    )

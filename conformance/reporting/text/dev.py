"""Show the results of `conformance dev` record, document, fidelity, cross, search and proxy in a terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rich.console
import rich.table
import rich.text

from conformance.model.judging.verdict import Status, counts, false_alarms, overall
from conformance.reporting.marks import LOOKS
from conformance.support.console import count, one_line, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
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
    by_zone = rich.table.Table(
        title=f"{len(cross.cells)} smoke cells x {cross.trials} trials, judged by utilization and loss",
        title_justify="left",
    )
    by_zone.add_column("measured", no_wrap=True)
    for algorithm in cross.algorithms:
        by_zone.add_column(f"zone {algorithm}")
    for algorithm in cross.algorithms:
        row: list[str | rich.text.Text] = [cross.schemes[algorithm]]
        for other in cross.algorithms:
            verdicts = cross.verdicts[algorithm, other]
            row.append(rich.text.Text(counts(verdict.status for verdict in verdicts), LOOKS[overall(verdicts)].style))
        by_zone.add_row(*row)
    console.print(by_zone)
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

"""Show which mutants were detected, and by which cells (`conformance dev mutants`), and false alarms, in a terminal."""

import collections
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.judging.verdict import Verdict
from conformance.model.rounding import told
from conformance.model.studies import mutants
from conformance.model.studies.mutants import MutantFinding, MutantOutcome
from conformance.reporting.text import markdown
from conformance.support import files
from conformance.support.console import table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.false_alarms import FalseAlarms
    from conformance.commands.mutants import Scored

_COLOURS = {MutantOutcome.DETECTED: "green", MutantOutcome.MISSED: "red", MutantOutcome.ERROR: "magenta"}
_TELLING = 2
#: decimals of values and bounds; there are more if these do not tell them apart
_DIGITS = 3


def show_scored(scored: "Scored", console: rich.console.Console) -> None:
    """Show the score, and where it was recorded."""
    show(scored.findings, console)
    if scored.recorded:
        console.print(f"recorded: {', '.join(map(str, scored.recorded))}", soft_wrap=True)


def show_counted(false_alarms: "FalseAlarms", console: rich.console.Console) -> None:
    """Show the false alarms, and where they were recorded."""
    show_false_alarms(false_alarms, console)
    if false_alarms.recorded:
        before = f"; {false_alarms.before} of these runs were made earlier, with the same kernel, lab, stack and zones"
        console.print(f"recorded: {false_alarms.recorded}{before if false_alarms.before else ''}", soft_wrap=True)


def show(findings: Sequence[MutantFinding], console: rich.console.Console) -> None:
    header, rows = ("mutant", "what is wrong", "verdict", "first cells that detect it", "trials"), []
    for finding in findings:
        verdict = rich.text.Text(str(finding.outcome), _COLOURS[finding.outcome])
        rows.append((finding.mutant.id, finding.mutant.what, verdict, _why(finding), str(finding.trials)))
    title = "Mutants, and the zones that detect them"
    console.print(table(header, rows, ("trials",), fold=True, title=title))
    console.print(f"mutants: {mutants.score(findings)}", style="bold")


def _why(finding: MutantFinding) -> str:
    """Return the first cells that detect the mutant, or the reason for an error."""
    if finding.outcome is MutantOutcome.ERROR:
        return next((v.reason for v in finding.verdicts if v.value is None), "nothing was measured")
    return "\n".join(words(verdict) for verdict in finding.telling[:_TELLING])


def words(verdict: Verdict) -> str:
    """Return the zone, the cell, the value and what is permitted; without a value, the reason."""
    if verdict.value is None:
        return verdict.reason
    low, high = verdict.permitted.low, verdict.permitted.high
    return f"{verdict.zone_id} {verdict.place.id}: {told(verdict.value, low, high, _DIGITS)}"


def write(findings: Sequence[MutantFinding], target: pathlib.Path) -> None:
    """Write the same as Markdown. Raises UserError."""
    rows = [(f.mutant.id, f.mutant.what, f.outcome, _why(f).replace("\n", "; "), f.trials) for f in findings]
    lines = markdown.table(("mutant", "what is wrong", "verdict", "detected by", "trials"), rows, right=["trials"])
    files.write(target, "\n".join([*lines, "", f"{mutants.score(findings)}."]) + "\n", "name another file with --out")


def show_false_alarms(false_alarms: "FalseAlarms", console: rich.console.Console) -> None:
    """Show which runs were false alarms, and an upper bound on their rate."""
    runs = false_alarms.runs
    for run in runs:
        if run.why:
            what = "error" if run.failed else "false alarm"
            seeds = f"{run.algorithm}, seeds from {run.first_seed}"
            console.print(f"{what}: {seeds}: {'; '.join(dict.fromkeys(run.why))}", markup=False, soft_wrap=True)
    finished = [run for run in runs if not run.failed]
    if not finished:
        console.print("false alarms: not known, as no run succeeded", style="bold")
        return
    of = collections.Counter(run.algorithm for run in finished)
    alarms = collections.Counter(run.algorithm for run in finished if run.status.against)
    by = ", ".join(f"{algorithm} {alarms[algorithm]} of {of[algorithm]}" for algorithm in of)
    k, n = alarms.total(), of.total()
    console.print(f"false alarms: {k} of {n} whole runs of the references ({by})", style="bold", soft_wrap=True)
    nearest = [run.nearest for run in finished if run.nearest]
    near = min(nearest, key=lambda nearest: nearest.distance, default=None)
    if near:
        console.print(
            f"nearest to a violation: {near.zone} at {near.cell}: its median used {near.margin_used:.0%} of the "
            f"margin, and the probability of its trials was {near.ratio:.3g} times that of a violation",
            soft_wrap=True,
        )
    bound = false_alarms.at_most_with_95_pct_confidence
    console.print(f"false alarms, with 95 % confidence: at most {bound:.1%} of runs (Clopper-Pearson)", soft_wrap=True)

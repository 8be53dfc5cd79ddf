"""The score of `conformance mutants`: which were detected, by which cells, and the false alarms."""

import collections

import rich.table
import rich.text

from conformance.model.studies import mutants
from conformance.model.studies.mutants import Outcome
from conformance.model.verdict import Status
from conformance.support import files

_COLOURS = {Outcome.DETECTED: "green", Outcome.MISSED: "red", Outcome.ERROR: "magenta"}
_TELLING = 2


def show(findings, console):
    table = rich.table.Table(title="Mutants, and the zones that tell them", title_justify="left")
    for name in ("mutant", "what is wrong", "verdict", "first telling cells", "trials"):
        table.add_column(name, justify="right" if name == "trials" else "left", overflow="fold")
    for finding in findings:
        verdict = rich.text.Text(str(finding.outcome), _COLOURS[finding.outcome])
        table.add_row(finding.mutant.id, finding.mutant.what, verdict, _why(finding), str(finding.trials))
    console.print(table)
    console.print(f"mutants: {mutants.score(findings)}", style="bold")


def _why(finding):
    """Its first telling cells, or what the trouble was."""
    if finding.outcome is Outcome.ERROR:
        return next((v.reason for v in finding.verdicts if v.value is None), "nothing was measured")
    return "\n".join(words(verdict) for verdict in finding.telling[:_TELLING])


def words(verdict):
    """What a verdict says, in short: what is outside of what, or what the trouble was."""
    if verdict.value is None:
        return verdict.reason
    permitted = f"{verdict.permitted.low:.3f}..{verdict.permitted.high:.3f}"
    return f"{verdict.zone_id} {verdict.cell.id}: {verdict.value:.3f}, permitted {permitted}"


def write(findings, target):
    """The same as Markdown. Raises UserError."""
    lines = ["| mutant | what is wrong | verdict | by | trials |", "|---|---|---|---|---:|"]
    for finding in findings:
        why = _why(finding).replace("\n", "; ").replace("|", "\\|")
        lines.append(f"| {finding.mutant.id} | {finding.mutant.what} | {finding.outcome} | {why} | {finding.trials} |")
    lines += ["", f"{mutants.score(findings)}."]
    files.write(target, "\n".join(lines) + "\n", "name another file with --out")


def show_false_alarms(runs, console):
    """`runs`: what false_alarms.Run says of each."""
    for run in runs:
        if run.why:
            what = "error" if run.failed else "false alarm"
            seeds = f"{run.algorithm}, seeds from {run.first_seed}"
            console.print(f"{what}: {seeds}: {'; '.join(dict.fromkeys(run.why))}", markup=False, soft_wrap=True)
    told = [run for run in runs if not run.failed]
    if not told:
        console.print("false alarms: not known, as no run succeeded", style="bold")
        return
    of = collections.Counter(run.algorithm for run in told)
    alarms = collections.Counter(run.algorithm for run in told if run.status is Status.VIOLATES)
    by = ", ".join(f"{algorithm} {alarms[algorithm]} of {of[algorithm]}" for algorithm in of)
    k, n = alarms.total(), of.total()
    console.print(f"false alarms: {k} of {n} whole runs of the references ({by})", style="bold", soft_wrap=True)
    bound = mutants.upper_bound(k, n)
    console.print(f"so, with 95 % confidence, in at most {bound:.1%} of runs (Clopper-Pearson)", soft_wrap=True)

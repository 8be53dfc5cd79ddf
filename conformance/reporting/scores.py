"""The score of `conformance mutants`: which were detected, by which cells, and the false alarms."""

import rich.table
import rich.text

from conformance.model import mutants
from conformance.model.errors import UserError
from conformance.model.mutants import Outcome

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
    return "\n".join(_cell(verdict) for verdict in finding.telling[:_TELLING])


def _cell(verdict):
    permitted = f"{verdict.permitted.low:.3f}..{verdict.permitted.high:.3f}"
    return f"{verdict.zone_id} {verdict.cell.id}: {verdict.value:.3f}, permitted {permitted}"


def write(findings, target):
    """The same as Markdown. Raises UserError."""
    lines = ["| mutant | what is wrong | verdict | by | trials |", "|---|---|---|---|---:|"]
    for finding in findings:
        why = _why(finding).replace("\n", "; ").replace("|", "\\|")
        lines.append(f"| {finding.mutant.id} | {finding.mutant.what} | {finding.outcome} | {why} | {finding.trials} |")
    lines += ["", f"{mutants.score(findings)}."]
    try:
        target.write_text("\n".join(lines) + "\n")
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}", "name another file with --out") from None


def show_false_alarms(violated, count, failed, console):
    """`violated`: {algorithm: [(first seed, verdicts that violate)]}; `count`: runs by algorithm; `failed`: runs that
    say nothing."""
    for algorithm, found in violated.items():
        for first_seed, verdicts in found:
            cells = "; ".join(_cell(verdict) for verdict in verdicts)
            console.print(f"false alarm: {algorithm}, seeds from {first_seed}: {cells}", soft_wrap=True)
    for algorithm, first_seed, verdicts in failed:
        reason = next(v.reason for v in verdicts if v.value is None)
        console.print(f"error: {algorithm}, seeds from {first_seed}: {reason}", soft_wrap=True)
    k, n = sum(map(len, violated.values())), sum(count.values()) - len(failed)
    by = ", ".join(f"{algorithm} {len(violated.get(algorithm, ()))} of {count[algorithm]}" for algorithm in count)
    console.print(f"false alarms: {k} of {n} whole runs of the references ({by})", style="bold", soft_wrap=True)
    if n:
        bound = mutants.upper_bound(k, n)
        console.print(f"so, with 95 % confidence, in at most {bound:.1%} of runs (Clopper-Pearson)", soft_wrap=True)

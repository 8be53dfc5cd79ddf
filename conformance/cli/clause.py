"""`conformance clause`: judge stacks by clauses of RFCs and drafts."""

from collections.abc import Sequence
from typing import Any

import click

from conformance.cli.base import FORMAT, TRIALS, finish, notes
from conformance.cli.measuring import FIRST_SEED, RESULTS, WORKERS, trials, with_choice
from conformance.engine.benches import Choice


@click.group()
def clause() -> None:
    """Judge a stack by what RFCs and drafts say, clause by clause (docs/clauses.md)."""


@clause.command("run")
@click.argument("what", metavar="[CLAUSE|DOCUMENT]...", nargs=-1)
@click.option(
    "--algorithm", "algorithms", multiple=True,
    help="Judge this algorithm only (repeatable; default: all that the stack offers).",
)  # fmt: skip
@click.option("--mutant", help="Judge this mutant (mutants/mutants.json) instead of a stack.")
@with_choice("stack", "client", "kernel")
@trials(5, "Trials of each setting, to begin with.")
@click.option("--max-trials", "most_trials", type=TRIALS, help="Most trials of an unclear clause (default: 20).")
@FIRST_SEED
@RESULTS
@WORKERS
@click.option("--record", is_flag=True, help="Keep the verdicts in clauses/record.json (docs/findings-clauses.md).")
@FORMAT
def run(choice: Choice, what: Sequence[str], form: str, **options: Any) -> None:
    """Judge a stack by clauses: ids (CL011) or documents (rfc9002); by default, all."""
    from conformance.commands import clause as command
    from conformance.reporting.text import clause as shown

    finish(command.run(what, choice=choice, notes=notes(form), **options), form, shown.show_ran)


@clause.command("list")
@click.argument("names", metavar="[DOCUMENT]...", nargs=-1)
@FORMAT
def list_all(names: Sequence[str], form: str) -> None:
    """List the clauses of these documents; by default, all that ship."""
    from conformance.commands import clause as command
    from conformance.reporting.text import clause as shown

    finish(command.list_all(names), form, shown.show_listed)


@clause.command("show")
@click.argument("clause_id", metavar="CLAUSE")
@FORMAT
def show(clause_id: str, form: str) -> None:
    """Show what CLAUSE says, and how it is tested."""
    from conformance.commands import clause as command
    from conformance.reporting.text import clause as shown

    finish(command.show(clause_id), form, shown.show_shown)


@clause.command("table")
@click.argument("names", metavar="[DOCUMENT]...", nargs=-1)
@FORMAT
def table(names: Sequence[str], form: str) -> None:
    """Print clauses/record.json as Markdown: clause by stack, and the evidence of violations."""
    from conformance.commands import clause as command
    from conformance.reporting.text import clause as shown

    finish(command.table(names), form, shown.show_tabled)


COMMANDS = (clause,)

"""`conformance clause`: judge stacks by clauses of RFCs and drafts."""

from collections.abc import Sequence
from typing import Any

import click

from conformance.cli.base import FORMAT, TRIALS, finish
from conformance.cli.measuring import FIRST_SEED, trials, with_choice, with_means
from conformance.engine.benches import Choice, Means


@click.group()
def clause() -> None:
    """Judge a stack by what RFCs and drafts say, clause by clause (docs/clauses.md)."""


@click.group("clause")
def dev_clause() -> None:
    """Print what is recorded of clauses."""


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
@with_means()
@click.option("--record", is_flag=True, help="Keep the verdicts in clauses/record.json (docs/findings-clauses.md).")
@FORMAT
def run(choice: Choice, means: Means, what: Sequence[str], form: str, **options: Any) -> None:
    """Judge a stack by clauses: ids (CL011) or documents (rfc9002); by default, all."""
    from conformance.commands import clause as clause_command
    from conformance.reporting.text import clause as clause_text

    finish(clause_command.run(what, choice=choice, means=means, **options), form, clause_text.show_ran)


@clause.command("show")
@click.argument("what", metavar="[CLAUSE|DOCUMENT]", required=False)
@FORMAT
def show(what: str | None, form: str) -> None:
    """Show what CLAUSE says, and how it is tested, or list the clauses of DOCUMENT; by default, of all that ship."""
    from conformance.catalogue import clauses
    from conformance.commands import clause as clause_command
    from conformance.reporting.text import clause as clause_text

    if what is None or what in clauses.markers():
        finish(clause_command.list_all([] if what is None else [what]), form, clause_text.show_listed)
    finish(clause_command.show(what), form, clause_text.show_shown)


@dev_clause.command("table")
@click.argument("names", metavar="[DOCUMENT]...", nargs=-1)
@FORMAT
def table(names: Sequence[str], form: str) -> None:
    """Print clauses/record.json as Markdown: clause by stack, and the evidence of violations."""
    from conformance.commands import clause as clause_command
    from conformance.reporting.text import clause as clause_text

    finish(clause_command.table(names), form, clause_text.show_tabled)


COMMANDS = (clause,)
DEV_COMMANDS = (dev_clause,)

"""`conformance clause`: judge stacks by clauses of RFCs and drafts."""

from collections.abc import Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli.base import FORMAT, TRIALS, finish
from conformance.cli.measuring import FIRST_SEED, trials, with_choice, with_means
from conformance.engine.benches import Choice, Means
from conformance.reporting import text


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
    finish(commands.clause.run(what, choice=choice, means=means, **options), form, text.clause.show_ran)


@clause.command("show")
@click.argument("what", metavar="[CLAUSE|DOCUMENT]", required=False)
@FORMAT
def show(what: str | None, form: str) -> None:
    """Show what CLAUSE says, and how it is tested, or list the clauses of DOCUMENT; by default, of all that ship."""
    from conformance.catalogue import clauses

    if what is None or what in clauses.markers():
        finish(commands.clause.list_all([] if what is None else [what]), form, text.clause.show_listed)
    finish(commands.clause.show(what), form, text.clause.show_shown)


@dev_clause.command("table")
@click.argument("names", metavar="[DOCUMENT]...", nargs=-1)
@FORMAT
def table(names: Sequence[str], form: str) -> None:
    """Print clauses/record.json as Markdown: clause by stack, and the evidence of violations."""
    finish(commands.clause.table(names), form, text.clause.show_tabled)


COMMANDS = (clause,)
DEV_COMMANDS = (dev_clause,)

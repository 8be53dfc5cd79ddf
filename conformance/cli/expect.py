"""`conformance expect`: show or rewrite a stack's known deviations."""

import dataclasses
import pathlib
from collections.abc import Sequence

import click

from conformance import commands
from conformance.cli import measuring
from conformance.cli.base import FORMAT, finish
from conformance.engine.benches import Choice
from conformance.model.errors import UserError
from conformance.reporting import text
from conformance.results.store import DEFAULT_RESULTS


@click.group()
def expect() -> None:
    """Show or rewrite a stack's known deviations.

    They are in the file expected.json of its adapter.
    """


@expect.command("show")
@click.argument("stack")
@FORMAT
def show(stack: str, form: str) -> None:
    """Show where STACK is known not to conform.

    STACK is the name of an adapter, or the path of an adapter.json. Reasons are shown, too.
    """
    finish(commands.expect.known(stack), form, text.expect.show_known)


@expect.command("update")
@click.argument("stack")
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@measuring.with_choice("source", "client", "kernel")
@click.option("--gone", is_flag=True, help="Only remove deviations that no longer happen; add none.")
@click.option(
    "--any-build", is_flag=True, help="Use results of any build, kernel and lab, if these are the same for all."
)
@FORMAT
def update(choice: Choice, stack: str, results: Sequence[pathlib.Path], gone: bool, any_build: bool, form: str) -> None:
    """Rewrite the known deviations of STACK from RESULTS.

    Review the file afterwards. Reasons of deviations that still happen are kept. Only results of today's build, kernel
    and lab count.
    """
    if any_build and choice.options():
        raise UserError("--any-build already allows any client, kernel and lab", f"leave out{choice.options()}")
    today = None if any_build else dataclasses.replace(choice, stack=stack)
    updated = commands.expect.update(stack, results or (pathlib.Path(DEFAULT_RESULTS),), today, add=not gone)
    finish(updated, form, text.expect.show)


COMMANDS = (expect,)

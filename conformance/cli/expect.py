"""`conformance expect`: a stack's known deviations."""

import dataclasses
import pathlib
from collections.abc import Sequence

import click

from conformance.cli import measuring
from conformance.cli.base import FORMAT, finish
from conformance.engine.benches import Choice
from conformance.model.errors import UserError
from conformance.results.store import DEFAULT_RESULTS


@click.group()
def expect() -> None:
    """Known deviations of a stack, adapters/STACK/expected.json: show, rewrite from results."""


@expect.command("show")
@click.argument("stack")
@FORMAT
def show(stack: str, form: str) -> None:
    """Say where STACK (a name, or the path of an adapter.json) is known not to conform, and why."""
    from conformance.commands import expect
    from conformance.reporting.text import expect as shown

    finish(expect.known(stack), form, shown.show_known)


@expect.command("update")
@click.argument("stack")
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@measuring.with_choice("client", "kernel", "lab")
@click.option("--gone", is_flag=True, help="Only take out what does not happen any more; add nothing.")
@click.option("--any-build", is_flag=True, help="Of whatever build, kernel and lab the results are, if it is one.")
@FORMAT
def update(choice: Choice, stack: str, results: Sequence[pathlib.Path], gone: bool, any_build: bool, form: str) -> None:
    """Rewrite what is known of STACK from RESULTS, for review: reasons of what is still so are kept.

    What counts is what would be measured today: results of another build, kernel or lab say nothing of this one.
    """
    from conformance.commands import expect
    from conformance.reporting.text import expect as shown

    if any_build and choice.options():
        raise UserError("--any-build takes any client, kernel and lab, too", f"leave out{choice.options()}")
    today = None if any_build else dataclasses.replace(choice, stack=stack)
    found = expect.update(stack, results or (pathlib.Path(DEFAULT_RESULTS),), today, add=not gone)
    finish(found, form, shown.show)


COMMANDS = (expect,)

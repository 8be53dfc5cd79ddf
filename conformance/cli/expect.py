"""`conformance expect`: a stack's known deviations."""

import dataclasses
import pathlib

import click

from conformance.cli import measuring
from conformance.cli.base import out
from conformance.model.errors import UserError
from conformance.results.store import DEFAULT_RESULTS
from conformance.support.console import one_line


@click.group()
def expect():
    """Known deviations of a stack, adapters/STACK/expected.json: show, rewrite from results."""


@expect.command("show")
@click.argument("stack")
def show(stack):
    """Say where STACK (a name, or the path of an adapter.json) is known not to conform, and why."""
    from conformance.catalogue import expectations

    entries = expectations.load(stack)
    for entry in entries:
        cells = "all cells" if entry.cells is None else ", ".join(entry.ids)
        link = f" ({entry.link})" if entry.link else ""
        out.print(
            f"{entry.zone_id}: {entry.verdict}: {one_line(entry.reason)}{one_line(link)}: {cells}", soft_wrap=True
        )
    if not entries:
        out.print(f"nothing is known of {stack}: whatever violates a zone is a failure")


@expect.command("update")
@click.argument("stack")
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@measuring.with_choice("client", "kernel", "lab")
@click.option("--gone", is_flag=True, help="Only take out what does not happen any more; add nothing.")
@click.option("--any-build", is_flag=True, help="Of whatever build, kernel and lab the results are, if it is one.")
def update(choice, stack, results, gone, any_build):
    """Rewrite what is known of STACK from RESULTS, for review: reasons of what is still so are kept.

    What counts is what would be measured today: results of another build, kernel or lab say nothing of this one.
    """
    from conformance.commands import expect as command
    from conformance.reporting.text import expect as reporting

    if any_build and choice.options():
        raise UserError("--any-build takes any client, kernel and lab, too", f"leave out{choice.options()}")
    choice = None if any_build else dataclasses.replace(choice, stack=stack)
    paths = results or (pathlib.Path(DEFAULT_RESULTS),)
    reporting.show(command.update(stack, paths, choice, add=not gone), out)


COMMANDS = (expect,)

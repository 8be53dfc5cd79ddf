"""`conformance scenario`: run flows that share a network, as a document describes it."""

from collections.abc import Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli.base import FORMAT, finish
from conformance.cli.measuring import FIRST_SEED, refuse_given, trials, with_choice, with_means
from conformance.engine.benches import Choice, Means
from conformance.reporting import text

_POINT = click.option(
    "--point", "points", metavar="AXIS=VALUE", multiple=True,
    help="Value of an axis (repeatable); an axis without one takes the first of its values.",
)  # fmt: skip


@click.group()
def scenario() -> None:
    """Run flows that share a network, as a document describes it (docs/scenarios.md)."""


@scenario.command("run")
@click.argument("what", metavar="SCENARIO")
@_POINT
@click.option("--grid", help="Run a grid of points instead of one point: a grid that the scenario names, or all.")
@click.option(
    "--alone",
    metavar="AXIS=VALUE,...",
    help="Also run this point, and show what share of its goodput there each group loses at the other points.",
)
@click.option("--algorithm", default="cubic", show_default=True, help="Congestion control to ask the stack for.")
@with_choice("stack", "client", "kernel")
@trials(5, "Trials of each point.")
@FIRST_SEED
@with_means("executor")
@FORMAT
def run(
    choice: Choice, means: Means, what: str, points: Sequence[str], algorithm: str, form: str, **options: Any
) -> None:
    """Run SCENARIO, a name or a file, at a point or a grid of them.

    Points that zones cover are judged; the exit status is 1 if one violates.
    """
    ran = commands.scenario.run(what, algorithm, choice, means, points=points, **options)
    finish(ran, form, text.scenario.show_ran)


@scenario.command("show")
@click.argument("what", metavar="[SCENARIO]", required=False)
@_POINT
@FORMAT
def show(what: str | None, points: Sequence[str], form: str) -> None:
    """Show what SCENARIO, a name or a file, says: its axes, grids, and network at a point.

    Without SCENARIO, list those that ship, and the profiles, each a scenario of one flow.
    """
    if what is None:
        refuse_given("scenarios are only listed", "points")
        finish(commands.scenario.list_all(), form, text.scenario.show_listed)
    finish(commands.scenario.show(what, points), form, text.scenario.show_shown)


COMMANDS = (scenario,)

"""Commands that measure split paths. They belong to the group `split`."""

import pathlib
import sys

import click

from conformance.cli.base import out
from conformance.engine import Choice
from conformance.model.setting import PEPSAL, QUEUE_SIZED_BY, SPLITTER
from conformance.store import DEFAULT_RESULTS

_SIZED_BY = click.option(
    "--queue-sized-by", type=click.Choice(QUEUE_SIZED_BY), default="path", show_default=True,
    help="Whose bandwidth-delay product sizes the queues: the whole path's (as published) or each segment's.",
)  # fmt: skip
_PROXY = click.option(
    "--proxy", type=click.Choice([SPLITTER, PEPSAL, "none"]), default=SPLITTER, show_default=True,
    help="What splits connections: the suite's own, pepsal where one is on PATH, or nothing.",
)  # fmt: skip


@click.command()
@click.argument("algorithms", nargs=-1, required=True, metavar="CCA...")
@click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one; TCP only.")
@click.option("--kernel", help="Guest kernel's name (default: the one that has the algorithm).")
@_PROXY
@_SIZED_BY
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1), help="Trials of each path and cell.")
@click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to.")
@click.option("--profile", help="All of a setting but its cell (default: atc25).")
@click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core).")
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path), help="Folder for the figures.")
def accuracy(algorithms, stack, kernel, proxy, queue_sized_by, trials, results, profile, workers, target):
    """Predicted against measured split throughput of CCA..., over splits of one path."""
    from conformance import split_accuracy

    status = split_accuracy.run(
        algorithms, Choice(stack=stack, kernel=kernel), proxy=proxy, queue_sized_by=queue_sized_by, trials=trials,
        results=results, workers=workers, profile=profile, target=target, console=out,
    )  # fmt: skip
    sys.exit(status)


@click.group()
def split():
    """Behaviour behind a connection-splitting proxy."""


split.add_command(accuracy)

COMMANDS = (split,)

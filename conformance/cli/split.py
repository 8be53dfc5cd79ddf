"""`conformance split`: predict where a connection-splitting proxy would help, and measure what it brings."""

import pathlib
from collections.abc import Sequence
from typing import Any

import click

from conformance.cli import split_accuracy
from conformance.cli.base import FORMAT, SECONDS, finish
from conformance.model.errors import UserError
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import extras


@click.group()
def split() -> None:
    """Predict and measure the effect of splitting.

    A proxy splits a connection in two: `analyze` predicts where one would help, `measure` measures what one brings.
    """


@split.command("analyze")
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option("--algorithm", "algorithms", multiple=True, help="Use results of this algorithm only (repeatable).")
@click.option("--stack", help="Only results of this stack.")
@click.option("--kernel", help="Only results of this guest kernel, by name, release or digest.")
@click.option("--profile", help="Only results under this profile.")
@click.option("--transfer-s", type=SECONDS, help="Only results of transfers of this length.")
@click.option("--grid", default="full", show_default=True, help="Cells to make paths of: full, 10mbps, ...")
@click.option(
    "--path", metavar="S1,S2", help="Only this path, client's segment first: 100ms-0pct-20mbps,1ms-4pct-20mbps"
)
@click.option(
    "--interpolate",
    "interpolated",
    is_flag=True,
    help="Also predict between measured cells, and show the error of these predictions.",
)
@click.option(
    "--timeouts", type=click.Choice(["bound", "zero"]), default="bound", show_default=True,
    help="Count a transfer that timed out at its upper bound, or as zero, as the published study does.",
)  # fmt: skip
@click.option("--timeout-s", type=SECONDS, help="Treat longer transfers as if they had timed out after this long.")
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path), help="Also draw the bars: FILE.svg or .png.")
@FORMAT
def analyze(
    results: Sequence[pathlib.Path], algorithms: Sequence[str], stack: str | None, kernel: str | None,
    profile: str | None, transfer_s: float | None, target: pathlib.Path | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Predict which paths would gain from a proxy.

    Predicts from end-to-end RESULTS, and sorts paths of two segments into classes.
    """
    from conformance.commands import split_analyze
    from conformance.reporting.text import split as shown

    if target is not None and target.suffix not in shown.FIGURES:
        raise UserError(
            f"--out {target}: unknown kind of figure", f"use a name that ends in {' or '.join(shown.FIGURES)}"
        )
    if target is not None:
        extras.need("figures")
    chosen = split_analyze.Chosen(
        algorithms=tuple(algorithms), stack=stack, kernel=kernel, profile=profile, transfer_s=transfer_s
    )
    found = split_analyze.compute(results or (pathlib.Path(DEFAULT_RESULTS),), chosen=chosen, **options)
    if target is not None:
        shown.draw(found.predictions, found.transfer_s, target)
    finish(found, form, shown.show, [f"figure: {target}"] if target else ())


@click.group("split")
def dev_split() -> None:
    """Test predictions of splitting."""


split.add_command(split_accuracy.measure)
dev_split.add_command(split_accuracy.accuracy)

COMMANDS = (split,)
DEV_COMMANDS = (dev_split,)

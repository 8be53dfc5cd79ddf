"""`conformance gate`."""

import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from conformance.cli import measuring
from conformance.cli.base import FORMAT, TRIALS, progress_console
from conformance.engine.benches import Choice


@click.command()
@click.argument("algorithms", nargs=-1)
@measuring.with_choice("stack", "client", "interop_rootfs", "kernel", "lab")
@click.option(
    "--grid", "--tier", default="full", show_default=True, help="smoke, 10mbps ..., full, or cells with commas."
)
@click.option("--budget", help="End after this long, such as 90s, 10m or 1h; the most telling cells come first.")
@click.option("--shard", default="1/1", show_default=True, help="Which of how many parts of the cells, such as 2/5.")
@measuring.trials(5, "Trials of each cell, to begin with.")
@click.option("--max-trials", "most_trials", type=TRIALS, help="Of an unclear cell (default: 20, or --trials).")
@click.option("--strict", is_flag=True, help="Whatever is not known fails: inconclusive, unsupported, not measured.")
@click.option("--baseline", metavar="RESULTS", help="Fail on change from these results, not on the zones.")
@measuring.RESULTS
@measuring.WORKERS
@measuring.EXECUTOR
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path), help="Folder for Markdown, JUnit, site ...")
@click.option(
    "--keep-traces", metavar="DIR", type=click.Path(path_type=pathlib.Path),
    help="Packets and qlog of a few cells that violate.",
)  # fmt: skip
@click.option(
    "--why/--no-why", default=None, help="Trace what violates, and say what looks wrong (default: if no --budget)."
)
@FORMAT
def gate(choice: Choice, algorithms: Sequence[str], why: bool | None, form: str, **options: Any) -> None:
    """What a CI runs: measure ALGORITHMS (default: all) within a budget, judge, compare with what is expected."""
    from conformance.commands.gate import Options, run

    why = options["budget"] is None if why is None else why
    result = run(Options(algorithms=algorithms, choice=choice, why=why, **options), progress_console(form))
    if form == "json":
        click.echo(json.dumps(result.to_json(), indent=1, allow_nan=False))
    sys.exit(int(result.exit_status))


COMMANDS = (gate,)

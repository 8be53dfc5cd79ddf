"""`conformance study`: measure what published studies measured, and judge their claims."""

import pathlib
from collections.abc import Callable
from typing import Any

import click

from conformance import commands
from conformance.cli.base import FORMAT, SEED, TRIALS, finish, finish_made, out_folder, out_path, written
from conformance.cli.measuring import RESULTS, refuse_given, with_means
from conformance.commands.result import Item
from conformance.engine.benches import Means
from conformance.reporting import text

_OUT = out_path("Also write Markdown: FILE.md.")


@click.group()
def study() -> None:
    """Measure what published studies measured, and judge their claims (docs/studies.md)."""


@click.group("study")
def dev_study() -> None:
    """Count what studies' claims came to, and keep their results."""


@study.command("run")
@click.argument("what", metavar="STUDY")
@click.option(
    "--grid", "tier", type=click.Choice(["smoke", "full"]), default="smoke", show_default=True,
    help="Which points: a few minutes' worth, or all.",
)  # fmt: skip
@click.option("--trials", type=TRIALS, help="Trials of each point (default: as many as the study says).")
@click.option(
    "--first-seed", default=1, show_default=True, type=SEED,
    help="Seed of the first trial; by default that of the references, whose trials count for a study, too.",
)  # fmt: skip
@with_means("executor")
@_OUT
@FORMAT
def run(means: Means, what: str, tier: str, form: str, target: pathlib.Path | None, **options: Any) -> None:
    """Measure a grid of STUDY, a name or a file, and judge its claims.

    What the results file holds is not measured again, so the same command resumes an interrupted run.
    """
    outcome = commands.study.run(what, tier, means, **options)
    finish(outcome, form, text.study.show_told, _written(outcome, target))


@study.command("show")
@click.argument("what", metavar="[STUDY]", required=False)
@RESULTS
@_OUT
@FORMAT
def show(what: str | None, results: str, target: pathlib.Path | None, form: str) -> None:
    """Show scenarios and claims of STUDY, a name or a file, judged by the results file.

    Without STUDY, list the studies that ship.
    """
    if what is None:
        refuse_given("studies are only listed", "results", "target")
        finish(commands.study.list_all(), form, text.study.show_listed)
    outcome = commands.study.show(what, [results])
    finish(outcome, form, text.study.show_told, _written(outcome, target))


@dev_study.command("board")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path, exists=True))
@_OUT
@FORMAT
def board(results: tuple[pathlib.Path, ...], target: pathlib.Path | None, form: str) -> None:
    """Judge the claims of all studies by RESULTS, and count the verdicts.

    With --out, every claim is listed.
    """
    studies = commands.study.board(results)
    finish(studies, form, text.study.show_board, _written(studies, target, text.study.board_markdown))


@dev_study.command("publish")
@click.argument("what", metavar="STUDY")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path, exists=True))
@out_folder("published/studies")
@FORMAT
def publish(what: str, results: tuple[pathlib.Path, ...], target: pathlib.Path, form: str) -> None:
    """Compress what RESULTS hold of STUDY, for keeping.

    Writes STUDY.jsonl.xz into a folder, with all that claims rest on. An existing file keeps points that RESULTS lack;
    these must be of the same build, kernel and lab as those of the same algorithm in RESULTS.
    """
    from conformance.catalogue import studies
    from conformance.reporting import published
    from conformance.results import store

    path = published.write_study(studies.find(what), store.read(*results), target)
    item = Item(name=path.name, words=f"{path}: {path.stat().st_size / 1000:.0f} kB", path=str(path))
    finish_made("dev study publish", [item], form)


def _written(
    printed_record: Any, target: pathlib.Path | None, as_markdown: Callable[[Any], str] | None = None
) -> list[str]:
    """Write Markdown to `target`, if it is given, and return the lines that say so.

    `as_markdown` writes what was found; without it, `found` is of one study.
    """
    if target is None:
        return []
    return written(target, (as_markdown or text.study.as_markdown)(printed_record))


COMMANDS = (study,)
DEV_COMMANDS = (dev_study,)

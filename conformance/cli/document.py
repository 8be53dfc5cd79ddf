"""`conformance dev document`: maintain the adapter `document`, which is the BBR draft as a stack."""

import pathlib
from collections.abc import Sequence

import click

from conformance.cli.base import FORMAT, finish


@click.group("document")
def dev_document() -> None:
    """Maintain the adapter `document`, which is the BBR draft as a stack (docs/bbr-draft.md)."""


@dev_document.command("check")
@click.argument("text", type=click.Path(path_type=pathlib.Path))
@click.option("--keep", "version", help="Keep digests of TEXT as those of this version, once the adapter follows it.")
@FORMAT
def check(text: pathlib.Path, version: str | None, form: str) -> None:
    """Name the sections and the pseudocode that differ in TEXT, and what of the adapter cites them.

    TEXT is the draft as rendered, such as draft-ietf-ccwg-bbr-06.txt. The exit status is 1 if anything differs.
    """
    from conformance.commands import document_check
    from conformance.reporting.text import document as document_text

    checked = document_check.compute(text)
    kept = [] if version is None else [f"written: {document_check.keep(text, version)}"]
    finish(checked, form, document_text.show_checked, kept)


@dev_document.command("play")
@click.argument("options", nargs=-1)
@click.option("--grid", default="10mbps", show_default=True, help="Which cells, of the profile packets.")
@click.option("--deviation", "deviations", multiple=True, help="A fault to switch on (repeatable; deviations.txt).")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(1, 10_000), help="Plays of each cell.")
@click.option(
    "--results", multiple=True, type=click.Path(path_type=pathlib.Path), help="Show these results of guests beside."
)
@FORMAT
def play(
    options: Sequence[str], grid: str, deviations: Sequence[str], trials: int, results: Sequence[pathlib.Path],
    form: str,
) -> None:  # fmt: skip
    """Play the same controller over modelled paths, in milliseconds and without a guest.

    OPTIONS are KEY=VALUE of `document play`, such as queue=bdp:4 or drop=3:4:1:50.
    """
    from conformance.commands import document_play
    from conformance.reporting.text import document as document_text

    finish(document_play.compute(grid, deviations, trials, results, options), form, document_text.show_played)


DEV_COMMANDS = (dev_document,)

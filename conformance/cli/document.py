"""`conformance dev document`: maintain the adapter `document`, which is the BBR draft as a stack."""

import pathlib

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
    from conformance.reporting.text import document as shown

    found = document_check.compute(text)
    kept = [] if version is None else [f"written: {document_check.keep(text, version)}"]
    finish(found, form, shown.show_checked, kept)


DEV_COMMANDS = (dev_document,)

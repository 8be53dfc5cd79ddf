"""`conformance zones`: tools for zone files."""

import pathlib
from collections.abc import Sequence

import click

from conformance import commands
from conformance.cli.base import FORMAT, Name, finish, finish_made, out_path, progress_console, written
from conformance.commands.result import Item
from conformance.commands.status import ExitStatus
from conformance.model.errors import UserError
from conformance.model.metrics.table import METRICS, UTILIZATION
from conformance.reporting import text


@click.group()
def zones() -> None:
    """Check, derive and draw zones, and say what they detect."""


@click.group("zones")
def dev_zones() -> None:
    """Format and compare zone files, and choose what follows from all of them."""


@zones.command("check")
@click.argument("files", nargs=-1)
@click.option(
    "--record",
    is_flag=True,
    help="Record which mutants the zones reject, so that later checks notice if they miss one.",
)
@FORMAT
def zones_check(files: Sequence[str], record: bool, form: str) -> None:
    """Check zone files.

    FILES are files or ids of zones (default: all that ship). Checks schema, invariants and the record of mutants.
    """
    from conformance.catalogue import mutant_record

    if record and files:
        raise UserError("--record keeps what all zones reject", "give it without FILES")
    # Each zone is shown as soon as it is checked, so that those before one that fails are seen, too.
    checked_zones = commands.zones.check(
        files, lambda checked_zone: text.zones.show_checked(checked_zone, progress_console(form)), anew=record
    )
    finish(checked_zones, form, lines=[f"recorded: {mutant_record.keep()}"] if record else ())


@dev_zones.command("fmt")
@click.argument("files", nargs=-1)
@click.option("--check", "only_check", is_flag=True, help="Only check; exit 1 if a file is not canonical.")
@FORMAT
def zones_fmt(files: Sequence[str], only_check: bool, form: str) -> None:
    """Write zone files in canonical form.

    FILES are files or ids of zones (default: all that ship).
    """
    from conformance.catalogue import documents, lint

    unlike = [path for path in files or documents.zone_files("*") if not lint.format_file(path, not only_check)]
    what = "not canonical" if only_check else "written"
    items = [Item(name=str(path), words=f"{what}: {path}", path=str(path)) for path in unlike]
    status = ExitStatus.VIOLATES if unlike and only_check else ExitStatus.DONE
    finish_made("dev zones fmt", items, form, status)


@dev_zones.command("diff")
@click.argument("first")
@click.argument("second")
@FORMAT
def zones_diff(first: str, second: str, form: str) -> None:
    """Compare two versions of a zone.

    FIRST and SECOND are files or ids. The exit status is 1 if they differ.
    """
    finish(commands.zones.diff(first, second), form, text.zones.show_difference)


@zones.command("show")
@click.argument("zone")
@FORMAT
def zones_show(zone: str, form: str) -> None:
    """Draw ZONE in the terminal.

    ZONE is a file or an id such as cubic/heatmap. Shows what it permits, and its reference's medians.
    """
    finish(commands.zones.show(zone), form, text.zones.show_zone)


@zones.command("derive")
@click.argument("algorithm")
@click.argument("results", type=click.Path(path_type=pathlib.Path))
@click.option(
    "--version-text",
    required=True,
    help="Which version of the algorithm it is, and the RFC or draft that specifies it.",
)
@click.option(
    "--metric",
    type=Name(METRICS),
    default=UTILIZATION.name,
    show_default=True,
    help="What the zone judges.",
)
@click.option(
    "--profile", "--scenario", "profile", default="atc25", show_default=True,
    help="Use the results under this profile, or of this scenario.",
)  # fmt: skip
@click.option(
    "--beside", multiple=True, type=click.Path(path_type=pathlib.Path), metavar="RESULTS",
    help="Let the zone rest on another implementation's runs, too (repeatable).",
)  # fmt: skip
@out_path("File to write.", required=True)
@FORMAT
def zones_derive(
    algorithm: str,
    results: pathlib.Path,
    version_text: str,
    metric: str,
    profile: str,
    beside: tuple[pathlib.Path, ...],
    target: pathlib.Path,
    form: str,
) -> None:
    """Derive a zone of ALGORITHM from reference runs in RESULTS.

    A stack violates a zone only if it is outside of everything that the zone rests on: the reference, other
    implementations given by --beside, and documents.
    """
    from conformance.catalogue import derive, documents
    from conformance.model.errors import located
    from conformance.results import store

    with located(f"--out {target}"):
        documents.refuse_name(target.stem, metric, profile)
    further = [store.read(path) for path in beside]
    document = derive.derive(store.read(results), algorithm, version_text, metric, profile, target.stem, beside=further)
    zone = derive.write(document, target)
    fewest = min(i.basis.n for i in zone.intervals.values())
    if fewest < derive.USUAL_TRIALS:
        said = f"some {zone.noun}s have only {fewest} trials: the fewer, the less they detect"
        enough = f"{derive.USUAL_TRIALS} are enough for a session of 400 questions"
        progress_console(form).print(f"{said}; {enough}", style="yellow", soft_wrap=True)
    item = Item(name=zone.id, words=f"zone {zone.summary}, {target}", path=str(target))
    finish_made("zones derive", [item], form)


@dev_zones.command("smoke")
@FORMAT
def zones_smoke(form: str) -> None:
    """Choose the smoke cells of all zones again.

    Smoke cells are those that tell an algorithm from the others.
    """
    from conformance.catalogue import separation

    items = [
        Item(name=zone.id, words=f"zone {zone.id}: {', '.join(cell.id for cell in zone.smoke) or 'none'}")
        for zone in separation.choose_smoke_cells()
    ]
    finish_made("dev zones smoke", items, form)


@dev_zones.command("apart")
@click.argument("algorithms", nargs=-1, required=True)
@click.option("--profile", default="atc25", show_default=True, help="Compare the zones under this profile.")
@FORMAT
def zones_apart(algorithms: Sequence[str], profile: str, form: str) -> None:
    """List the cells that tell ALGORITHMS apart.

    In such a cell, the zones of two of these algorithms have no permitted value in common.
    """
    finish(commands.zones.apart(algorithms, profile), form, text.zones.show_apart)


@zones.command("power")
@click.argument("named", metavar="[ZONES]...", nargs=-1)
@click.option("--trials", type=click.IntRange(5), help="Trials of a cell, at most [default: 20].")
@click.option("--questions", type=click.IntRange(1), help="Cells that a session judges in all [default: 400].")
@out_path("Also write Markdown: FILE.md.")
@FORMAT
def zones_power(
    named: Sequence[str], trials: int | None, questions: int | None, target: pathlib.Path | None, form: str
) -> None:
    """Say which shifts ZONES detect.

    ZONES are files or ids (default: all). A shift is detected if a stack whose values are lower or higher than the
    reference's by that much violates the zone in 80 % of runs.
    The last column is about a stack that is 20 % slower than the reference in every cell.
    """
    from conformance.model.judging import power

    powers = commands.zones.compute_power(named, trials or power.TRIALS, questions or power.QUESTIONS)
    finish(powers, form, text.zones.show_power, written(target, text.zones.power_markdown(powers)) if target else ())


@dev_zones.command("margins")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--record", is_flag=True, help="Keep the margins in zones/margins.json; then derive the zones again.")
@FORMAT
def zones_margins(results: Sequence[pathlib.Path], record: bool, form: str) -> None:
    """Compute margins from RESULTS of honest stacks.

    zones/margins.json names these stacks. For each kind of cell, the table shows by how much their medians differ, how
    far the farthest lies outside of all bases, and which margin follows.
    """
    finish(commands.zones.margins(results, record), form, text.zones.show_margins)


COMMANDS = (zones,)
DEV_COMMANDS = (dev_zones,)

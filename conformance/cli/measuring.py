"""Commands that run trials."""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from conformance import commands
from conformance.cli.base import FORMAT, SECONDS, SEED, TRIALS, finish, notes, out_folder, out_path, resumes
from conformance.engine.benches import Choice, Means
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.verdict import last_look
from conformance.reporting import text
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import files


def chosen_sources(texts: Sequence[str]) -> tuple[str, ...]:
    from conformance.lab import sources

    return sources.chosen(texts)


SOURCE = click.option(
    "--source", multiple=True, metavar="NAME=PATH", callback=lambda _, __, texts: chosen_sources(texts),
    help="Build the stack with this working tree, or version of a registry, as crate, Go module or library NAME"
    " (repeatable; or the variable CC_SOURCE).",
)  # fmt: skip
_CHOICE = {
    "stack": click.option(
        "--stack", default="linux-tcp", show_default=True, help="Name of an adapter, or path of an adapter.json."
    ),
    "source": SOURCE,
    "client": click.option(
        "--client",
        default="common",
        show_default=True,
        help="Which client fetches: common, own (the stack's), or an adapter's.",
    ),
    "interop_rootfs": click.option(
        "--interop-rootfs", metavar="DIR", help="Instead of --stack: an exported image of the QUIC interop runner."
    ),
    "kernel": click.option("--kernel", help="Name of the guest kernel (default: the one that has the algorithm)."),
}
_GRID = click.option(
    "--grid", default="full", show_default=True,
    help="Cells to measure: full, 10mbps ..., a zone's id, or cells separated by commas.",
)  # fmt: skip
_PROFILE = click.option(
    "--profile", help="Queue, offload and so on: all but the cell (default: atc25 for TCP, packets for UDP)."
)
RESULTS = click.option(
    "--results", default=DEFAULT_RESULTS, show_default=True,
    help="Results file: what it holds is not measured again, and new results are added.",
)  # fmt: skip
WORKERS = click.option(
    "--workers", type=click.IntRange(1), help="How many guests run at a time (default: one for each core)."
)


FIRST_SEED = click.option(
    "--first-seed", default=seeds.JUDGED, show_default=True, type=SEED,
    help="Seed of the first trial; the default keeps clear of the references' seeds.",
)  # fmt: skip
EXECUTOR = click.option(
    "--executor", metavar="MODULE:FUNCTION", callback=lambda _, __, name: name and _factory(name),
    help="Run trials on workers: a function that returns a concurrent.futures.Executor.",
)  # fmt: skip


def refuse_given(why: str, *names: str) -> None:
    """Raise UserError if the command line gives one of these parameters; `why` says why it would have no effect."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} would have no effect: {why}", f"give the command without {option}")


def _factory(name: str) -> Any:
    from conformance.engine import workers

    return workers.factory(name)


_Command = Callable[..., Any]


def trials(default: int, what: str = "Trials of each cell.", least: int = 1) -> Callable[[_Command], _Command]:
    """Make the option --trials, whose default differs from command to command."""
    return click.option(
        "--trials", default=default, show_default=True, type=click.IntRange(least, TRIALS.max), help=what
    )


_MOST_TRIALS = click.option(
    "--max-trials", "most_trials", type=TRIALS, show_default="--trials if that is given, else 20",
    help="Most trials of a cell that is unclear.",
)  # fmt: skip


def _most(trials: int, most_trials: int | None) -> int:
    """Return the most trials of a cell: if --trials is given without --max-trials, no more than it says."""
    given = click.get_current_context().get_parameter_source("trials") is not ParameterSource.DEFAULT
    return most_trials or (trials if given else last_look(trials))


def with_choice(*names: str) -> Callable[[_Command], _Command]:
    """Add the options of these names, which choose what is tested; the command gets them as one Choice.

    `stack` also adds `source`: working trees to build the stack with.
    """
    if "stack" in names:
        names = ("stack", "source", *(name for name in names if name != "stack"))

    def decorate(function: _Command) -> _Command:
        @functools.wraps(function)
        def command(**options: Any) -> Any:
            chosen = {name: options.pop(name) for name in names}
            return function(choice=Choice(**chosen), **options)

        for name in reversed(names):
            command = _CHOICE[name](command)
        return command

    return decorate


def with_means(*names: str, results: str = DEFAULT_RESULTS) -> Callable[[_Command], _Command]:
    """Add options of how a command measures: --results, --workers and those of these names; it gets them as Means.

    `results`: the file that it adds to unless it is told another.
    """
    to_add = click.option("--results", default=results, show_default=True, help="Results file to add to.")
    options = {"results": RESULTS if results == DEFAULT_RESULTS else to_add, "workers": WORKERS, "executor": EXECUTOR}
    chosen = ("results", "workers", *names)

    def decorate(function: _Command) -> _Command:
        @functools.wraps(function)
        def command(**given: Any) -> Any:
            resumes()
            means = Means(notes=notes(given["form"]), **{name: given.pop(name) for name in chosen})
            return function(means=means, **given)

        for name in reversed(chosen):
            command = options[name](command)
        return command

    return decorate


_ALL = ("stack", "client", "interop_rootfs", "kernel")


@click.command()
@click.argument("algorithm")
@with_choice(*_ALL)
@_GRID
@trials(5, "Trials of each cell, to begin with.")
@_MOST_TRIALS
@FIRST_SEED
@_PROFILE
@click.option("--queue", help="Replace the profile's queue: red, bfifo:1, fq_codel, ...")
@click.option("--offload", type=click.Choice(["on", "off"]), help="Replace the profile's offload.")
@click.option("--transfer-s", type=SECONDS, help="Replace the profile's transfer length.")
@click.option(
    "--rival", help="Share the bottleneck with a second flow, from the guest kernel: cubic, reno, bbr, ... (its names)."
)
@with_means("executor")
@FORMAT
def run(
    choice: Choice, means: Means, algorithm: str, grid: str, trials: int, most_trials: int | None, first_seed: int,
    profile: str | None, form: str, **overrides: Any,
) -> None:  # fmt: skip
    """Measure ALGORITHM over a grid of cells.

    The results are judged if there is a zone for these settings.
    """
    if overrides["offload"]:
        overrides["offload"] = overrides["offload"] == "on"
    measured = commands.run.compute(
        algorithm, choice, means, grid=grid, trials=trials, most_trials=_most(trials, most_trials), profile=profile,
        overrides=overrides, first_seed=first_seed,
    )  # fmt: skip
    finish(measured, form, text.terminal.show_measured)


FLOW = click.option(
    "--flow", metavar="GROUP/N", help="Flow of the scenario to trace (default: the first one of the judged group)."
)
_OF_SCENARIO = click.option(
    "--profile", "--scenario", "profile", help="Trace a flow at POINT of this scenario instead of cells that tell much."
)


def refuse_without_scenario(profile: str | None, point: str | None, flow: str | None) -> None:
    """Raise UserError if a point or a flow is given, and no scenario."""
    if profile is None and (point or flow):
        raise UserError("POINT and --flow are of a scenario", "name it with --scenario")


@click.command()
@click.argument("algorithm")
@click.argument("point", required=False)
@with_choice(*_ALL)
@_OF_SCENARIO
@FLOW
@trials(3)
@FIRST_SEED
@with_means()
@FORMAT
def identify(
    choice: Choice, means: Means, algorithm: str, point: str | None, profile: str | None, flow: str | None, form: str,
    **options: Any,
) -> None:  # fmt: skip
    """Name the algorithm that a stack's ALGORITHM behaves like.

    The answer includes the version, as in bbrv3.
    """
    refuse_without_scenario(profile, point, flow)
    if profile is not None:
        traced = commands.identify.of_flow(
            algorithm, choice, means, point=point or "", profile=profile, flow=flow, **options
        )
        finish(traced, form, text.studies.show_identified)
    finish(commands.identify.compute(algorithm, choice, means, **options), form, text.studies.show_identified)


@click.command("identify-check")
@with_choice("stack", "client")
@trials(20, "Identifications of each algorithm.")
@FIRST_SEED
@with_means()
@FORMAT
def identify_check(choice: Choice, means: Means, form: str, **options: Any) -> None:
    """Count how often `identify` is right.

    Every known algorithm is identified many times.
    """
    finish(commands.identify.compute_check(choice, means, **options), form, text.studies.show_checked)


@click.command()
@click.argument("algorithms", nargs=-1, required=True)
@with_choice("stack", "client", "kernel")
@trials(5)
@FIRST_SEED
@with_means()
@FORMAT
def cross(choice: Choice, means: Means, algorithms: Sequence[str], form: str, **options: Any) -> None:
    """Judge each of ALGORITHMS by the zone of each.

    Only the diagonal should conform: each algorithm in its own zone.
    """
    finish(commands.cross.compute(algorithms, choice, means, **options), form, text.dev.show_crossed)


@click.command()
@click.option("--algorithm", default="cubic", show_default=True)
@with_choice("stack", "client", "kernel")
@click.option("--stacks", is_flag=True, help="Show one row for each stack and rate instead of one for each cell.")
@click.option(
    "--figures", is_flag=True, help="Show instead how long whole commands take, and where a trial's time goes."
)
@click.option("--whole", is_flag=True, help="With --figures: also run commands that take minutes.")
@trials(3, least=2)
@FORMAT
def bench(choice: Choice, algorithm: str, stacks: bool, figures: bool, whole: bool, trials: int, form: str) -> None:
    """Measure what trials cost.

    Prints wall seconds, virtual seconds per wall second and system calls per packet.
    """
    if stacks and (figures or whole):
        raise UserError("--stacks and --figures measure different things", "give one of them")
    if figures or whole:
        refuse_given("--figures does not use it", "algorithm", "trials")
        finish(commands.bench.compute_figures(choice, whole), form, text.dev.show_figures)
    if stacks:
        refuse_given("--stacks does not use it", "algorithm", "stack", "source")
        finish(commands.bench.compute_stacks(choice, trials), form, text.dev.show_costs)
    finish(commands.bench.compute(algorithm, choice, trials), form, text.dev.show_costs)


@click.command()
@click.argument("stacks", nargs=-1)
@with_choice("client", "kernel")
@click.option("--grid", help="full, 10mbps ..., or cells separated by commas (default: each zone's smoke cells).")
@trials(5, "Trials of each cell, to begin with.")
@_MOST_TRIALS
@FIRST_SEED
@with_means()
@out_path("Also write the result to this file, as Markdown.")
@FORMAT
def matrix(
    choice: Choice, means: Means, stacks: Sequence[str], trials: int, most_trials: int | None,
    target: pathlib.Path | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Judge every stack and algorithm, as a table.

    For each algorithm of every adapter, or of STACKS: whether it is built or why not, its verdict in the smoke cells
    or a grid, and the seconds it took.
    """
    most = _most(trials, most_trials)
    table = commands.matrix.compute(stacks, choice, means, trials=trials, most_trials=most, **options)
    if target:
        files.write(target, text.overview.markdown(table))
    finish(table, form, text.overview.show, [f"also as Markdown: {target}"] if target else ())


@click.command()
@click.argument("algorithm")
@click.argument("point", required=False)
@with_choice(*_ALL)
@click.option("--seed", default=1, show_default=True, type=SEED, help="Seed of the trial.")
@click.option(
    "--profile",
    "--scenario",
    "profile",
    help="Scenario or profile of POINT, such as flows=4 or 10mbps-20ms-1pct (default: atc25 for TCP, packets for UDP).",
)
@FLOW
@click.option(
    "--packets-only",
    is_flag=True,
    help="Have the stack write no logs, so that the trial equals an untraced one to the byte.",
)
@out_folder("trace")
@FORMAT
def trace(choice: Choice, algorithm: str, point: str | None, form: str, **options: Any) -> None:
    """Record everything about one trial.

    Runs one trial of ALGORITHM in a cell, or at another point of a scenario, and keeps packets (pcap), TLS secrets,
    qlog and output.
    """
    if point is None and options["profile"] is None:
        raise UserError("it is not said where to trace", "name a POINT, such as 10mbps-20ms-1pct, or a --scenario")
    traced = commands.trace.compute(algorithm, choice, point=point or "", notes=notes(form), **options)
    finish(traced, form, text.trace.show)


@click.command()
@click.argument("algorithm")
@click.argument("point", required=False)
@with_choice(*_ALL)
@_OF_SCENARIO
@FLOW
@trials(3, "Traces of each cell; in cells without random loss only one, unless the algorithm is BBR.")
@click.option(
    "--first-seed", default=1, show_default=True, type=SEED,
    help="Seed of the first trial; the default is that of the features that were recorded of references.",
)  # fmt: skip
@WORKERS
@out_path("Folder to keep pcaps, why.json and why.svg in.")
@click.option(
    "--changes/--no-changes", default=None,
    help="Look at outages, disorder, pauses, little data to send, marks and steps of the rate, too, in ten more trials"
    " of each side (default, unless a point of a scenario is named), or not.",
)  # fmt: skip
@FORMAT
def why(
    choice: Choice, algorithm: str, point: str | None, profile: str | None, flow: str | None,
    target: pathlib.Path | None, changes: bool | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Say what looks wrong with ALGORITHM.

    Traces the stack and Linux TCP, compares them, and lists suspects with evidence.
    """
    refuse_without_scenario(profile, point, flow)
    explained = commands.why.compute(
        algorithm, choice, target=target, notes=notes(form), point=point, profile=profile, flow=flow,
        changes=point is None if changes is None else changes, **options,
    )  # fmt: skip
    kept: Sequence[str] = ()
    if target and isinstance(explained, commands.why.Report):
        sent = f"{commands.tracing.captures(explained.stack.under).sent}.pcap"
        what = "why.json, why.svg and each trial's files; times are seconds from the start of its"
        kept = [f"kept in {target}: {what} {sent}"]
    finish(explained, form, text.why.show_asked, kept)


COMMANDS = (run, identify, trace, why, matrix)
DEV_COMMANDS = (identify_check, cross, bench)

"""`conformance gate`: pass or fail a stack in CI."""

import pathlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from conformance import commands
from conformance.cli import measuring
from conformance.cli.base import FORMAT, TRIALS, out_path, print_document, progress_console
from conformance.commands.result import printed
from conformance.engine.benches import Choice, Means
from conformance.reporting import text
from conformance.support.console import Console

if TYPE_CHECKING:
    from conformance.commands.gate import GateOptions, GateResult


@click.command()
@click.argument("algorithms", nargs=-1)
@measuring.with_choice("stack", "client", "interop_rootfs", "kernel")
@click.option(
    "--grid",
    default="full",
    show_default=True,
    help="Cells to measure: smoke, 10mbps ..., full, or cells separated by commas.",
)
@click.option(
    "--budget", help="Stop measuring after this long, such as 90s, 10m or 1h; the most telling cells come first."
)
@click.option(
    "--shard", default="1/1", show_default=True, help="Measure one part of the cells, such as 2/5: the second of five."
)
@measuring.trials(5, "Trials of each cell, to begin with.")
@click.option(
    "--max-trials",
    "most_trials",
    type=TRIALS,
    help="Most trials of an unclear cell (default: 20, or --trials if more).",
)
@measuring.FIRST_SEED
@click.option(
    "--confirm/--no-confirm", default=True, show_default=True,
    help="Repeat new violations with fresh seeds: they fail only if these trials violate, too.",
)  # fmt: skip
@click.option(
    "--fail-inconclusive",
    "strict",
    is_flag=True,
    help="Also fail for what is not known: inconclusive, unsupported, not measured in time, "
    "or a violation that fresh seeds did not show again.",
)
@click.option("--baseline", metavar="RESULTS", help="Judge by change from these results instead of by zones.")
@measuring.with_means("executor")
@out_path("Folder to write Markdown, JUnit, site ... to.")
@click.option(
    "--keep-traces", metavar="DIR", type=click.Path(path_type=pathlib.Path),
    help="Folder to keep packets and qlog of a few violating cells in.",
)  # fmt: skip
@click.option("--flow", metavar="GROUP/N", help="Flow of --keep-traces (default: the first one of the judged group).")
@click.option("--annotations", is_flag=True, help="Also print what fails as annotations for GitHub (::error ...).")
@click.option(
    "--clauses", is_flag=True,
    help="Also judge the clauses of RFCs and drafts that apply; a violation fails unless it is on record.",
)  # fmt: skip
@click.option(
    "--features", is_flag=True,
    help="Also read features from traces (beta, growth ...), and fail if one moved from --baseline's.",
)  # fmt: skip
@click.option(
    "--why/--no-why",
    default=None,
    help="Trace what violates, and say what looks wrong (default: only without --budget).",
)
@click.option(
    "--blame/--no-blame",
    default=None,
    help="Repeat trials of what violates, and say whether congestion control, recovery or the size of packets is the"
    " cause (default: as for --why).",
)
@FORMAT
def gate(
    choice: Choice, means: Means, algorithms: Sequence[str], why: bool | None, blame: bool | None, form: str,
    **options: Any,
) -> None:  # fmt: skip
    """Pass or fail a stack, in CI.

    Measures ALGORITHMS (default: all) within a budget, judges them, and compares the verdicts with the expected ones.
    """
    if options["baseline"]:
        demands = (name for name, wanted in (("why", why), ("blame", blame)) if wanted)
        measuring.refuse_given("with --baseline, nothing is compared with the reference", *demands)
    if not options["keep_traces"]:
        measuring.refuse_given("no traces are kept without --keep-traces", "flow")
    why = options["budget"] is None if why is None else why
    blame = why if blame is None else blame
    chosen = commands.gate.GateOptions(algorithms=algorithms, choice=choice, why=why, blame=blame, **options)
    console = progress_console(form)
    result = commands.gate.compute(chosen, means)
    text.gate.show(result, console)
    _report(result, chosen, console, means)
    if form == "json":
        print_document(result)
    sys.exit(int(result.exit_status))


def _report(result: "GateResult", options: "GateOptions", console: Console, means: Means) -> None:
    """Write reports, say what looks wrong and keep traces, each if it was asked for. Raises UserError."""
    from conformance.reporting.tools import github
    from conformance.results import features

    target = options.target
    if target:
        drawn = text.gate.write(result, printed(result), result.measurements, target)
        if options.features:
            schemes = {m.scheme for m in result.measurements}
            features.copy(means.results, target / "results.jsonl", schemes)
        console.print(f"reports: {target}", soft_wrap=True)
    reports: dict[str, Any] = {}
    if result.violating and options.why and options.can_look:
        reports = commands.why.of_violations(
            [zone.algorithm for zone, _ in result.violating],
            options.choice,
            means.notes,
            lambda report: text.why.show(report, console),
            commands.gate.failing(result.judged),
        )
        if target and reports:
            text.gate.add_why(result, drawn, reports, target, commands.why.write)
    if options.annotations:
        for line in github.annotations(result, reports):
            console.print(line, soft_wrap=True)
    if options.keep_traces:
        cells = dict.fromkeys((zone.algorithm, zone.profile, place) for zone, place in result.violating)
        commands.trace.keep_some(
            cells, options.choice, options.keep_traces, options.first_seed, means.notes,
            lambda kept: text.trace.show(kept, console), options.flow,
        )  # fmt: skip


COMMANDS = (gate,)

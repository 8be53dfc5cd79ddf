"""`conformance compare`: say what moved between two builds, kernels or results files."""

import pathlib
from collections.abc import Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli import measuring
from conformance.cli.base import FORMAT, TRIALS, Finite, finish, out_path
from conformance.engine.benches import Choice, Means
from conformance.reporting import text


@click.command()
@click.argument("base")
@click.argument("head")
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    help="Algorithm to compare (repeatable; default: all that both sides have).",
)
@measuring.with_choice("stack", "client", "kernel")
@click.option(
    "--base-source", multiple=True, metavar="NAME=PATH",
    help="Like --source, but for BASE; --source applies to HEAD only.",
    callback=lambda _, __, texts: measuring.chosen_sources(texts) if texts else (),
)  # fmt: skip
@click.option(
    "--sysctl", metavar="NAME=VALUE[,...]", help="Set sysctls (net.ipv4...) for HEAD, in addition to the profile's."
)
@click.option("--base-sysctl", metavar="NAME=VALUE[,...]", help="Like --sysctl, but for BASE.")
@click.option(
    "--grid",
    default="smoke",
    show_default=True,
    help="Cells to compare besides features: smoke, 10mbps ..., full, cells separated by commas, or none; of a"
    " scenario, a grid of its points, or a point such as flows=2.",
)
@click.option(
    "--profile",
    "--scenario",
    "profile",
    help="Compare cells under this profile: queue, offload and so on (default: that of each zone; with --grid, atc25"
    " for TCP and packets for UDP), or points of this scenario, a name or a file, and features of a flow there.",
)
@measuring.FLOW
@click.option("--features/--no-features", default=True, help="Compare what `why` reads from traces (default), or not.")
@click.option(
    "--changes/--no-changes", default=None,
    help="Compare networks and applications that change: outages, pauses, marks, disorder, late and held packets"
    " (default: with features, unless two kernels are compared), or not.",
)  # fmt: skip
@click.option(
    "--clauses", is_flag=True,
    help="Compare the values of all clauses, too, not only of those about events; give a longer --budget.",
)  # fmt: skip
@click.option(
    "--trials", type=TRIALS, help="Trials of each cell on each side (default: as few as can show that anything moved)."
)
@measuring.FIRST_SEED
@click.option(
    "--matters", default=0.5, show_default=True, type=Finite(0, 1, min_open=True),
    help="Smallest change that counts, as a share of what two implementations may differ by.",
)  # fmt: skip
@click.option(
    "--margin", type=Finite(0, min_open=True), show_default="1",
    help="For two kernels: how far apart cells may be if one serves for the other, in the unit of --matters.",
)  # fmt: skip
@click.option("--across-stacks", is_flag=True, help="Compare two different stacks, which is refused otherwise.")
@click.option(
    "--budget", default="5m", show_default=True, help="Stop measuring after this long, such as 90s, 10m or 1h."
)
@measuring.with_means()
@out_path("Folder to write compare.md, compare.json and compare.svg to.")
@FORMAT
def compare(
    choice: Choice, means: Means, base: str, head: str, algorithms: Sequence[str], budget: str,
    target: pathlib.Path | None, sysctl: str | None, base_sysctl: str | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Say what moved from BASE to HEAD.

    Each is a results file, a stack, STACK@KERNEL, or @KERNEL. What `why` reads (beta, initial window, growth ...) and
    metrics in cells are reported as same, moved or unclear. For one build on two kernels, or under two values of a
    sysctl, the command also says whether one serves for the other.
    """
    if commands.compare_sides.is_results(base) and commands.compare_sides.is_results(head):
        measuring.refuse_given(
            "two results files are compared without measuring",
            "stack", "source", "client", "kernel", "base_source", "first_seed", "trials", "workers", "results",
            "budget",
        )  # fmt: skip
    scenario = options["profile"] if commands.compare_places.is_scenario(options["profile"]) else None
    measuring.refuse_without_scenario(scenario, None, options["flow"])
    first, second = (commands.compare_sides.sysctls(given) if given else () for given in (base_sysctl, sysctl))
    chosen = commands.compare.CompareOptions(
        algorithms=algorithms, choice=choice, budget_s=commands.gate_budget.seconds(budget),
        sysctls=(first, second), **options,
    )  # fmt: skip
    comparison = commands.compare.compute(base, head, chosen, means)
    if target:
        commands.compare.write(comparison, target)
    finish(comparison, form, text.compare.show, [f"comparison: {target}"] if target else ())


COMMANDS = (compare,)

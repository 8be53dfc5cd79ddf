"""The `conformance` command: thin; each command calls one function of the engine and prints what it returns.

Exit statuses: 0 all conforms (or done), 1 something violates, 2 the user can mend it, 3 an error of emulator,
guest or adapter, 4 inconclusive or unsupported and nothing worse, 130 interrupted.
"""

import pathlib
import sys

import click
import rich.console
import rich.progress
import rich.text

from conformance import __version__
from conformance.model.errors import UserError

DEFAULT_RESULTS = "results/results.jsonl"
# No markup: what stacks, files and users say is text, whatever brackets it holds.
out = rich.console.Console(highlight=False, markup=False)
err = rich.console.Console(stderr=True, highlight=False, markup=False)


class Group(click.Group):
    """Shows a user's mistake as one line, never as a traceback."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except UserError as error:
            err.print(f"conformance: {error}", style="red", soft_wrap=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            err.print("conformance: interrupted; run the same command again to resume")
            ctx.exit(130)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="conformance")
def main():
    """Which congestion control does a TCP or QUIC stack really run?"""


@main.group()
def kernel():
    """Guest kernels: build and list."""


@kernel.command("build")
@click.argument("name", default="default")
@click.option("--source", help="Kernel source: folder, tarball, or a package such as linux-source-6.1.")
@click.option("--patch", "patches", multiple=True, type=click.Path(), help="Apply this patch first (repeatable).")
@click.option("--jobs", type=click.IntRange(1), help="Compile this many files at once (default: all cores).")
def kernel_build(name, source, patches, jobs):
    """Build a guest kernel and give it NAME; one that was built before is only found."""
    from conformance.kernel import build

    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=err) as bar:
        task = bar.add_task("kernel", total=None)
        shown = None

        def progress(done, total, what):
            nonlocal shown
            if what != shown and not err.is_terminal:
                err.print(f"kernel {name}: {what}")
            shown = what
            bar.update(task, description=f"kernel {name}: {what}", completed=done, total=total or None)

        built = build.build(name, source, patches, progress, jobs)
    out.print(f"kernel {built.name}: Linux {built.release}, {built.digest}, {built.binary}", soft_wrap=True)


@kernel.command("list")
def kernel_list():
    """List the guest kernels that are built."""
    from conformance.kernel import store

    found = store.kernels()
    if not found:
        out.print("no guest kernel is built; run `conformance kernel build`")
    for k in found:
        patches = f" + {', '.join(k.patches)}" if k.patches else ""
        out.print(f"{k.name:12} Linux {k.release:14} {k.digest}  {k.source}{patches}", soft_wrap=True)


@main.command()
@click.option("--lab", type=click.Choice(["virtual", "host"]), default="virtual", show_default=True)
@click.option("--kernel", "kernel_name", default="default", show_default=True)
def doctor(lab, kernel_name):
    """Check everything a run needs, and say how to mend what is missing."""
    from conformance import doctor as checks

    bad = 0
    for check in checks.run(lab, kernel_name):
        bad += not check.ok
        mark = ("ok   ", "green") if check.ok else ("BAD  ", "red")
        out.print(rich.text.Text.assemble(mark, check.what), soft_wrap=True)
        if not check.ok:
            out.print(f"     mend: {check.mend}", soft_wrap=True)
    sys.exit(2 if bad else 0)


def _options(function):
    """Options shared by every command that runs trials."""
    for option in reversed(
        [
            click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one."),
            click.option("--grid", default="full", show_default=True, help="full, 10mbps, or cells with commas."),
            click.option("--trials", default=5, show_default=True, type=int, help="Trials of each cell."),
            click.option("--lab", default="virtual", show_default=True, help="virtual or host."),
            click.option(
                "--kernel", "kernel_name", help="Guest kernel's name (default: the one that has the algorithm)."
            ),
            click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to."),
            click.option("--profile", default="atc25", show_default=True, help="All of a setting but its cell."),
            click.option("--queue", help="Replace the profile's queue: red, bfifo:1, fq_codel, ..."),
            click.option("--offload", type=click.Choice(["on", "off"]), help="Replace the profile's offload."),
            click.option("--transfer-s", type=float, help="Replace the profile's transfer length."),
            click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core)."),
        ]
    ):
        function = option(function)
    return function


@main.command()
@click.argument("algorithm")
@_options
def run(algorithm, stack, grid, trials, lab, kernel_name, results, profile, queue, offload, transfer_s, workers):
    """Measure ALGORITHM over a grid, and judge it where there is a zone for these settings."""
    from conformance import campaign

    overrides = {"queue": queue, "transfer_s": transfer_s, "offload": None if offload is None else offload == "on"}
    status = campaign.run(
        algorithm, stack=stack, grid=grid, trials=trials, lab=lab, kernel=kernel_name, results=results,
        profile=profile, overrides=overrides, workers=workers, console=out,
    )  # fmt: skip
    sys.exit(status)


@main.command()
@click.option("--cca", required=True, help="Congestion control to ask the stack for, by any name it knows.")
@click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one.")
@click.option("--lab", default="virtual", show_default=True, help="virtual or host.")
@click.option("--kernel", "kernel_name", help="Guest kernel's name (default: the one that has the algorithm).")
@click.option("--trials", default=3, show_default=True, type=int, help="Trials of each cell.")
@click.option("--first-seed", default=1, show_default=True, type=click.IntRange(1))
@click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to.")
@click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core).")
def identify(cca, stack, lab, kernel_name, trials, first_seed, results, workers):
    """Say which algorithm and version a stack's congestion control behaves like."""
    from conformance import identify as identification

    status = identification.run(
        cca, stack=stack, lab=lab, kernel=kernel_name, trials=trials, first_seed=first_seed, results=results,
        workers=workers, console=out,
    )  # fmt: skip
    sys.exit(status)


@main.command()
@click.argument("algorithms", nargs=-1, required=True)
@click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one.")
@click.option("--kernel", "kernel_name", help="Guest kernel's name (default: the one that has the algorithm).")
@click.option("--trials", default=5, show_default=True, type=int, help="Trials of each cell.")
@click.option("--first-seed", default=101, show_default=True, type=click.IntRange(1), help="Not the references' seeds.")
@click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to.")
@click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core).")
def cross(algorithms, stack, kernel_name, trials, first_seed, results, workers):
    """Measure each of ALGORITHMS and judge it by the zone of each: the diagonal should conform, nothing else."""
    from conformance import cross as crossing

    status = crossing.run(
        algorithms, stack=stack, kernel=kernel_name, trials=trials, first_seed=first_seed, results=results,
        workers=workers, console=out,
    )  # fmt: skip
    sys.exit(status)


@main.command("identify-check")
@click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one.")
@click.option("--trials", default=20, show_default=True, type=int, help="Identifications of each algorithm.")
@click.option("--first-seed", default=101, show_default=True, type=click.IntRange(1), help="Not the references' seeds.")
@click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to.")
@click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core).")
def identify_check(stack, trials, first_seed, results, workers):
    """Identify every known algorithm many times and count how often the answer is right."""
    from conformance import identify as identification

    status = identification.check(
        stack=stack, trials=trials, first_seed=first_seed, results=results, workers=workers, console=out
    )
    sys.exit(status)


@main.command()
@click.option("--cca", required=True, help="Congestion control, e.g. cubic or bbr.")
@click.option("--kernel", "kernel_names", multiple=True, help="Guest kernel; give two to compare them.")
@click.option("--sysctl", "sysctls", multiple=True, help="net.ipv4.NAME=VALUE[,...]; one is compared with the profile.")
@click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path of one.")
@click.option("--grid", default="full", show_default=True, help="full, 10mbps, or cells with commas.")
@click.option("--trials", default=10, show_default=True, type=click.IntRange(5), help="Trials of each cell and side.")
@click.option("--matters", default=0.01, show_default=True, help="Smallest difference of medians that counts.")
@click.option("--profile", default="atc25", show_default=True, help="All of a setting but its cell.")
@click.option("--results", default=DEFAULT_RESULTS, show_default=True, help="Results file to add to.")
@click.option("--workers", type=click.IntRange(1), help="Guests at a time (default: one for each core).")
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path), help="Also write it here, as Markdown.")
def drift(cca, kernel_names, sysctls, stack, grid, trials, matters, profile, results, workers, target):
    """Compare two kernels, or two sysctl settings: which cells moved, beyond noise?"""
    from conformance import drift as comparison

    sides = comparison.variants(kernel_names, sysctls)
    status = comparison.run(
        cca, sides, stack=stack, grid=grid, trials=trials, results=results, workers=workers, profile=profile,
        matters=matters, target=target, console=out,
    )  # fmt: skip
    sys.exit(status)


@main.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option(
    "--out", "target", default="report/index.html", show_default=True, type=click.Path(path_type=pathlib.Path)
)
@click.option("--terminal/--no-terminal", default=True, help="Also draw the heatmaps in the terminal.")
def report(results, target, terminal):
    """Heatmaps of RESULTS, their zones and the differences: in the terminal and as one HTML page."""
    from conformance.reporting import html, tables
    from conformance.reporting import terminal as drawn

    heatmaps = tables.from_files(results or (pathlib.Path(DEFAULT_RESULTS),))
    if terminal:
        drawn.show(heatmaps, out)
    html.write(heatmaps, target)
    out.print(f"report: {target.absolute()}", soft_wrap=True)


@main.group()
def adapter():
    """Adapters: list them, check one against the contract."""


@adapter.command("list")
def adapter_list():
    """List the adapters that ship, and which algorithms each offers; builds and runs nothing."""
    from conformance import paths, schema

    for path in sorted(paths.data("adapters").glob("*/adapter.json")):
        data = schema.load("adapter", path)
        offered = ", ".join(data.get("algorithms") or data.get("kernel_algorithms") or ["a client only"])
        out.print(f"{data['name']:12} {data['title']}: {offered}", soft_wrap=True)


@adapter.command("check")
@click.argument("stack")
@click.option("--cca", help="Algorithm to try it with (default: the first it offers).")
@click.option("--kernel", "kernel_name", help="Guest kernel's name (default: the one that has the algorithm).")
def adapter_check(stack, cca, kernel_name):
    """Try STACK (a name, or the path of an adapter.json) against every clause of the contract."""
    from conformance import check

    sys.exit(check.run(stack, cca, kernel_name, out))


@main.group()
def zones():
    """Zone specs: check, derive, choose smoke cells."""


@zones.command("check")
@click.argument("files", nargs=-1, type=click.Path())
def zones_check(files):
    """Check zone files (all that ship, if none is named) against schema and invariants."""
    from conformance import specs

    for path in files or specs.zone_files("*"):
        zone = specs.zone(path)
        out.print(f"ok  {zone.id}: {len(zone.cells)} cells, {path}", soft_wrap=True)


@zones.command("derive")
@click.argument("results", type=click.Path(path_type=pathlib.Path))
@click.option("--algorithm", required=True)
@click.option("--version-text", required=True, help="Which version of the algorithm, with its document.")
@click.option(
    "--metric",
    type=click.Choice(["utilization", "lost_pct", "queue_mean_bdp"]),
    default="utilization",
    show_default=True,
)
@click.option("--profile", default="atc25", show_default=True, help="Which of the results' profiles.")
@click.option("--out", "target", required=True, type=click.Path(path_type=pathlib.Path))
def zones_derive(results, algorithm, version_text, metric, profile, target):
    """Derive the zone of ALGORITHM from the reference runs in RESULTS."""
    from conformance import derive

    zone = derive.derive_file(results, algorithm, version_text, target, metric, profile)
    out.print(f"zone {zone.id}: {len(zone.cells)} cells, {len(zone.smoke)} smoke cells, {target}", soft_wrap=True)


@zones.command("smoke")
def zones_smoke():
    """Choose the smoke cells of all zones anew: those that tell each from the others."""
    from conformance import derive

    for zone in derive.choose_smoke_cells():
        out.print(f"zone {zone.id}: {', '.join(cell.id for cell in zone.smoke) or 'none'}", soft_wrap=True)


@zones.command("apart")
@click.argument("algorithms", nargs=-1, required=True)
def zones_apart(algorithms):
    """List the cells that tell ALGORITHMS apart: where no value is permitted to both of a pair."""
    from conformance import derive

    for first, second, metric, n, cells in derive.apart(algorithms):
        names = ", ".join(f"{cell.id} ({width:.1f})" for cell, width in cells)
        out.print(
            f"{first} and {second}, {metric}: {len(cells)} of {n} cells{': ' if cells else ''}{names}", soft_wrap=True
        )


@main.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=pathlib.Path))
@click.option("--published", type=click.Path(path_type=pathlib.Path), help="CSV of published cells to compare with.")
def fidelity(results, published):
    """Compare RESULTS with the published cells: bias and rms by algorithm."""
    from conformance import fidelity as compare

    compare.show(results or (pathlib.Path(DEFAULT_RESULTS),), published, out)


@main.command()
@click.option("--algorithm", default="cubic", show_default=True)
@click.option("--stack", default="linux-tcp", show_default=True)
@click.option("--kernel", "kernel_name", help="Guest kernel's name (default: the one that has the algorithm).")
@click.option("--trials", default=3, show_default=True, type=click.IntRange(2))
def bench(algorithm, stack, kernel_name, trials):
    """Measure what trials cost: wall seconds, and virtual seconds per wall second, by cell."""
    from conformance import benchmark

    benchmark.run(algorithm, stack, kernel_name, trials, out)

"""`conformance split`: predict where a connection-splitting proxy would help, and measure what it brings."""

import functools
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from conformance import commands
from conformance.cli import measuring
from conformance.cli.base import FORMAT, SECONDS, finish, out_path
from conformance.engine.benches import Choice, Means
from conformance.model.errors import UserError
from conformance.model.networks.legacy import QUEUE_SIZED_BY
from conformance.model.networks.proxy import PEPSAL, SPLITTER
from conformance.reporting import text
from conformance.results.store import DEFAULT_RESULTS
from conformance.support import extras

_PROXY = click.option(
    "--proxy", type=click.Choice([SPLITTER, PEPSAL, "none"]), default=SPLITTER, show_default=True,
    help="What splits connections: the suite's own proxy, pepsal if it is on PATH, or nothing.",
)  # fmt: skip
_QUEUE_SIZED_BY = click.option(
    "--queue-sized-by", type=click.Choice(QUEUE_SIZED_BY), default="path", show_default=True,
    help="Whose bandwidth-delay product sizes queues: the whole path's (as published) or each segment's.",
)  # fmt: skip
_PROFILE = click.option("--profile", help="Queue, offload and so on: all but the path (default: atc25).")


def _options(trials: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that both commands take."""
    options = (
        measuring.with_choice("stack", "kernel"), _PROXY, _QUEUE_SIZED_BY, measuring.trials(trials),
        measuring.with_means(), _PROFILE, FORMAT,
    )  # fmt: skip

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return functools.reduce(lambda command, option: option(command), reversed(options), function)

    return decorate


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
    help="Count transfers that timed out at their upper bound; or, as the published study does, only if a cell has no "
    "others, as zero.",
)  # fmt: skip
@click.option("--timeout-s", type=SECONDS, help="Treat longer transfers as if they had timed out after this long.")
@out_path("Also draw the bars: FILE.svg or .png.")
@FORMAT
def analyze(
    results: Sequence[pathlib.Path], algorithms: Sequence[str], stack: str | None, kernel: str | None,
    profile: str | None, transfer_s: float | None, target: pathlib.Path | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Predict which paths would gain from a proxy.

    Predicts from end-to-end RESULTS, and sorts paths of two segments into classes.
    """
    if target is not None and target.suffix not in text.split.FIGURES:
        raise UserError(
            f"--out {target}: unknown kind of figure", f"use a name that ends in {' or '.join(text.split.FIGURES)}"
        )
    if target is not None:
        extras.need("figures")
    chosen = commands.split_analyze.Selection(
        algorithms=tuple(algorithms), stack=stack, kernel=kernel, profile=profile, transfer_s=transfer_s
    )
    analysis = commands.split_analyze.compute(results or (pathlib.Path(DEFAULT_RESULTS),), chosen=chosen, **options)
    if target is not None:
        text.split.draw(analysis.predictions, analysis.transfer_s, target)
    finish(analysis, form, text.split.show, [f"figure: {target}"] if target else ())


@split.command("measure")
@click.argument("algorithm", metavar="ALGORITHM")
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@_options(trials=5)
@measuring.FIRST_SEED
@click.option("--to-client", help="The proxy's congestion control towards the client (default: ALGORITHM).")
@click.option("--to-server", help="The proxy's congestion control towards the server (default: ALGORITHM).")
@click.option("--send-buffer-bytes", type=int, help="The proxy's SO_SNDBUF.")
@click.option("--receive-buffer-bytes", type=int, help="The proxy's SO_RCVBUF.")
@click.option("--unsent-bytes", type=int, help="The proxy's TCP_NOTSENT_LOWAT.")
@click.option(
    "--back-pressure-bytes", type=int, help="Most bytes that the proxy reads ahead of its receiver's acknowledgements."
)
@click.option("--queue", help="Replace the profile's queue: red, bfifo:1, fq_codel, ...")
@click.option("--offload", type=click.Choice(["on", "off"]), help="Replace the profile's offload.")
@click.option("--transfer-s", type=SECONDS, help="Replace the profile's transfer length.")
def measure(
    choice: Choice, means: Means, algorithm: str, paths: Sequence[str], queue: str | None, offload: str | None,
    transfer_s: float | None, form: str, **options: Any,
) -> None:  # fmt: skip
    """Measure throughput over split paths.

    A PATH has the form 10mbps-20ms-0pct+50mbps-60ms-1pct, with the client's segment
    first. Without PATH, the six representative paths of the zones are measured.
    """
    names = (
        "to_client", "to_server", "send_buffer_bytes", "receive_buffer_bytes", "unsent_bytes", "back_pressure_bytes",
    )  # fmt: skip
    measured = commands.split_measure.compute(
        algorithm, paths, choice, means, proxy_options={name: options.pop(name) for name in names},
        overrides={"queue": queue, "offload": None if offload is None else offload == "on", "transfer_s": transfer_s},
        **options,
    )  # fmt: skip
    finish(measured, form, text.split.show_paths_measured)


@click.group("split")
def dev_split() -> None:
    """Test predictions of splitting."""


@dev_split.command("accuracy")
@click.argument("algorithms", nargs=-1, required=True, metavar="ALGORITHM...")
@_options(trials=20)
@out_path("Folder to write figures to.")
def accuracy(
    choice: Choice, means: Means, algorithms: Sequence[str], target: pathlib.Path | None, form: str, **options: Any
) -> None:
    """Compare predicted with measured throughput.

    Each ALGORITHM is measured over several splits of one path.
    """
    if target is not None:
        extras.need("figures")
    comparison = commands.split_accuracy.compute(algorithms, choice, means, **options)
    figures: Iterable[pathlib.Path] = ()
    if target is not None:
        from conformance.reporting import split_charts

        figures = split_charts.write(comparison.panels, target)
    finish(comparison, form, text.split.show_accuracy, [f"figure: {path}" for path in figures])


COMMANDS = (split,)
DEV_COMMANDS = (dev_split,)

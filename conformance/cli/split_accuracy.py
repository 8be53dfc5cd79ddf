"""Commands that measure split paths. They belong to the group `split`."""

import functools
import pathlib
import sys

import click

from conformance.cli import measuring
from conformance.cli.base import SECONDS, TRIALS, out
from conformance.engine.benches import Choice
from conformance.model.setting import PEPSAL, QUEUE_SIZED_BY, SPLITTER


def _options(trials):
    """What both commands take; they get `choice`."""

    def decorate(function):
        @functools.wraps(function)
        def command(stack, kernel, **options):
            return function(choice=Choice(stack=stack, kernel=kernel), **options)

        for option in reversed((
            click.option("--stack", default="linux-tcp", show_default=True, help="Adapter's name, or path; TCP only."),
            click.option("--kernel", help="Guest kernel's name (default: the one that has the algorithm)."),
            click.option(
                "--proxy", type=click.Choice([SPLITTER, PEPSAL, "none"]), default=SPLITTER, show_default=True,
                help="What splits connections: the suite's own, pepsal where one is on PATH, or nothing.",
            ),
            click.option(
                "--queue-sized-by", type=click.Choice(QUEUE_SIZED_BY), default="path", show_default=True,
                help="Whose bandwidth-delay product sizes queues: the whole path's (as published) or each segment's.",
            ),
            click.option("--trials", default=trials, show_default=True, type=TRIALS),
            measuring.RESULTS,
            click.option("--profile", help="All of a setting but its path (default: atc25)."),
            measuring.WORKERS,
        )):  # fmt: skip
            command = option(command)
        return command

    return decorate


@click.command()
@click.argument("algorithms", nargs=-1, required=True, metavar="CCA...")
@_options(trials=20)
@click.option("--out", "target", type=click.Path(path_type=pathlib.Path), help="Folder for the figures.")
def accuracy(algorithms, choice, **options):
    """Predicted against measured split throughput of CCA..., over splits of one path."""
    from conformance.commands import split_accuracy

    sys.exit(split_accuracy.run(algorithms, choice, console=out, **options))


@click.command()
@click.argument("algorithm", metavar="CCA")
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@_options(trials=5)
@click.option("--to-client", help="The proxy's congestion control towards the client (default: CCA).")
@click.option("--to-server", help="The proxy's congestion control towards the server (default: CCA).")
@click.option("--send-buffer-bytes", type=int, help="The proxy's SO_SNDBUF.")
@click.option("--receive-buffer-bytes", type=int, help="The proxy's SO_RCVBUF.")
@click.option("--unsent-bytes", type=int, help="The proxy's TCP_NOTSENT_LOWAT.")
@click.option(
    "--back-pressure-bytes", type=int, help="Most that the proxy takes ahead of its receiver's acknowledgements."
)
@click.option("--queue", help="Replace the profile's queue: red, bfifo:1, fq_codel, ...")
@click.option("--offload", type=click.Choice(["on", "off"]), help="Replace the profile's offload.")
@click.option("--transfer-s", type=SECONDS, help="Replace the profile's transfer length.")
def measure(algorithm, paths, choice, queue, offload, transfer_s, **options):
    """Throughput of CCA over PATH..., such as 10mbps-20ms-0pct+50mbps-60ms-1pct, the client's segment first.

    Without PATH: over the six representative paths that zones have.
    """
    from conformance.commands import split_measure

    names = (
        "to_client", "to_server", "send_buffer_bytes", "receive_buffer_bytes", "unsent_bytes", "back_pressure_bytes",
    )  # fmt: skip
    status = split_measure.run(
        algorithm, paths, choice, proxy_options={name: options.pop(name) for name in names},
        overrides={"queue": queue, "offload": None if offload is None else offload == "on", "transfer_s": transfer_s},
        console=out, **options,
    )  # fmt: skip
    sys.exit(status)


COMMANDS = (accuracy, measure)

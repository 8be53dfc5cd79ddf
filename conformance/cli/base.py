"""The command's root: how it talks, and how it shows a user's mistake."""

import math

import click

from conformance import __version__
from conformance.model.errors import UserError
from conformance.model.verdict import MOST_TRIALS
from conformance.support.console import Console, one_line

out = Console()
err = Console(stderr=True)


class Finite(click.FloatRange):
    """A number that can be counted with: neither infinite nor `nan`, which is within any range."""

    def convert(self, value, param, ctx):
        found = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is not a finite number", param, ctx)
        return found


TRIALS = click.IntRange(1, MOST_TRIALS)
#: a length of time
SECONDS = Finite(0, min_open=True)
#: what fits into a trial's seed, and beyond
SEED = click.IntRange(1, 2**31)


class Group(click.Group):
    """Shows a user's mistake as one line, never as a traceback."""

    def invoke(self, ctx):
        try:
            return super().invoke(ctx)
        except UserError as error:
            err.print(f"conformance: {one_line(str(error))}", style="red", soft_wrap=True)
            ctx.exit(2)
        except KeyboardInterrupt:
            err.print("conformance: interrupted; run the same command again to resume")
            ctx.exit(130)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="conformance")
def main():
    """Which congestion control does a TCP or QUIC stack really run?"""

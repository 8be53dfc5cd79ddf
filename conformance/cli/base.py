"""The command's root: how it talks, and how it shows a user's mistake."""

import click
import rich.console

from conformance import __version__
from conformance.model.errors import UserError

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

"""`conformance proxy`: test a connection-splitting proxy itself."""

import click

from conformance.cli.base import FORMAT, finish
from conformance.model.networks.proxy import PEPSAL, SPLITTER


@click.group()
def proxy() -> None:
    """Test a connection-splitting proxy (docs/proxy.md)."""


@proxy.command("check")
@click.option(
    "--proxy", "name", type=click.Choice([SPLITTER, PEPSAL]), default=None,
    help="Proxy to try  [default: the suite's own, and pepsal if it is on PATH]",
)  # fmt: skip
@FORMAT
def check(name: str | None, form: str) -> None:
    """Kill and restart a proxy, take its links down, and do the same end to end.

    Needs no guest and no root: it runs in network namespaces of an unprivileged user, for about a minute.
    """
    from conformance.commands import proxy_check
    from conformance.reporting.text import proxy as proxy_text

    finish(proxy_check.compute(name), form, proxy_text.show_checked)


DEV_COMMANDS = (proxy,)

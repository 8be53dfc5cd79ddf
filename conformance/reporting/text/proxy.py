"""Show the result of `conformance dev proxy check` in a terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import rich.console
import rich.text

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.proxy_check import Checked, ProxyRow

_WHAT = {"killed": "killed", "restarted": "killed and restarted", "undelivered": "killed when full", "down": "without"}
_HOLDS = {True: "holds", False: "does not hold", None: ""}
_STYLES = {True: "green", False: "red", None: ""}


def show_checked(checked: "Checked", console: rich.console.Console) -> None:
    """Show a line for each case: what was seen, and whether that is as required."""
    for row in checked.rows:
        case = " ".join(filter(None, [_WHAT[row.case], row.about]))
        line = rich.text.Text(f"{case}, {row.via}: {row.trouble or words(row)}")
        if row.required is not None:
            line.append(f"; {row.required}: ")
            line.append(_HOLDS[row.holds], _STYLES[row.holds])
        console.print(line, soft_wrap=True)
    if checked.left_out is not None:
        console.print(rich.text.Text(f"not tried: {checked.left_out}"), soft_wrap=True)


def words(row: "ProxyRow") -> str:
    """Return what was seen in a case, in words."""
    observed = row.observed
    match row.case:
        case "killed":
            ends = "; ".join(_end(name, observed) for name in ("client", "server"))
            return f"{ends}; the stream goes on" if observed["goes_on"] else ends
        case "restarted":
            meanwhile = "served" if observed["served_meanwhile"] else "refused"
            served = "never" if observed["served_s"] is None else f"after {observed['served_s']:.2f} s"
            client, server = observed["client_how"], observed["server_how"]
            old = "goes on" if client == server == "nothing" else f"ends (client: {client}, server: {server})"
            return f"new connections {meanwhile} while it is gone, served {served}; the old one {old}"
        case "undelivered":
            return (
                f"{observed['undelivered_bytes']} of {observed['acked_bytes']} bytes acknowledged but never delivered"
            )
    resumed = (
        "never goes on" if observed["resumed_s"] is None else f"goes on {observed['resumed_s']:.2f} s after it is back"
    )
    return f"{resumed}, {'whole' if observed['whole'] else 'not whole'}"


def _end(name: str, observed: Mapping[str, Any]) -> str:
    noticed = observed[f"{name}_noticed_s"]
    return f"{name}: notices nothing" if noticed is None else f"{name}: {observed[f'{name}_how']} after {noticed:.2f} s"

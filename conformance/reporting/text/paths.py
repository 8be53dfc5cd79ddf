"""Show the results of `split measure` in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.support.console import count

if TYPE_CHECKING:
    from conformance.commands.split_measure import MeasuredPath, MeasuredPaths


def show_measured(measured: "MeasuredPaths", console: rich.console.Console) -> None:
    """Show the throughput over each path, then what kept paths from being measured."""
    how = "no proxy" if measured.proxy is None else f"proxy {measured.proxy}"
    table = rich.table.Table(
        title=f"{measured.scheme.id}, {how}, {count(measured.trials, 'trial')}", title_justify="left"
    )
    for name in ("path, client's segment first", "Mbit/s: median", "smallest", "largest", "utilization"):
        table.add_column(name, justify="left" if name.startswith("path") else "right", overflow="fold")
    for path in measured.paths:
        table.add_row(path.setting.id, *_figures(path))
    console.print(table)
    for text in sorted({f"{path.setting.id}: {why.message}" for path in measured.paths for why in path.trouble}):
        console.print(text, soft_wrap=True)


def _figures(path: "MeasuredPath") -> tuple[str, ...]:
    if path.bad:
        return (str(path.bad.outcome),)
    rates = path.rates
    assert rates is not None
    # A transfer that timed out gives only an upper bound on the rate.
    mark = "< " if rates.timed_out else ""
    return (
        f"{mark}{rates.median:.3f}", f"{mark}{rates.smallest:.3f}", f"{rates.largest:.3f}",
        f"{mark}{rates.utilization:.3f}",
    )  # fmt: skip

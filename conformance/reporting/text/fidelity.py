"""Show how our figures differ from the published ones (`conformance dev fidelity`) in a terminal."""

from typing import TYPE_CHECKING

import rich.console
import rich.table

from conformance.support.console import table

if TYPE_CHECKING:
    from conformance.commands.fidelity import Fidelity


def show(fidelity: "Fidelity", console: rich.console.Console) -> None:
    """Show bias and rms by scheme and bandwidth, then whether the limits are kept."""
    numbers, rows = ("bandwidth", "cells", "bias", "rms", "largest difference"), []
    for line in fidelity.lines:
        where = "all" if line.bandwidth_mbps is None else f"{line.bandwidth_mbps:g} Mbit/s"
        largest = f"{line.worst:+.3f} at {line.worst_cell.id}"
        rows.append((line.scheme, where, str(line.cells), f"{line.bias:+.4f}", f"{line.rms:.4f}", largest))
    title = "utilization: ours minus published (ATC'25)"
    console.print(table(("scheme", *numbers), rows, numbers, whole=("scheme",), title=title))
    limits = fidelity.limits
    for scheme, cells in dict.fromkeys((limit.scheme, limit.cells) for limit in limits):
        said = [
            f"{limit.name} {limit.value:.4f} {'within' if limit.kept else 'ABOVE'} the limit of {limit.limit}"
            for limit in limits
            if limit.scheme == scheme
        ]
        console.print(f"{scheme}, {cells} cells: {'; '.join(said)}")

"""Show what one traced trial left (`conformance trace`) in a terminal."""

from typing import TYPE_CHECKING

import rich.console

from conformance.model.trials.trial import Outcome

if TYPE_CHECKING:
    from conformance.commands.trace import KeptTrace


def show(traced: "KeptTrace", console: rich.console.Console) -> None:
    """Show the captures, the other files, and what was measured."""
    for name, (frames, lost) in sorted(traced.captured.items()):
        console.print(f"{name}.pcap: {frames} frames" + (f", {lost} more did not fit" if lost else ""))
    for other in traced.files:
        console.print(f"{other.file}: {other.bytes} bytes")
    measurement = traced.measurement
    if measurement.outcome in (Outcome.OK, Outcome.TIMEOUT):
        virtual_s = measurement.metrics["virtual_s"]
        console.print(f"utilization {measurement.utilization:.4f}, {virtual_s:.2f} s; {traced.target}")
    else:
        console.print(f"{measurement.outcome}: {measurement.message}", soft_wrap=True)

"""Explain why a guest ended before its work was done, and which limit to raise."""

import pathlib
import signal

from conformance.lab import allowance
from conformance.model.errors import UserError
from conformance.support import limits

#: how many processes users are told to allow if their number is limited: two guests take fewer than 40, stacks with
#: threads more
LEAST_PROCESSES = 64


def too_few_processes() -> UserError:
    """Return the error of a guest that was refused a process, and would wait forever."""
    return UserError(
        f"a guest cannot start its processes: this container allows {limits.most_processes()} at once",
        f"allow {LEAST_PROCESSES} or more, with --pids-limit, or use fewer --workers",
    )


def why_it_ended(status: int | None, scratch: pathlib.Path, killed_before: int | None = None) -> str:
    """Return a sentence about a guest that ended with this exit status, which is negative if a signal killed it.

    `killed_before`: limits.killed_for_memory() when the guest started; None if it was not read.
    """
    try:
        words = (scratch / "console.log").read_text(errors="replace").strip().splitlines()
    except OSError:
        words = []
    telling = [w for w in words if "panic" in w.lower() or "No space left" in w or "Error" in w] or words
    said = f"; its last words: {''.join(c if c.isprintable() else ' ' for c in telling[-1])[:200]}" if telling else ""
    killed = status is not None and status < 0
    ended = f"was killed by signal {-status} ({signal.Signals(-status).name})" if killed and status else (
        f"ended with status {status} before its trials were done"
    )  # fmt: skip
    if killed_before is not None and limits.killed_for_memory() > killed_before:
        return f"memory was short, and the guest {ended}: {allowance.mend()}"
    return f"the guest {ended}{said}{'; run the cell again' if killed else ''}"

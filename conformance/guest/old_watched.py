"""Run a trial while its packets are captured, and keep what they show.

Capturing makes no system call while the trial runs, so it does not change the trial.
"""

from __future__ import annotations

import dataclasses
import time

from conformance.guest.capture import HEAD_BYTES, HEADS_BLOCK_BYTES, Capture
from conformance.guest.trial import run_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from conformance.guest.seen import TrialFacts
    from conformance.guest.stage import Stage, Transfer
    from conformance.guest.topology import Interface

#: packets whose frames are not longer than this many bytes do not count; a pure acknowledgement is shorter
_LEAST_BYTES = 100
_SOURCE = slice(26, 30)


def run_watched(
    stage: Stage, transfer: Transfer, tap: Interface, examine: Callable[[Capture], dict[str, Any]]
) -> TrialFacts:
    """Run one trial as run_trial() does, and add the facts that `examine` finds in a capture at `tap`. Raises Fault."""
    epoch_ns = int(time.time()) * 1_000_000_000
    node = stage.net[tap.node]
    capture = Capture(node, tap.name, transfer.transfer_bytes, epoch_ns, HEAD_BYTES, HEADS_BLOCK_BYTES)
    try:
        facts = run_trial(stage, transfer)
        if facts.transfer is None:
            return facts
        found = examine(capture)
    finally:
        capture.close()
    return dataclasses.replace(facts, transfer=dataclasses.replace(facts.transfer, **found))


def packets(capture: Capture) -> Iterator[tuple[int, int, bytes]]:
    """Yield (nanoseconds, bytes, source address) of each packet that is no pure acknowledgement."""
    for seconds, nanoseconds, length, frame in capture.frames():
        if length > _LEAST_BYTES:
            yield seconds * 10**9 + nanoseconds, length, frame[_SOURCE]

"""Define what a room is: a place where trials are run. Rooms are virtual.py and engine/workers.py."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from conformance.lab.adapter import Adapter
from conformance.model.trials.trial import Measurement, Trial

#: Batches of trials: each batch is of one cell, and all share the scheme and the profile. A room takes the next batch
#: when it is about to need it, since that may depend on what was measured before. An empty batch says that no more are
#: known until those that were taken are done.
Batches = Iterable[Sequence[Trial]]


#: The name in each trial of where it ran. All rooms give the same results, so they share it.
ROOM = "virtual"


class Room(Protocol):
    """A place where trials are run."""

    def run(self, adapter: Adapter, batches: Batches, cancelled: threading.Event) -> Iterator[Measurement]:
        """Yield one Measurement for each trial, as they come, until all are made or `cancelled` is set.

        What goes wrong in a room is an error in the measurements of the cell in which it happened. Raises UserError
        only for what the user can fix.
        """


def handfuls(batches: Batches) -> Iterator[list[Sequence[Trial]]]:
    """Yield the batches before each empty one as a list, for rooms that take several cells at a time."""
    taken: list[Sequence[Trial]] = []
    for trials in batches:
        if trials:
            taken.append(trials)
        elif taken:
            yield taken
            taken = []
    if taken:
        yield taken


class Supply:
    """Batches to come. Those that were taken and given back come first."""

    def __init__(self, batches: Batches) -> None:
        self._given_back: list[Sequence[Trial]] = []
        self._rest = iter(batches)

    def take(self) -> Sequence[Trial] | None:
        """Return the next batch; None if there is none at present."""
        return self._given_back.pop(0) if self._given_back else next(self._rest, None) or None

    def give_back(self, batches: Sequence[Sequence[Trial]]) -> None:
        """Take batches back; they are the next to be taken."""
        self._given_back[:0] = batches

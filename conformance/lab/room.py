"""What a room is: a place where trials are run. There are three: virtual.py, host.py, and engine/workers.py."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from conformance.lab.adapter import Adapter
from conformance.model.trial import Measurement, Trial

#: Trials of one cell each, which share the scheme and the profile. A room takes the next when it is about to need it;
#: it may depend on what was measured before. An empty batch says that no more are known until what was taken is done.
Batches = Iterable[Sequence[Trial]]


class Room(Protocol):
    """A place where trials are run. Its `name` is part of each trial: rooms of one name give the same results."""

    @property
    def name(self) -> str: ...

    def run(self, adapter: Adapter, batches: Batches, cancelled: threading.Event) -> Iterator[Measurement]:
        """Yield one Measurement for each trial, as they come, until all are made or `cancelled` is set.

        What goes wrong in a room is an error in the measurements of the cell that it happened in. Raises UserError
        only for what the user can mend.
        """


def handfuls(batches: Batches) -> Iterator[list[Sequence[Trial]]]:
    """Yield what there is up to each empty batch, as a list: for rooms that take several cells at a time."""
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
    """Batches to come, and those that were taken and given back: these come first."""

    def __init__(self, batches: Batches) -> None:
        self._given_back: list[Sequence[Trial]] = []
        self._rest = iter(batches)

    def take(self) -> Sequence[Trial] | None:
        """Return the next batch; None where there is none now."""
        return self._given_back.pop(0) if self._given_back else next(self._rest, None) or None

    def give_back(self, batches: Sequence[Sequence[Trial]]) -> None:
        """Take batches back, for the next that asks."""
        self._given_back[:0] = batches

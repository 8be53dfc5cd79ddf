"""What a room is: a place where trials are run. There are three: virtual.py, host.py, and engine/workers.py."""

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

from conformance.lab.adapter import Adapter
from conformance.model.trial import Measurement, Trial

#: trials of one cell each, which share the scheme and the profile
Batches = Sequence[Sequence[Trial]]


class Room(Protocol):
    """A place where trials are run. Its `name` is part of each trial: rooms of one name give the same results."""

    @property
    def name(self) -> str: ...

    def run(self, adapter: Adapter, batches: Batches, cancelled: threading.Event) -> Iterator[Measurement]:
        """Yield one Measurement for each trial, as they come, until all are made or `cancelled` is set.

        What goes wrong in a room is an error in the measurements of the cell that it happened in. Raises UserError
        only for what the user can mend.
        """

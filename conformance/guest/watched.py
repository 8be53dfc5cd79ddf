"""Watch the packets of a trial, and keep what they show instead of the packets.

Capturing makes no system call while the trial runs, so it does not change the trial.
"""

from __future__ import annotations

import dataclasses
import socket

from conformance.guest import bursts, exchange
from conformance.guest.capture import HEAD_BYTES, HEADS_BLOCK_BYTES, Capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.guest.network_job import Detail, TrialJob
    from conformance.guest.seen import DetailSeen
    from conformance.guest.stage import Stage

#: packets whose frames are not longer than this many bytes do not count; a pure acknowledgement is shorter
_LEAST_BYTES = 100
_SOURCE = slice(26, 30)


class Watched:
    """A capture of a flow that is recorded in detail, for its bursts or its exchange. Call `examined()`."""

    def __init__(self, stage: Stage, trial_job: TrialJob, detail: Detail) -> None:
        server, client = stage.place.senders[trial_job.tested], stage.place.receivers[trial_job.tested][trial_job.flow]
        self._detail, self._bytes = detail, trial_job.groups[trial_job.tested].flows[trial_job.flow].bytes
        self._names = {socket.inet_aton(server.address): "server", socket.inet_aton(client.address): "client"}
        # Where the server's packets enter, before any queue; or where what comes has passed all queues, and what goes
        # has not entered any.
        port = server.port if detail.bursts else client.port
        node = stage.net[port.node]
        self.capture = Capture(node, port.name, self._bytes, most_bytes=HEAD_BYTES, block_bytes=HEADS_BLOCK_BYTES)

    @classmethod
    def of(cls, stage: Stage, trial_job: TrialJob) -> Watched | None:
        """Return what watches a trial; None if nothing is to be watched."""
        detail = trial_job.detail
        return None if detail is None or not (detail.bursts or detail.exchange) else cls(stage, trial_job, detail)

    def examined(self, record: DetailSeen) -> DetailSeen:
        """Return what was seen of a trial, with what its packets show."""
        passed = self._packets()
        if self._detail.bursts:
            sent = ((at_ns, size) for at_ns, size, source in passed if source == "server")
            burst_lengths = bursts.lengths(sent, self._detail.rate_mbps)
            return dataclasses.replace(record, bursts=bursts.summary(burst_lengths, self.capture.unseen()))
        every = list(passed)
        times = None if self.capture.unseen() else exchange.exchange(every, self._bytes)
        return dataclasses.replace(record, exchange=times)

    def _packets(self) -> Iterator[tuple[int, int, str | None]]:
        """Yield (nanoseconds, bytes, sender) of each packet that is no pure acknowledgement."""
        for seconds, nanoseconds, length, frame in self.capture.frames():
            if length > _LEAST_BYTES:
                yield seconds * 10**9 + nanoseconds, length, self._names.get(frame[_SOURCE])

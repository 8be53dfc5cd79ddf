"""Estimate how much memory a guest takes, and let each guest hold an allowance of memory while it lives.

A guest's memory is a file that grows and never shrinks. Control groups that limit memory count it, and a guest that
finds no more memory is killed. So the guests of this process together take no more than the process may use. A guest
that does not fit alongside others waits for them; one that does not fit alone runs alone, and may be killed (`mend`).

Other processes with the same limit are not seen. If memory is not limited, no guest waits.
"""

import contextlib
import threading
from collections.abc import Iterator

from conformance.lab import job
from conformance.model.errors import UserError
from conformance.model.trials.trial import Trial
from conformance.support import limits

_GUEST_MB = limits.WORKER_MB
#: Memory in MB of a guest whose flows share a network, and of each flow of the stack in it, with its server and client.
#: Eight guests of quinn's smoke points, with one to nine flows, came to between 86 and 168 MB, regardless of the number
#: of flows.
_NETWORK_MB, _STACK_FLOW_MB = 168, 4
_WAIT_S = 0.2


def needed_mb(trial: Trial, trace: str | None = None, traced: job.FlowOf | None = None) -> int:
    """Return the most memory that a guest takes for a trial, in units of 2^20 bytes.

    The figures were measured: see docs/containers.md. `trace`, `traced`: as in job.write().
    """
    setting = trial.setting
    own_mb = _GUEST_MB
    if not job.is_detailed(setting):
        own_mb = _NETWORK_MB + round(job.network_mb(setting.network, _STACK_FLOW_MB))
    return own_mb + job.captures_mb(setting, trace, traced)


class Allowance:
    """Memory for guests, in units of 2^20 bytes, lent in the order of the requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[object] = []
        self._lent: dict[object, int] = {}

    @contextlib.contextmanager
    def hold(self, needed_mb: int, cancelled: threading.Event | None = None) -> Iterator[None]:
        """Hold `needed_mb` during the block; wait until it is free, or until no other guest holds any.

        Raises UserError if `cancelled` is set first.
        """
        me = object()
        with self._changed:
            self._waiting.append(me)
            try:
                while not self._is_next(me, needed_mb):
                    if cancelled is not None and cancelled.is_set():
                        raise UserError("interrupted while waiting for memory")
                    self._changed.wait(_WAIT_S)
                self._lent[me] = needed_mb
            finally:
                self._waiting.remove(me)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                del self._lent[me]
                self._changed.notify_all()

    @property
    def lent_mb(self) -> int:
        """The memory that is held now, in units of 2^20 bytes."""
        return sum(self._lent.values())

    def _is_next(self, me: object, needed_mb: int) -> bool:
        most = limits.guests_mb()
        if self._waiting[0] is not me:
            return False
        return most is None or not self._lent or self.lent_mb + needed_mb <= most


#: the allowance of all guests of this process
OURS = Allowance()


def mend() -> str:
    """Return what to do if a guest was killed because memory was short."""
    allowed, lent = limits.memory_mb() or 0, OURS.lent_mb
    wanted = max(lent + limits.OWN_MB, allowed + limits.WORKER_MB)
    return f"{allowed} MB are allowed here; allow {wanted} MB or more (a container's --memory), or use --workers 1"

"""Estimate how long the rest of some work will take, from the pace of what was done so far."""

import time
from collections.abc import Callable

#: how many pieces after the first must be completed before there is an estimate
_FEWEST = 5


class Pace:
    """Estimates the time that is left from the pace since the first piece of work was completed.

    The time before that is left out: a guest boots and a path is calibrated once, and multiplying this by the number of
    trials gave estimates twenty times too long.
    """

    def __init__(self, fewest: int = _FEWEST, clock: Callable[[], float] = time.monotonic) -> None:
        self._fewest, self._clock = fewest, clock
        self._first_s: float | None = None
        self._last_s = 0.0
        self._done = self._done_at_first = 0.0

    def reached(self, done: float) -> None:
        """Record that `done` pieces are completed by now. Pieces that cost no time must not be counted."""
        now = self._clock()
        if done <= self._done:
            return
        if self._first_s is None:
            self._first_s, self._done_at_first = now, done
        self._last_s, self._done = now, done

    def remaining_s(self, left: float) -> float | None:
        """Return the seconds that `left` further pieces will take, or None while too little is known."""
        since = self._done - self._done_at_first
        if self._first_s is None or since < self._fewest:
            return None
        return max((self._last_s - self._first_s) / since * left - (self._clock() - self._last_s), 0.0)

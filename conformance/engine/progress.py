"""Count how far a run is, and estimate the time left from the cost of trials, calibrations and guest starts so far."""

import collections
import threading
import time
from collections.abc import Callable, Collection, Iterable

from conformance.model.judging.question import Key
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support.console import count, duration

#: {transport: bytes of a transfer that costs as much as everything else in a trial} (docs/performance.md: "By
#: stack"). It scales the cost of long trials to short ones; no result depends on it.
FIXED_BYTES = {"tcp": 30_000_000, "udp": 4_000_000}
#: how many trials an estimate needs
_FEWEST = 2
#: wall seconds after which the measured number of trials at a time is used, as other runs may have the cores
_LONG_S = 30.0


class RunProgress:
    """Counts the trials of a run, which makes up to `threads` at a time; see FIXED_BYTES for `fixed_bytes`."""

    def __init__(
        self, threads: int = 1, fixed_bytes: float = FIXED_BYTES["tcp"], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = self.done = self.fresh = self.errors = 0
        #: settings that another run is measuring
        self.elsewhere = 0
        self._threads, self._fixed_bytes, self._clock = threads, fixed_bytes, clock
        self._began_s = clock()
        self._left: collections.Counter[Key] = collections.Counter()
        self._begun: set[Key] = set()
        #: {key: the trials that it will need after its present look, on average}
        self._further: dict[Key, float] = {}
        #: number of trials made; seconds that they, calibrations and starts of guests took; sum of _cost of the trials
        self._made, self._trials_s, self._calibrations_s, self._starts_s, self._weight = 0, 0.0, 0.0, 0.0, 0.0
        self._lock = threading.Lock()

    def expect(self, keys: Iterable[Key], trials: int, further: float = 0.0) -> None:
        """Add this many trials of each key to the work to be done; after these, it needs `further` ones on average."""
        with self._lock:
            for key in keys:
                self.total += trials
                self._left[key] += trials
                self._further[key] = further

    def one_more(self, measurement: Measurement, fresh: bool) -> None:
        """Count a measurement as done; one that is not `fresh` took no time."""
        key = measurement.scheme.algorithm, measurement.setting
        with self._lock:
            self.done += 1
            self.fresh += fresh
            self.errors += measurement.outcome is Outcome.ERROR
            self._left[key] -= 1
            if fresh and measurement.outcome in (Outcome.OK, Outcome.TIMEOUT) and "wall_s" in measurement.host:
                self._begun.add(key)
                self._made += 1
                self._weight += self._cost(key[1])
                self._trials_s += measurement.host["wall_s"]
                self._calibrations_s += measurement.host.get("calibration_s", 0.0)
                self._starts_s += measurement.host.get("start_s", 0.0)

    def wait_for_others(self, change: int) -> None:
        """Add `change`, which may be negative, to the number of settings that another run is measuring."""
        with self._lock:
            self.elsewhere += change

    def _cost(self, setting: Setting) -> float:
        """Return the relative cost of a trial of a setting, in bytes."""
        return self._fixed_bytes + setting.transfer_bytes

    def remaining_s(self, of: Collection[Key] | None = None) -> float | None:
        """Return the estimated seconds left, of these keys alone if they are given.

        Return None while too few trials were made to tell.
        """
        with self._lock:
            left = {key: trials for key, trials in self._left.items() if trials > 0 and (of is None or key in of)}
            if not left:
                return 0.0
            if self._made < _FEWEST:
                return None
            costs = sum((n + self._further[key]) * self._cost(key[1]) for key, n in left.items())
            trials_s = self._trials_s / self._weight * costs
            calibrations_s = self._calibrations_s / len(self._begun) * len(left.keys() - self._begun)
            guests, begun = (
                {(algorithm, setting.guest_digest) for algorithm, setting in keys} for keys in (left, self._begun)
            )
            starts_s = self._starts_s / len(begun) * len(guests - begun)
            return (trials_s + calibrations_s + starts_s) / self._at_a_time(len(left))

    def _at_a_time(self, cells: int) -> float:
        """Return how many trials are made at a time, on average."""
        elapsed_s = self._clock() - self._began_s
        at_most = max(min(self._threads, cells), 1)
        if elapsed_s < _LONG_S:
            return at_most
        return min((self._trials_s + self._calibrations_s + self._starts_s) / elapsed_s, at_most)

    def line(self) -> str:
        """Return the progress as one line of text."""
        left = self.remaining_s()
        eta = "" if left is None or self.done == self.total else f", about {duration(left)} left"
        errors = f", {count(self.errors, 'error')}" if self.errors else ""
        others = f"; another run is measuring {count(self.elsewhere, 'cell')} of these" if self.elsewhere else ""
        return f"{self.done} of {self.total} trials{errors}{eta}{others}"

"""How far a run is, and how long the rest will take: by what trials, calibrations and starts of guests cost so far."""

import collections
import threading
import time
from collections.abc import Callable, Iterable

from conformance.engine.questions import Key
from conformance.model.setting import Setting
from conformance.model.trial import Measurement, Outcome
from conformance.support.console import count, duration

#: How long a transfer is, in bytes, that costs as much as all else in a trial (docs/performance.md: "What a trial costs
#: and where it goes"). It decides what a long trial says of a short one, and is no part of any result.
FIXED_BYTES = {"tcp": 30_000_000, "udp": 4_000_000}
#: so many trials say what one costs
_FEWEST = 2
#: wall seconds after which it shows how many trials are really made at a time: other runs may have the cores
_LONG_S = 30.0


class Progress:
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
        #: of trials made: how many, seconds for them, for calibrations and for starts, and their weights
        self._made, self._trials_s, self._calibrations_s, self._starts_s, self._weight = 0, 0.0, 0.0, 0.0, 0.0
        self._lock = threading.Lock()

    def expect(self, keys: Iterable[Key], trials: int) -> None:
        """Count so many more trials of each key as work to be done."""
        with self._lock:
            for key in keys:
                self.total += trials
                self._left[key] += trials

    def one_more(self, measurement: Measurement, fresh: bool) -> None:
        """Count a measurement as done; one that is not `fresh` took no time."""
        key = measurement.trial.scheme.algorithm, measurement.trial.setting
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
        """Count so many more settings as measured by another run."""
        with self._lock:
            self.elsewhere += change

    def _cost(self, setting: Setting) -> float:
        """Return what a trial of a setting costs, in a unit of its own."""
        return self._fixed_bytes + setting.transfer_bytes

    def remaining_s(self) -> float | None:
        """Return seconds, or None while too few trials were made to know."""
        with self._lock:
            if self._made < _FEWEST:
                return None
            left = {key: trials for key, trials in self._left.items() if trials > 0}
            trials_s = self._trials_s / self._weight * sum(n * self._cost(key[1]) for key, n in left.items())
            calibrations_s = self._calibrations_s / len(self._begun) * len(left.keys() - self._begun)
            guests, begun = ({_guest(key) for key in keys} for keys in (left, self._begun))
            starts_s = self._starts_s / len(begun) * len(guests - begun)
            return (trials_s + calibrations_s + starts_s) / self._at_a_time(len(left))

    def _at_a_time(self, cells: int) -> float:
        """Return how many trials are made at a time."""
        elapsed_s = self._clock() - self._began_s
        at_most = max(min(self._threads, cells), 1)
        if elapsed_s < _LONG_S:
            return at_most
        return min((self._trials_s + self._calibrations_s + self._starts_s) / elapsed_s, at_most)

    def line(self) -> str:
        """Return one line for people."""
        left = self.remaining_s()
        eta = "" if left is None or self.done == self.total else f", about {duration(left)} left"
        errors = f", {self.errors} errors" if self.errors else ""
        others = f"; another run is measuring {count(self.elsewhere, 'cell')} of these" if self.elsewhere else ""
        return f"{self.done} of {self.total} trials{errors}{eta}{others}"


def _guest(key: Key) -> tuple[str, str]:
    return key[0], key[1].guest_digest

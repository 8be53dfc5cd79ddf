"""The budget of a gate: wall time, what it was spent on, and how much more would have been needed."""

import dataclasses
import math
import os
import re
import time
from collections.abc import Callable, Collection

from conformance.engine.progress import RunProgress
from conformance.model.errors import UserError
from conformance.model.judging.question import Key


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What measuring took. `wall_s`: seconds that passed, on so many `cores`.

    `processor_s`: seconds of processor time, without what the last processes of each guest used; None if other
    machines measured. `needed_s`: estimated seconds to measure what is undecided; None if too few trials were made.
    """

    wall_s: float
    cores: int
    processor_s: float | None
    needed_s: float | None

    @property
    def share(self) -> float | None:
        """The share of the cores' time that was used."""
        return None if self.processor_s is None else self.processor_s / (self.wall_s * self.cores)


class Budget:
    """The wall time that a gate may take, from now on; `text` is as for seconds(). Raises UserError."""

    def __init__(self, text: str | None) -> None:
        self.wall_s = seconds(text)
        self._began_s, self._processor_s = time.monotonic(), _processor_s()
        self._progress: RunProgress | None = None

    def left_s(self, kept: float = 0.0) -> float | None:
        """Return the seconds left, without this share of the budget; None if there is no budget."""
        if self.wall_s is None:
            return None
        return max(self.wall_s * (1 - kept) - (time.monotonic() - self._began_s), 0.1)

    def share_s(self, share: float) -> Callable[[float], float | None]:
        """Return a function that returns what is left of this share of the seconds that are left now.

        It takes the part of the share that is kept for later.
        """
        left_s = self.left_s()
        if left_s is None:
            return lambda kept: None
        part_s, began_s = left_s * share, time.monotonic()
        return lambda kept: max(began_s + part_s * (1 - kept) - time.monotonic(), 0.1)

    def follow(self, progress: RunProgress) -> None:
        """Note how far measuring is."""
        self._progress = progress

    def needed_s(self, keys: Collection[Key]) -> float | None:
        """Return the estimated seconds to measure what is left of these keys; None if too few trials were made."""
        return None if self._progress is None else self._progress.remaining_s(keys)

    def spent(self, cores: int, needed_s: float | None, here: bool) -> Spent | None:
        """Return what was spent so far; None if there is no budget. `here`: whether this machine makes the trials."""
        if self.wall_s is None:
            return None
        return Spent(
            wall_s=time.monotonic() - self._began_s,
            cores=cores,
            processor_s=_processor_s() - self._processor_s if here else None,
            needed_s=needed_s,
        )


def _processor_s() -> float:
    """Return the processor time of this process and of those that it has waited for, in seconds."""
    return sum(os.times()[:4])


def seconds(text: str | None) -> float | None:
    """Return the seconds of a length of time such as 10m, 90s or 1.5h; None for None. Raises UserError."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)", text.strip())
    duration_s = float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match else 0.0
    if not 0 < duration_s < math.inf:
        raise UserError(f"--budget {text} is not a usable length of time", "give one such as 90s, 10m or 1h")
    return duration_s

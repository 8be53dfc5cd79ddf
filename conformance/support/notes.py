"""Report the progress of long work, by lines and a progress bar. Commands call Notes, which a shell (`cli/`, `suite/`)
implements.
"""

import contextlib
import threading
from collections.abc import Callable
from typing import Protocol

from conformance.model.errors import UserError
from conformance.support.console import duration, one_line
from conformance.support.pace import Pace


class CountedWork(Protocol):
    """Work that counts and words its own progress, such as an engine's run."""

    @property
    def done(self) -> int: ...

    @property
    def total(self) -> int: ...

    def line(self) -> str: ...


class Bar:
    """The progress bar of some work, which calls its methods from any thread."""

    def __init__(
        self,
        show: Callable[[str, float, float | None, bool], None],
        total: float | None,
        unit: str,
        budget_s: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._show, self._total, self._unit, self._budget_s, self._clock = show, total, unit, budget_s, clock
        self._began, self._done, self._fresh, self._line = clock(), 0.0, 0.0, ""
        self._pace = Pace(fewest=1, clock=clock)
        self._lock = threading.Lock()

    def follow(self, progress: CountedWork) -> None:
        """Show the progress of work that counts itself."""
        with self._lock:
            self._show(self._with_budget([progress.line()]), progress.done, progress.total, False)

    def say(self, line: str) -> None:
        """Set the text for what is being done now; without a terminal, it may never be shown."""
        with self._lock:
            self._line = line
            self._tell()

    def stage(self, line: str) -> None:
        """Set the text for what is being done now; without a terminal, print it at once if it is new."""
        with self._lock:
            new, self._line = line != self._line, line
            self._tell(new)

    def advance(self, line: str | None = None, by: float = 1, fresh: bool = True) -> None:
        """Count `by` more pieces of the work as done. `fresh` is false for pieces that took no time, such as stored
        results.
        """
        with self._lock:
            self._line = self._line if line is None else line
            self._count(self._done + by, fresh)

    def reached(self, done: float, total: float | None = None) -> None:
        """Set how much is done, and the total if that has changed."""
        with self._lock:
            self._total = total or self._total
            self._count(done, True)

    def _count(self, done: float, fresh: bool) -> None:
        if fresh:
            self._fresh += done - self._done
            self._pace.reached(self._fresh)
        self._done = done
        self._tell()

    def _tell(self, at_once: bool = False) -> None:
        words = [] if self._total is None else [self._counted(self._total)]
        words += [self._line] if self._line else []
        if self._total is not None and self._done < self._total:
            left_s = self._pace.remaining_s(self._total - self._done)
            words += [] if left_s is None else [f"about {duration(left_s)} left"]
        self._show(self._with_budget(words), self._done, self._total, at_once)

    def _counted(self, total: float) -> str:
        return f"{self._done:g} of {total:g} {self._unit}" if self._unit else f"{self._done / total:.0%}"

    def _with_budget(self, words: list[str]) -> str:
        if self._budget_s is not None:
            left_s = max(self._budget_s - (self._clock() - self._began), 0)
            words = [*words, f"{duration(left_s)} of the budget left"]
        return str(one_line("; ".join(words)))


class Notes(Protocol):
    """What a command uses to report something before it has its result; the command itself prints nothing."""

    def say(self, line: str) -> None:
        """Report what is being done, or was done."""

    def warn(self, line: str) -> None:
        """Report what is not as it should be, although the work goes on."""

    def error(self, line: str) -> None:
        """Report a part of the work that failed, such as a trial."""

    def mistake(self, error: UserError) -> None:
        """Report what a user has to mend, while the rest of the work goes on."""

    def bar(
        self, what: str, *, total: float | None = None, unit: str = "", budget_s: float | None = None
    ) -> contextlib.AbstractContextManager[Bar]:
        """Show how far `what` ("measuring") is while the block runs.

        `total`: how many pieces of work there are. `unit`: what they are called, in the plural ("trials"); without a
        unit, a percentage is shown. `budget_s`: a time budget in seconds, of which the rest is shown, too.
        """
        ...

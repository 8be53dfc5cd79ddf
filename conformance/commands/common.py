"""Helpers for commands that measure: refuse algorithms that a stack does not offer, and find failed trials."""

import dataclasses
from collections.abc import Iterable

from conformance.engine.benches import Bench
from conformance.model.errors import UserError
from conformance.model.trials.trial import Measurement, Outcome
from conformance.support import spelling
from conformance.support.record import Record

#: outcomes of trials that say nothing about the stack
BAD = (Outcome.ERROR, Outcome.FAILED, Outcome.UNSUPPORTED)


def require_offered(bench: Bench, algorithm: str) -> None:
    """Raise UserError if the stack does not offer an algorithm, before a result is written."""
    if why_not := bench.adapter.why_not(algorithm):
        offered = [name for name in bench.adapter.manifest.offered() if not bench.adapter.why_not(name)]
        raise UserError(why_not, spelling.mend(algorithm, offered, f"it offers {', '.join(offered) or 'none'}"))


def bad(measurements: Iterable[Measurement]) -> Measurement | None:
    """Return the first trial with an error, else that failed, else that was not supported; None if there is none."""
    listed = list(measurements)
    return next((m for outcome in BAD for m in listed if m.outcome is outcome), None)


class TitleRecord(Record):
    """A document of the suite's, such as a scenario, by its name and title."""

    name: str
    title: str


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Trouble:
    """Why there is no result: the outcome of a trial that says nothing about the stack, and its message."""

    outcome: Outcome
    message: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.message}"

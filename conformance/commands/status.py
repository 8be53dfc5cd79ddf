"""The exit statuses of all commands, and which one counts if there are several.

The numbers are documented for users in conformance/cli/__init__.py.
"""

import enum
from collections.abc import Iterable

from conformance.model.judging.verdict import Says, Status
from conformance.model.trials.trial import Outcome


class ExitStatus(enum.IntEnum):
    """How a command ended. Scripts and CI read the number."""

    #: everything conforms, or the command did what it was asked to do
    DONE = 0
    #: something violates a zone, differs, moved, or broke a clause
    VIOLATES = 1
    #: the user can correct it; the line on standard error says how
    MISUSE = 2
    #: the emulator, the guest, the adapter or the suite itself failed: nothing is known about the stack
    ERROR = 3
    #: something is inconclusive, unsupported or was not measured, and nothing is worse
    UNKNOWN = 4
    #: the user interrupted it; the same command again resumes
    INTERRUPTED = 130


_OF_VERDICT = {
    Says.AGAINST: ExitStatus.VIOLATES,
    Says.FAULT: ExitStatus.ERROR,
    Says.OPEN: ExitStatus.UNKNOWN,
    Says.FOR: ExitStatus.DONE,
    Says.NOTHING: ExitStatus.DONE,
}
#: what ended the command early, then all others in the order of the verdicts
_WORST_FIRST = (ExitStatus.INTERRUPTED, ExitStatus.MISUSE, *_OF_VERDICT.values())
#: a TIMEOUT counts as measured, because it bounds the utilization from above
_OF_OUTCOME = {
    Outcome.OK: ExitStatus.DONE,
    Outcome.TIMEOUT: ExitStatus.DONE,
    Outcome.FAILED: ExitStatus.ERROR,
    Outcome.UNSUPPORTED: ExitStatus.UNKNOWN,
    Outcome.ERROR: ExitStatus.ERROR,
}


def worst(statuses: Iterable[ExitStatus]) -> ExitStatus:
    """Return the worst of several statuses, in the order of the verdicts' Status; DONE if there are none."""
    exit_status = set(statuses)
    return next((status for status in _WORST_FIRST if status in exit_status), ExitStatus.DONE)


def of_verdicts(statuses: Iterable[Status]) -> ExitStatus:
    """Return the exit status of verdicts with these Statuses."""
    return worst(_OF_VERDICT[status.says] for status in statuses)


def of_outcomes(outcomes: Iterable[Outcome]) -> ExitStatus:
    """Return the exit status of trials with these Outcomes, which no zone judges."""
    return worst(_OF_OUTCOME[outcome] for outcome in outcomes)

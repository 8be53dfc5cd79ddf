"""Say what an entry of clauses/record.json says: whose verdict it is, what was measured, and which packet shows it."""

from conformance.catalogue.clause_record import ClauseEntry
from conformance.model.clauses.document import Clause
from conformance.model.judging.verdict import Status

#: the verdict that pages show for a clause whose behaviour no trial showed
NOT_VISIBLE = "not visible"
#: and for one that an older draft, which a stack claims, does not have
UNASKED = "not asked"


def value(clause: Clause, entry: ClauseEntry) -> str:
    """Return the median with its unit; "" if nothing was visible."""
    if entry.value is None:
        return ""
    return f"{entry.value:.{clause.observable.digits}f} {clause.observable.unit}".strip()


def measured(clause: Clause, entry: ClauseEntry) -> str:
    """Return the median with its interval and unit; "" if nothing was visible."""
    digits = clause.observable.digits
    low, high = entry.interval or (None, None)
    if entry.value is None or low is None or high is None:
        return value(clause, entry)
    return f"{entry.value:.{digits}f} ({low:.{digits}f}..{high:.{digits}f}) {clause.observable.unit}".strip()


def example(entry: ClauseEntry) -> str:
    """Return where in a trial it was seen: the seed, the packet's number, and the seconds; "" if it was not."""
    sample = entry.seen
    return f"seed {sample.seed}, packet {sample.packet}, at {sample.at_s:.3f} s" if sample else ""


def status(entry: ClauseEntry) -> str:
    """Return the verdict; NOT_VISIBLE if it is inconclusive because no trial showed the behaviour; or UNASKED."""
    if entry.verdict is Status.NOT_JUDGED and not entry.about.only_shows:
        return UNASKED
    hidden = entry.verdict is Status.INCONCLUSIVE and entry.value is None
    return NOT_VISIBLE if hidden else str(entry.verdict)

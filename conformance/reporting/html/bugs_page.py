"""Prepare the site's page of the catalogue of bugs: what catches each of those that were run."""

from conformance.catalogue import bugs
from conformance.catalogue.bugs import Tally


def bench(stacks: set[str]) -> Tally | None:
    """Return the entries of the stacks of a report; None if none of them is on record. Raises UserError."""
    tally = Tally.from_runs([bug for bug in bugs.entries() if bug.stack in stacks], bugs.runs())
    return tally if tally.real or tally.shams else None

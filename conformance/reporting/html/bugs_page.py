"""Prepare the site's page of the catalogue of bugs: what catches each of those that were run."""

import dataclasses

from conformance.catalogue import bugs
from conformance.catalogue.bugs import Bug, EntryRun


@dataclasses.dataclass(frozen=True, kw_only=True)
class BugsPage:
    """The entries that were run, bugs and shams apart, and the `rest`."""

    real: tuple[tuple[Bug, EntryRun], ...]
    shams: tuple[tuple[Bug, EntryRun], ...]
    rest: tuple[Bug, ...]

    def of(self, caught: bool) -> list[tuple[Bug, EntryRun]]:
        return [(bug, run) for bug, run in self.real if run.caught is caught]

    def caught(self, *commands: str) -> int:
        """Return how many bugs one of these commands catches."""
        return sum(run.by(*commands) for _, run in self.real)

    @property
    def named(self) -> int:
        return sum(run.named for _, run in self.real)

    @property
    def moved(self) -> int:
        return sum(run.caught for _, run in self.shams)

    @staticmethod
    def said(run: EntryRun, *commands: str) -> str:
        """Return what one of these commands tells the builds apart by, the first thing first."""
        return next((", ".join(tier.by) for tier in run.tiers if tier.command in commands and tier.caught), "-")


def bench(stacks: set[str]) -> BugsPage | None:
    """Return the record of the stacks of a report; None if it has none of them. Raises UserError."""
    runs = bugs.runs()
    entries = [bug for bug in bugs.entries() if bug.stack in stacks]
    there = [(bug, runs[bug.id]) for bug in entries if bug.id in runs]
    if not there:
        return None
    return BugsPage(
        real=tuple((bug, run) for bug, run in there if not bug.sham),
        shams=tuple((bug, run) for bug, run in there if bug.sham),
        rest=tuple(bug for bug in entries if bug.id not in runs),
    )

"""Prepare the site's page of the history of stacks: versions against clauses and kinds of cells."""

import dataclasses
import itertools

from conformance.catalogue import clauses, history
from conformance.catalogue.history import Release, VerdictChange
from conformance.model.judging.verdict import Status


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackHistory:
    """The releases of a stack's algorithm, the newest last."""

    stack: str
    algorithm: str
    releases: tuple[Release, ...]

    @property
    def rows(self) -> list[tuple[str, str, list[Status | None]]]:
        """Each clause (with its text) and kind that any release is against, and the verdict on each release."""
        texts = {clause.id: clause.text for clause in clauses.all_clauses()}
        every = [
            rule
            for part in ("clauses", "kinds")
            for rule in sorted(set().union(*(getattr(release, part) for release in self.releases)))
        ]
        rows = [(rule, texts.get(rule, ""), [of.verdicts.get(rule) for of in self.releases]) for rule in every]
        return [row for row in rows if any(status and status.against for status in row[-1])]

    @property
    def kept(self) -> list[tuple[int, int]]:
        """(how many clauses and kinds nothing speaks against, of how many) of each release.

        Only those that are decided on every release count, since newer releases may have been asked more.
        """
        decided = [{rule for rule, status in of.verdicts.items() if status.decided} for of in self.releases]
        shared = set.intersection(*decided)
        return [(sum(of.verdicts[rule].passes for rule in shared), len(shared)) for of in self.releases]

    @property
    def labels(self) -> dict[str, str]:
        """{version: how it is named}: with the part that it is a version of, unless that has the stack's name."""
        return {
            of.version: of.version if of.part in ("", self.stack) else f"{of.part} {of.version}" for of in self.releases
        }

    @property
    def changes(self) -> list[tuple[Release, Release, int, list[VerdictChange]]]:
        """What each release does otherwise than the one before, of how many verdicts on both; the newest first."""
        pairs = itertools.pairwise(self.releases)
        return [
            (before, after, len(history.common(before, after)), history.changes(before, after))
            for before, after in pairs
        ][::-1]


def all_stacks() -> list[StackHistory]:
    """Return the history of each stack and algorithm that is on record. Raises UserError."""
    return [
        StackHistory(stack=stack, algorithm=algorithm, releases=tuple(releases))
        for (stack, algorithm), releases in itertools.groupby(history.load(), key=lambda r: (r.stack, r.algorithm))
    ]

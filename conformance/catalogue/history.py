"""Read and write reports/published/history.json: what was measured of each release of a stack, in order of version."""

import pathlib
import re
from collections.abc import Iterable, Sequence

from conformance.model.groups import grouped
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import kind_of
from conformance.support import paths, record as records
from conformance.support.record import KeptDocument, Record


class VerdictChange(Record):
    """A verdict that a release gets otherwise than the one before."""

    #: A clause, or a zone and a kind of cells.
    asked: str
    before: Status
    now: Status


class Release(Record, kw_only=True):
    """What a version of a stack does: verdicts on clauses, and the worst verdict on each kind of cells of each zone."""

    stack: str
    algorithm: str
    #: As the registry or the tree has it.
    version: str
    #: The crate, Go module or Python package that is released, as --source names it; empty if it was a tree.
    part: str
    #: When, as YYYY-MM-DD.
    measured: str
    clauses: dict[str, Status]
    #: The worst verdict on the cells of a kind, by zone and kind.
    kinds: dict[str, Status]

    @property
    def verdicts(self) -> dict[str, Status]:
        return self.clauses | self.kinds

    @property
    def order(self) -> tuple[str, str, tuple[int, ...], bool, tuple[tuple[bool, int, str], ...], str]:
        """Where it stands among all: by stack and algorithm, then by its version.

        A pre-release, as 1.0.0-beta.1, comes before its release (https://semver.org, 11).
        """
        core, _, label = self.version.partition("+")[0].partition("-")
        numbers = tuple(map(int, re.findall(r"\d+", core)[:6]))
        words = ((not word.isdecimal(), int(word) if word.isdecimal() else 0, word) for word in label.split("."))
        return self.stack, self.algorithm, numbers, not label, tuple(words), self.version


class History(KeptDocument):
    """What was measured of releases of stacks: verdicts on clauses and on kinds of cells."""

    SCHEMA = "history"

    releases: list[Release]


def path() -> pathlib.Path:
    """Return where the history is kept."""
    return paths.data("reports", "published") / "history.json"


def load() -> list[Release]:
    """Return all releases that were measured, in order; none if there is no record. Raises UserError."""
    file = path()
    return sorted(records.read(History, file).releases if file.exists() else [], key=lambda release: release.order)


def add(release: Release) -> None:
    """Add a release to the history, in place of what it has of the same version. Raises UserError."""
    kept = {other.order: other for other in (*load(), release)}
    records.write(History(releases=[kept[order] for order in sorted(kept)]), path())


def parts() -> dict[str, str]:
    """Return {stack: the part of its build whose releases are followed}. Raises UserError."""
    return {release.stack: release.part for release in load() if release.part}


def by_kind(verdicts: Iterable[tuple[Verdict, str]]) -> dict[str, Status]:
    """Return {zone, kind of cells: the worst verdict} of (verdict, the zone's metric) pairs.

    What is not judged is left out.
    """
    judged = ((of, metric) for of, metric in verdicts if of.status is not Status.NOT_JUDGED)
    of_kind = grouped((f"{of.zone_id}: {kind_of(of.place, metric)}", of.status) for of, metric in judged)
    worst = list(Status)  # it has the worst first
    return {kind: min(statuses, key=worst.index) for kind, statuses in sorted(of_kind.items())}


def common(before: Release, after: Release) -> list[VerdictChange]:
    """Return the verdicts on two releases, changed or not, where both are clear."""
    pairs = [(rule, before.verdicts[rule], now) for rule, now in after.verdicts.items() if rule in before.verdicts]
    return [VerdictChange(asked=rule, before=was, now=now) for rule, was, now in pairs if was.decided and now.decided]


def changes(before: Release, after: Release) -> list[VerdictChange]:
    """Return what one release does otherwise than the one before, where both are clear."""
    return [pair for pair in common(before, after) if pair.before.against != pair.now.against]


def before(release: Release, among: Sequence[Release]) -> Release | None:
    """Return the release before one, of the same stack and algorithm; None if it is the first."""
    earlier = [other for other in among if other.order[:2] == release.order[:2] and other.order < release.order]
    return max(earlier, key=lambda other: other.order, default=None)

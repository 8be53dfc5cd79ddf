"""`conformance dev record`: measure what registries have released since, and add it to the history of each stack.

A release is judged as `gate --grid smoke --clauses` judges it, and compared with the one before.
"""

import dataclasses
import datetime
from collections.abc import Iterator, Sequence

from conformance.catalogue import documents, history
from conformance.catalogue.history import Release, VerdictChange
from conformance.commands import gate
from conformance.commands.result import Result
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.engine.benches import Choice, Means
from conformance.lab import adapter, manifest, sources
from conformance.lab.manifest import Manifest
from conformance.model.errors import UserError
from conformance.model.judging import grid


@dataclasses.dataclass(frozen=True, kw_only=True)
class RecordOptions:
    """`source`: what the one stack that is named is built with, instead of its newest release."""

    source: tuple[str, ...]
    algorithms: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """A release that was measured, and the one before; None if it is the first."""

    SHOWN = ("stack=release.stack", "algorithm=release.algorithm", "version=release.version", "since", "changes")

    release: Release
    before: Release | None

    @property
    def since(self) -> str | None:
        """The release that it is compared with; null if it is the first."""
        return None if self.before is None else self.before.version

    @property
    def changes(self) -> list[VerdictChange]:
        return history.changes(self.before, self.release) if self.before else []


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordedReleases(Result):
    """What was added to the history."""

    SCHEMA = "record"

    releases: tuple[Added, ...]
    #: Releases that the history had.
    known: tuple[str, ...]
    #: {stack and version: why it was not measured}
    not_measured: dict[str, str]

    @property
    def exit_status(self) -> ExitStatus:
        """UNKNOWN if a release was not measured, else DONE: what changed is news, and no fault."""
        return ExitStatus.UNKNOWN if self.not_measured else ExitStatus.DONE


def run(stacks: Sequence[str], options: RecordOptions, means: Means) -> RecordedReleases:
    """Measure the newest release of each of these stacks, or of all that the history has. Raises UserError."""
    if options.source and len(stacks) != 1:
        raise UserError("--source is of one stack", "name that stack alone")
    added: list[Added] = []
    known: list[str] = []
    absent: dict[str, str] = {}
    followed = history.parts()
    for stack in stacks or followed:
        name = stack
        try:
            about = manifest.read(stack)
            about.require()
            choice, part, version = _release(about, options.source or (_newest(about, followed),), followed.get(stack))
            name = f"{stack} {version}"
            wanted = _wanted(about, version, options)
            if not wanted:
                known.append(name)
            else:
                adapter.build(stack, given=choice.source)
                for release in _measured(choice, part, version, wanted, means):
                    history.add(release)
                    added.append(Added(release=release, before=history.before(release, history.load())))
        except UserError as error:
            absent[name] = str(error)
    return RecordedReleases(releases=tuple(added), known=tuple(known), not_measured=absent)


def _newest(about: Manifest, followed: dict[str, str]) -> str:
    """Return the newest release of a stack, as a --source. Raises UserError."""
    if about.name not in followed:
        raise UserError(f"the history has no release of {about.name}", "name one with --source PART=VERSION")
    part = followed[about.name]
    return f"{part}={sources.newest(about, part).removeprefix('v')}"


def _release(about: Manifest, given: tuple[str, ...], followed: str | None) -> tuple[Choice, str, str]:
    """Return what to measure, the part that a registry releases, if any, and the version. Raises UserError.

    `followed`: the part whose releases the history has; its version counts if several are given.
    """
    trees = [tree for tree in sources.find(about, given) if tree.given]
    tree = next((tree for tree in trees if tree.short == followed), trees[0])
    if tree.version is None:
        choice = Choice(stack=about.name, source=given)
        adapter.build(about.name, given=given)
        return choice, "", benches.find(choice).scheme(about.offered()[0]).version
    version = tree.version.removeprefix("v")
    # What the adapter is built with anyway has results of its own already.
    plain = len(given) == 1 and version in sources.locked(about, tree.name)
    return Choice(stack=about.name, source=() if plain else given), tree.short, version


def _wanted(about: Manifest, version: str, options: RecordOptions) -> list[str]:
    """Return the algorithms to measure: those asked for, or those that zones judge. Raises UserError.

    What the history has is measured again only if it is named by --source.
    """
    judged = {zone.algorithm for _, zone in documents.judging(documents.PROFILES[about.transport])}
    known = {of.algorithm for of in history.load() if (of.stack, of.version) == (about.name, version)}
    chosen = options.algorithms or [algorithm for algorithm in about.offered() if algorithm in judged]
    return [algorithm for algorithm in chosen if options.source or algorithm not in known]


def _measured(choice: Choice, part: str, version: str, algorithms: Sequence[str], means: Means) -> Iterator[Release]:
    """Judge a build by clauses and cells, an algorithm at a time. Raises UserError."""
    for algorithm in algorithms:
        gated = gate.compute(
            gate.GateOptions(
                algorithms=[algorithm], choice=choice, grid=grid.SMOKE, clauses=True, why=False, blame=False
            ),
            means,
        )  # fmt: skip
        kinds = [(finding.confirmed, judged.zone.metric) for judged in gated.judged for finding in judged.findings]
        yield Release(
            stack=choice.stack, algorithm=algorithm, version=version, part=part,
            measured=datetime.datetime.now(datetime.UTC).date().isoformat(),
            clauses={
                of.verdict.zone_id: of.confirmed.status for of in (gated.clauses.findings if gated.clauses else ())
            },
            kinds=history.by_kind(kinds),
        )  # fmt: skip

"""Read bugs/: bugs that stacks really had, coordinates of a build with each and of one without, and what came of it.

`bugs/entries/` has a file for each stack; people write these. `bugs/record.json` is written by `conformance dev bugs
run`: what told the two builds of an entry apart.
"""

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta

from conformance.model.errors import UserError
from conformance.support import paths, record as records, spelling
from conformance.support.record import KeptDocument, Record

#: the judgements of a build by itself; `compare` judges two
ABSOLUTE = ("smoke", "clauses", "zones")
EntryId = Annotated[str, Meta(pattern="^[A-Z0-9]+(-[A-Z0-9]+)+$")]
AdapterName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9.-]*$")]
Repository = Annotated[str, Meta(pattern=r"^[\w.-]+/[\w.-]+$")]
AlgorithmName = Annotated[str, Meta(pattern="^[a-z0-9]+$")]
Sentence = Annotated[str, Meta(min_length=10)]
_Count = Annotated[int, Meta(ge=0)]


class Build(Record, kw_only=True):
    """How to get a build: by versions that registries have, as a tree or a kernel of a user's; else as it is pinned."""

    #: Of crates, modules and packages that the adapter is built with.
    versions: Annotated[Mapping[str, str], Meta(min_length=1)] = msgspec.field(default_factory=dict)
    #: What --source calls the tree.
    tree: Annotated[str, Meta(pattern="^[a-z0-9][a-zA-Z0-9._-]*$")] | None = None
    #: The commit or tag of the repository that the tree is of.
    commit: str | None = None
    #: Fixes that are reverted on it.
    without: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    #: What is changed by hand, in words.
    edit: str | None = None
    #: The name of a guest kernel that the user built.
    kernel: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]*$")] | None = None


_KERNEL = {"required": ["kernel"]}
_WAYS = (
    {"maxProperties": 0},
    {"required": ["versions"], "maxProperties": 1},
    {"required": ["tree"], "not": _KERNEL, "anyOf": [{"required": ["commit"]}, {"required": ["edit"]}]},
    {"required": ["kernel", "edit"], "maxProperties": 2},
)
_OneBuild = Annotated[Build, Meta(extra_json_schema={"oneOf": _WAYS})]


class Missed(Record):
    """Why nothing told the builds of an entry apart, and what it would take."""

    why: str
    takes: str
    #: If the bug does not show: what a counter in a scratch build said of the branch, and which packets are equal.
    proof: Annotated[Sentence, Meta(max_length=600)] | None = None


class BugEntry(Record, kw_only=True):
    """A bug, or a sham: two builds that do not differ in congestion control."""

    id: EntryId
    #: The suite's name of the algorithm that is judged.
    algorithm: AlgorithmName
    #: Whether the builds do not differ in congestion control: then none may move.
    sham: Annotated[bool, Meta(extra_json_schema={"const": True})] = False
    #: What the stack did, in one sentence.
    did: Annotated[Sentence, Meta(max_length=200)]
    #: What is wrong within, in words; written before any run.
    mechanism: Sentence = ""
    #: The features of `compare` and the clauses that name this mechanism; written before any run.
    named_by: tuple[Annotated[str, Meta(pattern="^([a-z_0-9]+|[A-Z]+[0-9]+)$")], ...] = ()
    #: The fix, and who reported the bug.
    links: tuple[Annotated[str, Meta(pattern="^https://")], ...] = ()
    #: Where it should show; written before any run.
    shows: str = ""
    buggy: _OneBuild
    fixed: _OneBuild
    #: Why it cannot be run.
    unavailable: Sentence | None = None
    #: If nothing told the builds apart: why, and what that would take.
    missed: Missed | None = None


class Bug(BugEntry, kw_only=True):
    """An entry, and what it has in common with the others of its file."""

    stack: str
    repository: str
    part: str


class StackBugs(KeptDocument):
    """Bugs that a stack really had, with coordinates of a build with each and of one without."""

    SCHEMA = "bugs"
    SPARSE = True

    #: The name of the adapter.
    stack: AdapterName
    #: Where the stack is developed, as owner/name.
    repository: Repository
    #: What the adapter's --source calls a tree of it.
    part: Annotated[str, Meta(min_length=1)]
    bugs: Annotated[list[BugEntry], Meta(min_length=1)]


class Tier(Record):
    """What one command said of the two builds. `named`: whether what it says first names the mechanism."""

    command: Literal["smoke", "clauses", "compare", "zones"]
    caught: bool
    #: The features, clauses or zones that tell the builds apart, in the order in which they are said.
    by: list[str]
    #: What it says first of the buggy build, or why it says nothing.
    first: str
    #: Whether that names the mechanism.
    named: bool
    trials: _Count
    minutes: Annotated[float, Meta(ge=0)]
    #: Places that the budget left no time for.
    unmeasured: _Count = 0


class EntryRun(Record):
    """What came of an entry."""

    id: str
    #: Scheme and digest of the buggy and of the fixed build.
    builds: Annotated[list[tuple[str, str]], Meta(min_length=2, max_length=2)]
    lab: str
    tiers: Annotated[list[Tier], Meta(min_length=1)]

    @property
    def caught(self) -> bool:
        return any(tier.caught for tier in self.tiers)

    @property
    def named(self) -> bool:
        return any(tier.caught and tier.named for tier in self.tiers)

    @property
    def cheapest(self) -> Tier | None:
        """The tier that took the fewest trials of those that caught it."""
        return min((tier for tier in self.tiers if tier.caught), key=lambda tier: tier.trials, default=None)

    @property
    def trials(self) -> int:
        return sum(tier.trials for tier in self.tiers)

    @property
    def unmeasured(self) -> int:
        return sum(tier.unmeasured for tier in self.tiers)

    @property
    def minutes(self) -> float:
        return round(sum(tier.minutes for tier in self.tiers), 1)

    def ran(self, *commands: str) -> bool:
        """Return whether one of these commands was run."""
        return any(tier.command in commands for tier in self.tiers)

    def by(self, *commands: str) -> bool:
        """Return whether one of these commands caught it."""
        return bool(self.tells(*commands))

    def tells(self, *commands: str) -> list[str]:
        """Return what the first of these commands that caught it tells the builds apart by."""
        return next((tier.by for tier in self.tiers if tier.caught and tier.command in commands), [])


class BugRecord(KeptDocument):
    """What came of each entry of the catalogue of bugs that was run."""

    SCHEMA = "bug-record"

    runs: list[EntryRun]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tally:
    """The entries that were run: bugs, those set `aside` as their packets are proved equal, shams; and the `rest`."""

    real: tuple[tuple[Bug, EntryRun], ...]
    aside: tuple[tuple[Bug, EntryRun], ...]
    shams: tuple[tuple[Bug, EntryRun], ...]
    rest: tuple[Bug, ...]

    @classmethod
    def from_runs(cls, bugs: Sequence[Bug], runs: Mapping[str, EntryRun]) -> Self:
        """Return the Tally of entries and {id: what came of the entry}."""
        there = [(bug, runs[bug.id]) for bug in bugs if bug.id in runs]
        real: list[tuple[Bug, EntryRun]] = []
        aside: list[tuple[Bug, EntryRun]] = []
        for bug, run in there:
            if not bug.sham:
                (aside if bug.missed and bug.missed.proof and not run.caught else real).append((bug, run))
        return cls(
            real=tuple(real),
            aside=tuple(aside),
            shams=tuple((bug, run) for bug, run in there if bug.sham),
            rest=tuple(bug for bug in bugs if bug.id not in runs),
        )

    def of(self, caught: bool) -> list[tuple[Bug, EntryRun]]:
        """Return the bugs that were caught, or those that were missed."""
        return [(bug, run) for bug, run in self.real if run.caught is caught]

    @property
    def named(self) -> int:
        return sum(run.named for _, run in self.real)

    @property
    def moved(self) -> list[str]:
        """The shams that something told apart."""
        return [bug.id for bug, run in self.shams if run.caught]

    def caught(self, *commands: str) -> int:
        """Return how many bugs one of these commands catches."""
        return sum(run.by(*commands) for _, run in self.real)

    def ran(self, *commands: str) -> int:
        """Return on how many bugs one of these commands was run."""
        return sum(run.ran(*commands) for _, run in self.real)


def folder() -> pathlib.Path:
    return paths.PACKAGE.parent / "bugs"


def entries() -> tuple[Bug, ...]:
    """Return all entries, stack by stack; none if this is no checkout. Raises UserError."""
    bugs: dict[str, Bug] = {}
    for path in sorted((folder() / "entries").glob("*.json")):
        of_stack = records.read(StackBugs, path)
        for entry in of_stack.bugs:
            if entry.id in bugs:
                raise UserError(f"{path}: entry {entry.id} is listed twice")
            bugs[entry.id] = Bug(
                stack=of_stack.stack, repository=of_stack.repository, part=of_stack.part,
                **msgspec.structs.asdict(entry),
            )  # fmt: skip
    return tuple(bugs.values())


def chosen(ids: Sequence[str]) -> tuple[Bug, ...]:
    """Return the entries with these ids, or all. Raises UserError."""
    known = {bug.id: bug for bug in entries()}
    if not known:
        raise UserError("the catalogue of bugs is not part of the installed package", "run this in a checkout")
    for name in ids:
        if name not in known:
            raise UserError(f"there is no bug {name!r}", spelling.mend(name, known, "bugs/entries lists them"))
    return tuple(known[name] for name in ids) if ids else tuple(known.values())


def runs() -> dict[str, EntryRun]:
    """Return {id: what came of it} of the record. Raises UserError."""
    path = folder() / "record.json"
    return {run.id: run for run in (records.read(BugRecord, path).runs if path.exists() else ())}


def record(new: Iterable[EntryRun]) -> pathlib.Path:
    """Replace what the record has of these entries; return its path. Raises UserError."""
    kept = runs() | {run.id: run for run in new}
    return records.write(BugRecord(runs=[kept[name] for name in sorted(kept)]), folder() / "record.json")

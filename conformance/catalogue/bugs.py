"""Read bugs/: bugs that stacks really had, coordinates of a build with each and of one without, and what came of it.

`bugs/entries/` has a file for each stack; people write these. `bugs/record.json` is written by `conformance dev bugs
run`: what told the two builds of an entry apart.
"""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self

import msgspec

from conformance.model.errors import UserError
from conformance.support import files, paths, schema, spelling
from conformance.support.record import Record

#: the judgements of a build by itself; `compare` judges two
ABSOLUTE = ("smoke", "clauses", "zones")


class Build(Record, kw_only=True):
    """How to get a build: by versions that registries have, or as a tree of a user's; else as the adapter pins it."""

    #: {crate, module or package that the adapter is built with: version}
    versions: Mapping[str, str] = msgspec.field(default_factory=dict)
    #: what `--source` of `dev bugs run` calls the tree
    tree: str | None = None
    #: the tree's commit or tag, and fixes that are reverted on it
    commit: str | None = None
    without: tuple[str, ...] = ()
    #: a change by hand, in words
    edit: str | None = None


class Missed(Record):
    """Why nothing told the builds of an entry apart, and what it would take."""

    why: str
    takes: str


class Bug(Record, kw_only=True):
    """An entry: a bug, or a sham: two builds that do not differ in congestion control.

    `stack`: the adapter's name. `repository`: owner/name. `part`: what the adapter calls the tree (`--source`).
    """

    id: str
    stack: str
    repository: str
    part: str
    algorithm: str
    sham: bool = False
    #: what the stack did
    did: str
    #: what is wrong within, in words, and the features and clauses whose sentence says so: written before any run
    mechanism: str = ""
    named_by: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    #: where it should show
    shows: str = ""
    buggy: Build
    fixed: Build
    #: why it cannot be run
    unavailable: str | None = None
    missed: Missed | None = None


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
    trials: int
    minutes: float
    #: Places that the budget left no time for.
    unmeasured: int = 0


class EntryRun(Record):
    """What came of an entry. `builds`: scheme and digest of the buggy and of the fixed build."""

    id: str
    builds: list[tuple[str, str]]
    lab: str
    tiers: list[Tier]

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tally:
    """The entries that were run, bugs and shams apart, and the `rest`."""

    real: tuple[tuple[Bug, EntryRun], ...]
    shams: tuple[tuple[Bug, EntryRun], ...]
    rest: tuple[Bug, ...]

    @classmethod
    def from_runs(cls, bugs: Sequence[Bug], runs: Mapping[str, EntryRun]) -> Self:
        """Return the Tally of entries and {id: what came of the entry}."""
        there = [(bug, runs[bug.id]) for bug in bugs if bug.id in runs]
        return cls(
            real=tuple((bug, run) for bug, run in there if not bug.sham),
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
        document = schema.load("bugs", path)
        shared = {name: document[name] for name in ("stack", "repository", "part")}
        for entry in document["bugs"]:
            if entry["id"] in bugs:
                raise UserError(f"{path}: entry {entry['id']} is listed twice")
            bugs[entry["id"]] = msgspec.convert({**shared, **entry}, Bug)
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
    document = schema.load("bug-record", path) if path.exists() else {"runs": []}
    return {entry["id"]: msgspec.convert(entry, EntryRun) for entry in document["runs"]}


def record(new: Iterable[EntryRun]) -> pathlib.Path:
    """Replace what the record has of these entries; return its path. Raises UserError."""
    kept = runs() | {run.id: run for run in new}
    lines = ",\n".join(
        "    " + json.dumps(msgspec.to_builtins(kept[name]), ensure_ascii=False) for name in sorted(kept)
    )
    head = '{\n  "$schema": "../conformance/schemas/bug-record.json",\n  "runs": [\n'
    return files.write(folder() / "record.json", f"{head}{lines}\n  ]\n}}\n", files.OTHER_FOLDER)

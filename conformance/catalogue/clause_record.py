"""Read and write clauses/record.json: the verdicts on clauses for each stack and each mutant, as they were measured."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from conformance.catalogue import clauses
from conformance.lab import manifest
from conformance.model.clauses.document import Clause
from conformance.model.clauses.verdict import on_record
from conformance.model.judging.expectation import Expected, Known
from conformance.model.judging.question import Named
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status, ZoneSide
from conformance.support import paths, record as records
from conformance.support.record import KeptDocument, Record

_DIGITS = 4
_MUTANT = "mutant "


class RecordedSample(Record):
    seed: int
    #: Seconds since the trial's first packet.
    at_s: float
    packet: int


class ClauseEntry(Record, kw_only=True):
    """A verdict on a clause, as it was measured."""

    #: A stack's name, or `mutant` and the id of a mutant.
    who: str
    clause: str
    scheme: str
    verdict: Status
    reason: str
    #: Median of the observable; null if it was not visible.
    value: float | None
    interval: list[float | None] | None
    trials: Annotated[int, Meta(ge=0)]
    #: A sample near the median.
    seen: RecordedSample | None

    @property
    def algorithm(self) -> str:
        return self.scheme.partition("/")[0]

    @property
    def is_of_mutant(self) -> bool:
        """Whether it is about a mutant, which is no stack."""
        return self.who.startswith(_MUTANT)

    @property
    def about(self) -> Clause:
        """Its clause, as the draft has it that its stack claims. Raises UserError."""
        clause = clauses.find(self.clause)
        if not clause.older or self.who not in manifest.names():
            return clause
        return clauses.claimed(clause, manifest.read(self.who), self.algorithm)


class ClauseRecords(KeptDocument):
    """Verdicts on clauses for each stack and each mutant: clauses/record.json."""

    SCHEMA = "clause-record"

    record: list[ClauseEntry]


def path() -> pathlib.Path:
    """Return where the record is."""
    return paths.data("clauses", "record.json")


def load() -> list[ClauseEntry]:
    """Return all entries, in order, each judged by the draft that its stack claims now. Raises UserError."""
    return [_judged(recorded) for recorded in _written()]


def _judged(recorded: ClauseEntry) -> ClauseEntry:
    clause = recorded.about
    if clause == clauses.find(clause.id):
        return recorded
    status, reason = on_record(clause, recorded.verdict, recorded.reason, recorded.interval)
    return msgspec.structs.replace(recorded, verdict=status, reason=reason)


def _written() -> list[ClauseEntry]:
    """Return the entries as they were written; none if there is no record. Raises UserError."""
    return records.read(ClauseRecords, path()).record if path().exists() else []


def judged(stack: str, algorithm: str) -> list[ClauseEntry]:
    """Return the entries with a clear verdict on a stack's algorithm, in order. Raises UserError."""
    return [
        of_stack
        for of_stack in load()
        if of_stack.who == stack and of_stack.algorithm == algorithm and of_stack.verdict.decided
    ]


def measured(stack: str, algorithm: str, newest: bool = False) -> dict[str, float]:
    """Return {clause: what it measured of a stack's algorithm}, where that is known. Raises UserError.

    `newest`: leave out clauses by which an older draft judges it otherwise.
    """
    return {
        recorded.clause: recorded.value
        for recorded in load()
        if (recorded.who, recorded.algorithm) == (stack, algorithm) and recorded.value is not None
        if not newest or recorded.about == clauses.find(recorded.clause)
    }


def expected(stack: str, adapter: pathlib.Path) -> tuple[Expected, ...]:
    """Return what a stack does wrong, as the record says of those that ship. Raises UserError.

    `adapter`: the path of its adapter.json. Nothing is on record of one that does not ship, whatever its name.
    """
    if not adapter.resolve().is_relative_to(paths.data("adapters").resolve()):
        return ()
    return tuple(
        Expected(
            zone_id=of_stack.clause, cells=frozenset([Named(of_stack.algorithm)]), verdict=Known(of_stack.verdict),
            reason=f"on record of {of_stack.scheme}", side=_side(of_stack), recorded=True,
        )
        for of_stack in load()
        if of_stack.who == stack and of_stack.verdict.against
    )  # fmt: skip


def _side(recorded: ClauseEntry) -> ZoneSide | None:
    """Return on which side of what the document permits a violation lies; None if its value does not tell."""
    bound, value = recorded.about.bound, recorded.value
    if value is None or value in bound:
        return None
    return ZoneSide.BELOW if value < bound.low else ZoneSide.ABOVE


def entry(finding: Finding, who: str) -> ClauseEntry:
    """Return the entry in the record for a finding about a stack or a mutant."""
    verdict = finding.confirmed
    sample = verdict.evidence[0] if verdict.evidence else None
    return ClauseEntry(
        who=who, clause=verdict.zone_id, scheme=finding.scheme, verdict=verdict.status, reason=verdict.reason,
        value=_rounded(verdict.value), interval=verdict.interval and [_rounded(v) for v in verdict.interval],
        trials=verdict.n, seen=RecordedSample(sample.seed, round(sample.at_s, 6), sample.packet) if sample else None,
    )  # fmt: skip


def _rounded(value: float | None) -> float | None:
    # JSON has no infinities, which are the bounds of an interval that is not known.
    return None if value is None or abs(value) == float("inf") else round(value, _DIGITS)


def record(new: Sequence[ClauseEntry]) -> pathlib.Path:
    """Replace earlier entries of a stack or a mutant about the same clauses by these; return the file."""
    keys = {_key(listed) for listed in new}
    return write([*(listed for listed in _written() if _key(listed) not in keys), *new])


def _key(recorded: ClauseEntry) -> tuple[str, str, str]:
    # The version is left out, so that a new version of a stack replaces the last.
    return recorded.clause, recorded.who, recorded.algorithm


def write(entries: Iterable[ClauseEntry]) -> pathlib.Path:
    """Write the record, one entry per line, sorted by clause and then by stack or mutant."""
    ordered = sorted(entries, key=lambda entry: (entry.clause, entry.is_of_mutant, entry.who, entry.scheme))
    return records.write(ClauseRecords(record=ordered), path())

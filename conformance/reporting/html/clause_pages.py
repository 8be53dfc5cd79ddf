"""Prepare the site's pages of clauses: what a stack does by each document, and which stacks keep each clause.

The verdicts are those of clauses/record.json on the stacks that a report is about.
"""

import collections
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Sequence

from conformance.catalogue import clause_record, clauses
from conformance.catalogue.clause_record import ClauseEntry
from conformance.model.clauses.document import Clause, Specification
from conformance.model.judging.verdict import Status
from conformance.reporting import recorded
from conformance.reporting.html import slugs

#: verdicts against a stack; the order in which pages list verdicts; those that say what a stack does
_AGAINST = tuple(status for status in Status if status.against)
_ORDER = (
    *_AGAINST, "error", "inconclusive", "conforms", Status.NOT_JUDGED, recorded.NOT_VISIBLE, recorded.UNASKED,
    "unsupported",
)  # fmt: skip
_DECIDED = (*_AGAINST, Status.CONFORMS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClauseRow:
    """A recorded verdict on a clause."""

    clause: Clause
    entry: ClauseEntry

    @property
    def status(self) -> str:
        return recorded.status(self.entry)

    @property
    def measured(self) -> str:
        return recorded.measured(self.clause, self.entry)

    @property
    def example(self) -> str:
        return recorded.example(self.entry)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """What is recorded about a part of all: a stack, a clause, a document, or several of these."""

    rows: tuple[ClauseRow, ...]

    @property
    def count(self) -> collections.Counter[str]:
        """The number of verdicts by status, in the order in which pages list them."""
        counts = collections.Counter(row.status for row in self.rows)
        return collections.Counter({status: counts[status] for status in _ORDER if counts[status]})

    @property
    def worst(self) -> str:
        """The status that its pill shows: violates if there is one, conforms if not, else the first that there is."""
        count = self.count
        return next((status for status in _DECIDED if count[status]), next(iter(count)))

    @property
    def decided(self) -> list[Status]:
        """The verdicts that say what a stack does."""
        return [Status(row.status) for row in self.rows if row.status in _DECIDED]

    @property
    def words(self) -> str:
        """How many of the decided verdicts are violations, or conform: "violates 8/52"."""
        count, worst = self.count, self.worst
        decided = sum(count[status] for status in _DECIDED)
        if not decided:
            return f"{worst} {count[worst]}"
        return f"{worst} {count[worst]}/{decided}"

    @property
    def musts(self) -> int:
        """How many violations are of a MUST or a MUST NOT."""
        return sum(row.status in _AGAINST and row.clause.level.startswith("MUST") for row in self.rows)

    def of(
        self, *, stack: str | None = None, specification: Specification | None = None, clause: Clause | None = None,
        algorithm: str | None = None, status: str | None = None,
    ) -> "Part":  # fmt: skip
        """Return the part with these; None stands for any."""
        return Part(
            rows=tuple(
                row
                for row in self.rows
                if stack in (None, row.entry.who)
                and (specification is None or row.clause.specification == specification.name)
                and (clause is None or row.clause.id == clause.id)
                and algorithm in (None, row.entry.algorithm)
                and status in (None, row.status)
            )
        )

    @property
    def by_status(self) -> Iterator[tuple[str, "Part"]]:
        """Yield (status, its part), violations first."""
        return ((status, self.of(status=status)) for status in self.count)

    @property
    def stacks(self) -> list[str]:
        return sorted({row.entry.who for row in self.rows})


def of(stacks: Collection[str]) -> tuple[Sequence[Specification], Part]:
    """Return all documents, and what is recorded about these stacks. Raises UserError."""
    # RFCs come before drafts.
    specifications = sorted(
        clauses.specifications(), key=lambda specification: not specification.document.startswith("RFC")
    )
    by_id = {clause.id: clause for specification in specifications for clause in specification.clauses}
    return specifications, Part(rows=tuple(_rows(by_id, clause_record.load(), stacks)))


def _rows(by_id: dict[str, Clause], record: Iterable[ClauseEntry], stacks: Collection[str]) -> Iterator[ClauseRow]:
    rows = [
        ClauseRow(clause=by_id[entry.clause], entry=entry)
        for entry in record
        if entry.who in stacks and entry.clause in by_id and not entry.is_of_mutant
    ]
    at = {clause_id: place for place, clause_id in enumerate(by_id)}
    yield from sorted(
        rows, key=lambda row: (at[row.clause.id], _ORDER.index(row.status), row.entry.who, row.entry.algorithm)
    )


def of_stack(stack: str) -> str:
    """Return the name of the page about a stack."""
    return f"clauses-of-{slugs.of_name(stack)}.html"


def of_document(specification: Specification) -> str:
    """Return the name of the page about a document."""
    return f"clauses-{slugs.of_name(specification.name)}.html"

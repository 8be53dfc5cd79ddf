"""Read bugs/defects.json: why stacks violate, each with the verdict that shows it and the line that causes it."""

from typing import Annotated

from msgspec import Meta

from conformance.catalogue import bugs
from conformance.support import record
from conformance.support.record import KeptDocument, Record

_Place = Annotated[str, Meta(min_length=5)]


class DefectEvidence(Record, kw_only=True):
    """The verdict that shows a defect: of a clause, or of a zone at a place."""

    clause: Annotated[str, Meta(pattern="^[A-Z]+[0-9]+$")] | None = None
    zone: str | None = None
    place: str | None = None


class Defect(Record, kw_only=True):
    """A defect of the version of a stack that its adapter pins, or a choice of it that a zone does not permit."""

    id: bugs.EntryId
    #: The name of the adapter, whose version has the defect.
    stack: bugs.AdapterName
    #: Where the stack is developed, as owner/name.
    repository: bugs.Repository
    #: The suite's name of the algorithm.
    algorithm: bugs.AlgorithmName
    #: What the stack does, in a line.
    title: Annotated[bugs.Sentence, Meta(max_length=120)]
    #: The verdict that shows it: of a clause, or of a zone in a cell.
    shows: Annotated[
        DefectEvidence,
        Meta(extra_json_schema={
            "oneOf": [{"required": ["clause"], "maxProperties": 1}, {"required": ["zone", "place"], "maxProperties": 2}]
        }),
    ]  # fmt: skip
    #: What is wrong there.
    cause: bugs.Sentence
    #: The document and section that say otherwise; None if no document does.
    source: _Place | None = None
    #: What packets show.
    packets: bugs.Sentence
    #: Files and lines of the adapter's version that cause it.
    where: _Place
    #: What would mend it, or what the stack would have to do to be permitted.
    mend: bugs.Sentence
    #: The version that mended it.
    mended_in: Annotated[str, Meta(min_length=1)] | None = None

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands that show it: one for the verdict, and one that keeps the packets."""
        shows, of = self.shows, f"{self.algorithm} --stack {self.stack}"
        if shows.clause:
            return (f"conformance clause run {shows.clause} --algorithm {of}",)
        return (
            f"conformance gate {of} --grid {shows.place}",
            f"conformance trace {self.algorithm} {shows.place} --stack {self.stack}",
        )


class Defects(KeptDocument):
    """Causes of verdicts on stacks that this suite found, as sources were read."""

    SCHEMA = "defects"
    SPARSE = True

    defects: Annotated[tuple[Defect, ...], Meta(min_length=1)]


def load() -> tuple[Defect, ...]:
    """Return all defects in order; none if this is no checkout. Raises UserError."""
    path = bugs.folder() / "defects.json"
    return record.read(Defects, path).defects if path.exists() else ()

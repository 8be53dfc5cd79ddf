"""Read bugs/defects.json: what this suite found wrong in stacks, each with the verdict and the line that show it."""

import msgspec

from conformance.catalogue import bugs
from conformance.support import schema
from conformance.support.record import Record


class DefectEvidence(Record, kw_only=True):
    """The verdict that shows a defect: of a clause, or of a zone at a place."""

    clause: str | None = None
    zone: str | None = None
    place: str | None = None


class Defect(Record, kw_only=True):
    """A defect of the version of a stack that its adapter pins, or the bare cause of a verdict.

    `source`: the document and section that say otherwise. `where`: the files and lines that cause it. A bare cause has
    less to say, and so neither a page of its own nor a text for maintainers.
    """

    id: str
    stack: str
    repository: str
    algorithm: str
    title: str
    shows: DefectEvidence
    cause: str
    source: str | None = None
    packets: str | None = None
    where: str | None = None
    mend: str | None = None
    mended_in: str | None = None

    @property
    def bare(self) -> bool:
        """Whether it is a bare cause."""
        return None in (self.source, self.packets, self.where, self.mend)

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


def load() -> tuple[Defect, ...]:
    """Return all defects in order; none if this is no checkout. Raises UserError."""
    path = bugs.folder() / "defects.json"
    document = schema.load("defects", path) if path.exists() else {"defects": []}
    return tuple(msgspec.convert(entry, Defect) for entry in document["defects"])

"""Say which clauses a stack fails, as far as that is recorded, and which command judges the build at hand."""

import dataclasses

from conformance.catalogue import clause_record, clauses, likely_faults
from conformance.engine.benches import Choice
from conformance.model.clauses.document import Clause
from conformance.model.judging.verdict import Status
from conformance.model.trials.trial import Scheme
from conformance.support.record import Record, Text

#: the most lines of likely faults
_MOST_FAULTS = 3


class FailingClausesRecord(Record):
    #: Their ids.
    failed: list[Text]
    #: How many have a clear verdict.
    judged: int
    #: The version that was judged; null if none was.
    version: str | None
    #: The command that judges this build.
    command: str
    #: The likeliest faults, if the algorithm is BBRv3: a line for each chapter of the draft.
    faults: list[Text]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FailingClauses:
    """The clauses that a scheme fails, MUSTs first: `failed` of `judged` ones, recorded of `version` (None: of none).

    `command` judges the build at hand. `faults`: the likeliest ones, a line for each chapter of the draft.
    """

    scheme: str
    failed: tuple[Clause, ...]
    judged: int
    version: str | None
    command: str
    faults: tuple[str, ...] = ()

    @property
    def recorded(self) -> bool:
        """Whether the verdicts are of this very version."""
        return self.version is not None and self.scheme.endswith(f"/{self.version}")


def of(scheme: Scheme, choice: Choice) -> FailingClauses:
    """Return the clauses that a scheme fails. Raises UserError."""
    record = clause_record.judged(scheme.stack, scheme.algorithm)
    failed = [clauses.find(entry["clause"]) for entry in record if Status(entry["verdict"]).against]
    failed.sort(key=lambda clause: not clause.level.upper().startswith("MUST"))
    first = clauses.first_for(scheme.algorithm)
    measured = clause_record.measured(scheme.stack, scheme.algorithm, newest=True)
    return FailingClauses(
        scheme=scheme.id, failed=tuple(failed),
        judged=len(record), version=record[-1]["scheme"].split("/")[2] if record else None,
        command=f"conformance clause run --algorithm {scheme.algorithm}{choice.options()}",
        faults=tuple(map(str, likely_faults.by_chapter(measured)[:_MOST_FAULTS])) if first else (),
    )  # fmt: skip

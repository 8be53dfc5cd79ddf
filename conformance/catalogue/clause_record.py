"""clauses/record.json: what came of clauses, stack by stack and mutant by mutant, as it was measured."""

import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.model.clauses.document import Clause
from conformance.model.clauses.verdict import ClauseVerdict
from conformance.support import files, paths, schema

#: of a clause, a scheme and the verdict, as the record has it
Entry = Mapping[str, Any]
_DIGITS = 4


def path() -> pathlib.Path:
    """Return where the record is."""
    return paths.data("clauses", "record.json")


def load() -> list[Entry]:
    """Return all entries, in order; none where there is no record. Raises UserError."""
    file = path()
    found: list[Entry] = schema.load("clause-record", file)["record"] if file.exists() else []
    return found


def entry(clause: Clause, scheme: str, verdict: ClauseVerdict) -> Entry:
    """Return what the record keeps of a verdict."""
    seen = verdict.seen[0] if verdict.seen else None
    return {
        "clause": clause.id, "scheme": scheme, "verdict": str(verdict.status), "reason": verdict.reason,
        "value": _rounded(verdict.value), "interval": verdict.interval and [_rounded(v) for v in verdict.interval],
        "trials": verdict.trials,
        "seen": seen and {"seed": seen.seed, "at_s": round(seen.at_s, 6), "packet": seen.packet},
    }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    # What is not finite has no form in JSON; an interval that is not known reaches everywhere.
    return None if value is None or abs(value) == float("inf") else round(value, _DIGITS)


def record(who: str, entries: Sequence[Entry]) -> pathlib.Path:
    """Put entries of a stack, or of a mutant, in place of earlier ones of the same clauses; return the file."""
    new = [{"who": who, **one} for one in entries]
    keys = {_key(one) for one in new}
    kept = [one for one in load() if _key(one) not in keys]
    return write([*kept, *new])


def _key(one: Entry) -> tuple[str, str, str]:
    # A new version of a stack takes the place of the last.
    return one["clause"], one["who"], one["scheme"].partition("/")[0]


def write(entries: Iterable[Entry]) -> pathlib.Path:
    """Write the record, an entry a line, in order of clause and of who it is about."""
    ordered = sorted(
        entries, key=lambda one: (one["clause"], one["who"].startswith("mutant"), one["who"], one["scheme"])
    )
    lines = ",\n".join("    " + json.dumps(one, ensure_ascii=False) for one in ordered)
    head = '{\n  "$schema": "../conformance/schemas/clause-record.json",\n  "record": [\n'
    return files.write(path(), f"{head}{lines}\n  ]\n}}\n", files.OTHER_FOLDER)

"""Read and write clauses/record.json: the verdicts on clauses for each stack and each mutant, as they were measured."""

import json
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.catalogue import clauses
from conformance.lab import manifest
from conformance.model.clauses.document import Clause
from conformance.model.clauses.verdict import on_record
from conformance.model.judging.expectation import Expected, Known
from conformance.model.judging.question import Named
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status
from conformance.support import files, paths, schema

#: a clause, a scheme and the verdict, as they are in the record
Entry = Mapping[str, Any]
_DIGITS = 4


def path() -> pathlib.Path:
    """Return where the record is."""
    return paths.data("clauses", "record.json")


def load() -> list[Entry]:
    """Return all entries, in order, each judged by the draft that its stack claims now. Raises UserError."""
    return [_judged(recorded) for recorded in _written()]


def as_judged(recorded: Entry) -> Clause:
    """Return an entry's clause as the draft has it that its stack claims. Raises UserError."""
    clause, who = clauses.find(recorded["clause"]), recorded["who"]
    if not clause.older or who not in manifest.names():
        return clause
    return clauses.claimed(clause, manifest.read(who), recorded["scheme"].partition("/")[0])


def _judged(recorded: Entry) -> Entry:
    clause = as_judged(recorded)
    if clause == clauses.find(clause.id):
        return recorded
    status, reason = on_record(clause, Status(recorded["verdict"]), recorded["reason"], recorded["interval"])
    return {**recorded, "verdict": str(status), "reason": reason}


def _written() -> list[Entry]:
    """Return the entries as they were written; none if there is no record. Raises UserError."""
    file = path()
    entries: list[Entry] = schema.load("clause-record", file)["record"] if file.exists() else []
    return entries


def judged(stack: str, algorithm: str) -> list[Entry]:
    """Return the entries with a clear verdict on a stack's algorithm, in order. Raises UserError."""
    return [
        of_stack
        for of_stack in load()
        if of_stack["who"] == stack and of_stack["scheme"].partition("/")[0] == algorithm
        if Status(of_stack["verdict"]).decided
    ]


def measured(stack: str, algorithm: str, newest: bool = False) -> dict[str, float]:
    """Return {clause: what it measured of a stack's algorithm}, where that is known. Raises UserError.

    `newest`: leave out clauses by which an older draft judges it otherwise.
    """
    of_stack = (recorded for recorded in load() if recorded["who"] == stack)
    return {
        recorded["clause"]: recorded["value"]
        for recorded in of_stack
        if recorded["scheme"].partition("/")[0] == algorithm and recorded["value"] is not None
        if not newest or as_judged(recorded) == clauses.find(recorded["clause"])
    }


def expected(stack: str) -> tuple[Expected, ...]:
    """Return what a stack does wrong, as the record says. Raises UserError."""
    return tuple(
        Expected(
            zone_id=of_stack["clause"], cells=frozenset([Named(of_stack["scheme"].partition("/")[0])]),
            verdict=Known(of_stack["verdict"]), reason=f"on record of {of_stack['scheme']}", recorded=True,
        )
        for of_stack in load()
        if of_stack["who"] == stack and Status(of_stack["verdict"]).against
    )  # fmt: skip


def entry(finding: Finding) -> Entry:
    """Return the entry in the record for a finding."""
    verdict = finding.confirmed
    sample = verdict.evidence[0] if verdict.evidence else None
    return {
        "clause": verdict.zone_id, "scheme": finding.scheme, "verdict": str(verdict.status), "reason": verdict.reason,
        "value": _rounded(verdict.value), "interval": verdict.interval and [_rounded(v) for v in verdict.interval],
        "trials": verdict.n,
        "seen": sample and {"seed": sample.seed, "at_s": round(sample.at_s, 6), "packet": sample.packet},
    }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    # JSON has no infinities, which are the bounds of an interval that is not known.
    return None if value is None or abs(value) == float("inf") else round(value, _DIGITS)


def record(who: str, entries: Sequence[Entry]) -> pathlib.Path:
    """Replace earlier entries of a stack or a mutant about the same clauses by these; return the file."""
    new = [{"who": who, **fields} for fields in entries]
    keys = {_key(listed) for listed in new}
    kept = [listed for listed in _written() if _key(listed) not in keys]
    return write([*kept, *new])


def _key(recorded: Entry) -> tuple[str, str, str]:
    # The version is left out, so that a new version of a stack replaces the last.
    return recorded["clause"], recorded["who"], recorded["scheme"].partition("/")[0]


def write(entries: Iterable[Entry]) -> pathlib.Path:
    """Write the record, one entry per line, sorted by clause and then by stack or mutant."""
    ordered = sorted(
        entries,
        key=lambda recorded: (
            recorded["clause"],
            recorded["who"].startswith("mutant"),
            recorded["who"],
            recorded["scheme"],
        ),
    )
    lines = ",\n".join("    " + json.dumps(recorded, ensure_ascii=False) for recorded in ordered)
    head = '{\n  "$schema": "../conformance/schemas/clause-record.json",\n  "record": [\n'
    return files.write(path(), f"{head}{lines}\n  ]\n}}\n", files.OTHER_FOLDER)

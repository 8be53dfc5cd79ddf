"""Read the clauses that ship: one document for each specification, in clauses/."""

import dataclasses
import functools
import pathlib
from collections.abc import Iterable

from conformance.catalogue import documents, scenarios
from conformance.lab.manifest import Manifest
from conformance.model.clauses.document import Clause, ClauseNetwork, Specification
from conformance.model.clauses.verdict import ClauseRule, ask
from conformance.model.errors import UserError, located
from conformance.model.judging.question import Question
from conformance.model.judging.session import Finding
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.support import paths, schema, spelling


def files() -> dict[str, pathlib.Path]:
    """Return {specification's name: file} of the specifications that ship."""
    every = sorted(paths.data("clauses").glob("*.json"))
    return {path.stem: path for path in every if path.stem not in ("record", "deviations", "plays")}


def read(path: pathlib.Path) -> Specification:
    """Return the Specification in a file. Raises UserError naming file and place."""
    data = schema.load("clauses", path)
    with located(path):
        return Specification.from_json(data)


@functools.cache
def specifications() -> tuple[Specification, ...]:
    """Return all specifications that ship. Raises UserError, also for two clauses with the same id."""
    documents_read = tuple(read(path) for path in files().values())
    specified_in: dict[str, str] = {}
    for specification in documents_read:
        for clause in specification.clauses:
            if clause.id in specified_in:
                raise UserError(f"{specified_in[clause.id]} and {specification.name} both have a clause {clause.id}")
            specified_in[clause.id] = specification.name
    return documents_read


def all_clauses() -> tuple[Clause, ...]:
    """Return the clauses of all documents, in order. Raises UserError."""
    return tuple(clause for specification in specifications() for clause in specification.clauses)


def find(clause_id: str) -> Clause:
    """Return the clause with this id. Raises UserError."""
    by_id = {clause.id: clause for clause in all_clauses()}
    if clause_id not in by_id:
        mend = spelling.mend(clause_id, [*by_id, *markers()], "`conformance clause show` lists all")
        raise UserError(f"there is no clause or document {clause_id!r}", mend)
    return by_id[clause_id]


def rule(finding: Finding) -> ClauseRule:
    """Return the clause that a finding is about, with the bound by which it was judged."""
    permitted = finding.verdict.permitted
    clause = find(finding.verdict.zone_id).judged_by(permitted.low, permitted.high)
    return ClauseRule(clause, finding.algorithm)


def likeliest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings about violated clauses, likelier causes of what a stack does wrong first."""
    return sorted(findings, key=lambda finding: rule(finding).clause.precedence)


def claimed(clause: Clause, about: Manifest, algorithm: str) -> Clause:
    """Return the clause as the draft has it that a stack claims to keep with an algorithm. Raises UserError."""
    specification, draft = first_for(algorithm), about.draft(algorithm)
    if draft and specification and draft not in specification.drafts:
        raise UserError(
            f"{about.path}: {algorithm}: draft {draft!r} is not known",
            f"choose one of {', '.join(specification.drafts)}",
        )
    return clause.as_in(draft)


def question(
    clause: Clause, about: Manifest, algorithm: str, called: str | None = None, twice: bool = True
) -> Question:
    """Ask whether a stack does what a clause says, as the draft has it that it claims to keep. Raises UserError.

    `called`: what results call the algorithm, if otherwise. `twice`: see ClauseRule.
    """
    return ask(claimed(clause, about, algorithm), setting(clause.network), called or algorithm, twice)


def markers() -> dict[str, str]:
    """Return {marker: what it asks for} of all specifications. Raises UserError."""
    return {specification.name: f"clauses of {specification.document}" for specification in specifications()}


@functools.lru_cache(maxsize=1024)
def setting(network: ClauseNetwork) -> Setting:
    """Return the Setting in which a clause is measured; it keeps packets. Raises UserError."""
    if network.scenario is not None:
        at_point = scenarios.setting(network.scenario, Point(network.point))
    else:
        assert network.profile is not None and network.cell is not None  # otherwise the document violates its schema
        at_point = documents.profile(
            network.profile, Cell.parse(network.cell), queue=network.queue, transfer_s=network.transfer_s,
            sysctls=network.sysctls,
        )  # fmt: skip
    return dataclasses.replace(at_point, packets=True)


def firsts(transport: str, algorithms: Iterable[str]) -> list[tuple[Clause, str]]:
    """Return (clause, algorithm) of the clauses by which these algorithms, of a stack with this transport, are judged
    before zones.
    """
    return [
        (clause, algorithm)
        for algorithm in algorithms
        for specification in specifications()
        if algorithm in specification.first_for
        for clause in specification.clauses
        if transport in clause.transports and clause.judged_of([algorithm])
    ]


def first_for(algorithm: str) -> Specification | None:
    """Return the specification whose clauses judge an algorithm before zones do; None if zones are all."""
    return next((specification for specification in specifications() if algorithm in specification.first_for), None)


def smoke() -> frozenset[str]:
    """Return the ids of the clauses of the smoke tier, of all specifications."""
    return frozenset(name for specification in specifications() for name in specification.smoke)


def asked(
    marker: Iterable[str], transport: str, algorithms: Iterable[str], named: Iterable[str] = ()
) -> list[tuple[Clause, str]]:
    """Return (clause, algorithm) of all that markers ask of a stack with this transport and these algorithms.

    `named`: a clause that is judged only once per stack is judged for one of these algorithms, if the stack has any of
    them.
    """
    offered, wanted = list(algorithms), set(marker)
    chosen = [name for name in named if name in offered] or offered
    return [
        (clause, algorithm)
        for clause in all_clauses()
        if wanted & set(clause.markers) and transport in clause.transports
        for algorithm in clause.judged_of(chosen if clause.once else offered)
    ]

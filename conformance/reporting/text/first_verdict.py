"""Say what a session found of an algorithm that a document's clauses judge first, in at most 40 lines.

First what of the document is not kept, then what is off beside the reference, then the likeliest faults, then what to
run next.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from conformance.catalogue import clauses, likely_faults
from conformance.model.clauses.document import Clause, Specification
from conformance.model.groups import grouped
from conformance.model.judging import verdict as verdicts
from conformance.model.judging.kinds import KindRule
from conformance.model.judging.session import Finding
from conformance.support.console import one_line

#: the most violations of clauses, lines about zones, and faults that are named
_MOST_CLAUSES, _MOST_ZONES, _MOST_FAULTS = 10, 5, 5


def lines(
    specification: Specification, algorithm: str, findings: Iterable[Finding], options: str, is_smoke: bool
) -> Iterator[str]:
    """Yield the lines about an algorithm. `options`: those that choose the stack, for commands to run next."""
    by_clause = {clause.id: clause for clause in specification.clauses}
    of_clauses = {by_clause[f.verdict.zone_id]: f for f in findings if f.verdict.zone_id in by_clause}
    others = [f for f in findings if f.verdict.zone_id not in by_clause]
    violated = [by_clause[f.verdict.zone_id] for f in clauses.likeliest_first(filter(_violates, of_clauses.values()))]
    counted = verdicts.counts(finding.verdict.status for finding in of_clauses.values())
    yield f"{specification.document}, {len(of_clauses)} clauses: {counted}"
    for clause in violated[:_MOST_CLAUSES]:
        yield from _clause(clause, of_clauses[clause])
    if len(violated) > _MOST_CLAUSES:
        yield f"  and {len(violated) - _MOST_CLAUSES} more: {', '.join(c.id for c in violated[_MOST_CLAUSES:])}"
    yield from _zones(others)
    yield from _faults(of_clauses)
    yield from _next(violated, algorithm, any(map(_violates, others)), options, is_smoke)


def _violates(finding: Finding) -> bool:
    return finding.verdict.status.against and not finding.unconfirmed


def _clause(clause: Clause, finding: Finding) -> Iterator[str]:
    verdict, observable = finding.verdict, clause.observable
    claimed = clauses.rule(finding).clause
    yield f"  {clause.section}: {clause.text} ({clause.id})"
    if verdict.value is not None:
        measured = f"{verdict.value:.{observable.digits}f} {observable.unit}".strip()
        yield one_line(f"    measured {measured}, asked {claimed.permitted}: {observable.title}")
    else:  # it fails
        yield one_line(f"    {verdict.reason}")


def _zones(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield how each kind of cells that is off compares with the reference, and which places of other zones are."""
    if not findings:
        return
    counted = verdicts.counts(finding.verdict.status for finding in findings)
    yield f"beside the reference, {len(findings)} questions: {counted}"
    violating = list(filter(_violates, findings))
    kinds = [_kind(finding) for finding in violating if finding.noun == KindRule.noun]
    by_zone = grouped((finding.verdict.zone_id, finding) for finding in violating if finding.noun != KindRule.noun)
    off = kinds + [f"  {zone_id}: {', '.join(map(_place, of_zone))}" for zone_id, of_zone in by_zone.items()]
    yield from off[:_MOST_ZONES]
    if len(off) > _MOST_ZONES:
        yield f"  and {len(off) - _MOST_ZONES} more zones"


def _kind(finding: Finding) -> str:
    verdict = finding.verdict
    where = f"  {verdict.zone_id}, {verdict.place.id}"
    if verdict.what == "unevenness" or verdict.value is None:
        return f"{where}: {verdict.reason}"
    permitted = f"{verdict.permitted.low:.2f} to {verdict.permitted.high:.2f}"
    far = f", farthest at {finding.at.id}" if finding.at else ""
    return f"{where}: {verdict.value:.2f} of the reference's, permitted {permitted}{far}"


def _place(finding: Finding) -> str:
    verdict = finding.verdict
    if verdict.value is None:
        return verdict.place.id
    side = "above" if verdict.value > verdict.permitted.high else "below"
    bound = verdict.permitted.high if side == "above" else verdict.permitted.low
    return f"{verdict.place.id} {verdict.value:.3g}, {side} {bound:.3g}"


def _faults(of_clauses: Mapping[Clause, Finding]) -> Iterator[str]:
    # An older draft's bound says nothing of how a stack departs from the newest.
    newest = {clause: f for clause, f in of_clauses.items() if clauses.rule(f).clause == clause}
    amounts = {clause.id: finding.verdict.value for clause, finding in newest.items()}
    likely = likely_faults.by_chapter({of: amount for of, amount in amounts.items() if amount is not None})
    if likely:
        yield "likeliest faults, by chapters of the draft, and what they explain:"
        yield from (f"  {faults}" for faults in likely[:_MOST_FAULTS])


def _next(violated: Sequence[Clause], algorithm: str, is_off: bool, options: str, is_smoke: bool) -> Iterator[str]:
    if is_smoke or violated or is_off:
        yield "next:"
    if is_smoke:
        yield f"  pytest -m {algorithm}{options}   # all clauses, and all zones"
    for clause in violated[:1]:
        yield f"  conformance clause show {clause.id}   # what it asks for, in which network, and why"
        yield f'  pytest -m "{algorithm} and {clause.specification}" -k {clause.id}{options}   # this one alone'
    if violated or is_off:
        yield f"  conformance why {algorithm}{options}   # what its packets show beside the reference's"

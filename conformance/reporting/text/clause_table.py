"""Render recorded verdicts on clauses as Markdown: which stacks conform, which violate, and the evidence.

Pages leave out the evidence, and what conforming stacks measured: both are long, and reports and
`conformance dev clause table` show them.
"""

import itertools
from collections.abc import Iterable, Sequence

from conformance.catalogue.clause_record import ClauseEntry
from conformance.model.clauses.document import Clause, Specification
from conformance.model.groups import grouped
from conformance.reporting import recorded
from conformance.reporting.text import markdown

#: the algorithms of clauses that do not name theirs
_USUAL = ("reno", "cubic")
#: verdicts by which a clause is neither kept nor broken; tables name all but the first
_OPEN = ("inconclusive", "error", "unsupported", "not judged")


def lines(specification: Specification, record: Sequence[ClauseEntry], proven: bool = True) -> list[str]:
    """Return a specification's section: its clauses with the verdicts on stacks and, if `proven`, the values
    of those that conform and the evidence of violations.
    """
    by_clause = [(clause, [entry for entry in record if entry.clause == clause.id]) for clause in specification.clauses]
    table = [f"## {specification.document}: {specification.title}", ""]
    table += _table(
        ("clause", "says", "permitted", "conforms", "violates", "open or not visible"),
        (_row(clause, entries, proven) for clause, entries in by_clause),
    )
    evidence = [
        _evidence(clause, entry)
        for clause, entries in by_clause
        for entry in entries
        if entry.verdict == "violates" and entry.seen
    ]
    if proven and evidence:
        table += ["", "Evidence of violations:", ""]
        table += _table(("clause", "implementation", "measured", "trials", "example"), evidence)
    if specification.not_visible:
        table += ["", "Not judged, because no packet shows it:", ""]
        table += _table(("section", "says", "why not"), [(c.section, c.text, c.why) for c in specification.not_visible])
    return table


def page(specifications: Iterable[Specification], record: Sequence[ClauseEntry], proven: bool = True) -> list[str]:
    """Return the lines of several specifications, with a blank line between; see lines()."""
    parts = [lines(specification, record, proven) for specification in specifications]
    return list(itertools.chain.from_iterable(part if not at else ["", *part] for at, part in enumerate(parts)))


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return markdown.table(header, [[markdown.Raw(cell) for cell in row] for row in rows])


def _row(clause: Clause, entries: Sequence[ClauseEntry], proven: bool) -> list[str]:
    conform = [entry for entry in entries if entry.verdict == "conforms"]
    return [
        f"{clause.id}<br>{clause.section}, {clause.level}",
        clause.text + ("" if clause.algorithms == _USUAL else f"<br>({', '.join(clause.algorithms)})"),
        f"{clause.observable.title}: {clause.permitted.replace('at most ', '≤').replace('at least ', '≥')}",
        _who(clause, conform, "conforms") if proven else _names(clause, conform),
        *(_who(clause, entries, *verdicts) for verdicts in (("violates",), _OPEN)),
    ]


def _who(clause: Clause, entries: Sequence[ClauseEntry], *verdicts: str) -> str:
    """Return the stacks with these verdicts, each with its algorithm and the measured value."""
    by_stack: dict[str, list[str]] = {}
    for entry in entries:
        if entry.verdict in verdicts:
            stack, algorithm = _who_is(entry)
            value = "" if entry.value is None else f"{entry.value:.{clause.observable.digits}f}"
            status = f"({recorded.status(entry)})" if entry.verdict in _OPEN[1:] else ""
            by_stack.setdefault(stack, []).append(" ".join(part for part in (algorithm, value, status) if part))
    return "; ".join(f"{stack} {', '.join(values)}" for stack, values in by_stack.items())


def _names(clause: Clause, entries: Iterable[ClauseEntry]) -> str:
    """Return the mutants and stacks of these entries, each stack with its algorithms unless they are the clause's."""
    algorithms = grouped((_who_is(entry)[0], entry.algorithm) for entry in entries)
    return ", ".join(
        who if who.startswith("`") or set(names) == set(clause.algorithms) else f"{who} ({', '.join(names)})"
        for who, names in algorithms.items()
    )


def _who_is(entry: ClauseEntry) -> tuple[str, str]:
    """Return a stack's name and algorithm, or a mutant's id, which has the algorithm."""
    return (f"`{entry.who.partition(' ')[2]}`", "") if entry.is_of_mutant else (entry.who, entry.algorithm)


def _evidence(clause: Clause, entry: ClauseEntry) -> list[str]:
    return [
        clause.id,
        f"{' '.join(_who_is(entry)).strip()}, {entry.scheme.rpartition('/')[2]}",
        recorded.measured(clause, entry),
        str(entry.trials),
        recorded.example(entry),
    ]

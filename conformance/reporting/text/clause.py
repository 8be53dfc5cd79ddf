"""Show clauses, and the verdicts on them with their evidence, in a terminal."""

from typing import TYPE_CHECKING

import rich.console

from conformance.catalogue import clauses
from conformance.model.groups import grouped
from conformance.reporting.text import clause_table
from conformance.support.console import table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.clause import ClauseList, ClauseVerdicts, FailingClauses, ShownClause, Tabled
    from conformance.model.clauses.document import Bound, Clause

#: most clauses that a stack fails and that are named in a line
_MOST_FAILED = 6


def failing(failing_clauses: "FailingClauses") -> str:
    """Return which clauses a stack fails, and the command that judges the build at hand."""
    judge = f"`{failing_clauses.command}` judges it"
    if failing_clauses.version is None:
        return f"clauses: no verdict on {failing_clauses.scheme} is recorded; {judge}"
    named = [f"{clause.id} ({clause.source}, {clause.level})" for clause in failing_clauses.failed[:_MOST_FAILED]]
    more = (
        f" and {len(failing_clauses.failed) - _MOST_FAILED} more" if len(failing_clauses.failed) > _MOST_FAILED else ""
    )
    of = failing_clauses.scheme if failing_clauses.recorded else f"version {failing_clauses.version}"
    fails = (
        f"{len(failing_clauses.failed)} of {failing_clauses.judged} clauses{': ' * bool(named)}{', '.join(named)}{more}"
    )
    show = f"; `conformance clause show {failing_clauses.failed[0].id}` says what one asks for" if named else ""
    other = "" if failing_clauses.recorded else f"; this is {failing_clauses.scheme}: {judge}"
    return f"clauses: {of} fails {fails}, as recorded{show}{other}"


def show_listed(listed: "ClauseList", console: rich.console.Console) -> None:
    """Show the clauses, document by document."""
    for specification in listed.specifications:
        console.print(
            f"{specification.name}: {specification.title} ({specification.url})", style="bold", soft_wrap=True
        )
        rows = [(clause.id, clause.section, clause.level, clause.text) for clause in specification.clauses]
        rows += [("-", of.section, "not judged", f"{of.text} ({of.why})") for of in specification.not_visible]
        console.print(table((), rows, box=None, show_header=False))


def show_shown(shown: "ShownClause", console: rich.console.Console) -> None:
    """Show what a clause says, and how it is tested."""
    clause = shown.clause
    others = "".join(f"; also {place}" for place in clause.others)
    console.print(f"{clause.id} ({clause.source}, {clause.level}{others})", style="bold", soft_wrap=True)
    rows = (
        ("clause", clause.text),
        ("applies to", f"{', '.join(clause.algorithms)} over {' and '.join(clause.transports)}"),
        ("network", clause.network.words),
        ("observable", f"{clause.observable.name}: {clause.observable.title}"),
        ("permitted", f"{clause.bound.words(clause.observable.digits)}: {clause.bound.why}"),
        *(("until", f"{draft}: {_differs(clause, older)}") for older, draft in {o: d for d, o in clause.older}.items()),
        ("trials", f"at least {clause.trials}"),
        ("hidden by", clause.invisible),
    )
    for title, text in rows:
        console.print(f"  {title:11} {text}", soft_wrap=True)


def _differs(clause: "Clause", older: "Bound | str") -> str:
    """Return what an older draft has instead."""
    if isinstance(older, str):
        return f"not asked: {older}"
    return f"{older.words(clause.observable.digits)}: {older.why}"


def show_tabled(tabled: "Tabled", console: rich.console.Console) -> None:
    """Print the recorded verdicts as Markdown."""
    for line in clause_table.page(tabled.specifications, tabled.record):
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def show_ran(ran: "ClauseVerdicts", console: rich.console.Console) -> None:
    """Show the verdict on each clause; if it does not conform, show all that is known."""
    for finding in ran.findings:
        rule, verdict = clauses.rule(finding), finding.confirmed
        if verdict.status.passes:
            console.print(f"{finding.scheme} {verdict.status} {rule.id}: {rule.measured(verdict)}", soft_wrap=True)
            continue
        console.print(
            rule.headline(finding.scheme or finding.algorithm, verdict),
            style="red" if verdict.status.against else "",
            soft_wrap=True,
        )
        for title, text in rule.lines(verdict):
            console.print(f"  {title:10} {text}", soft_wrap=True)
    by_algorithm = grouped((finding.algorithm, clauses.rule(finding).clause) for finding in ran.against)
    for algorithm, (first, *others) in by_algorithm.items():
        if later := [clause.id for clause in others if clause.stage > first.stage]:
            also = f"the same fault may cause {', '.join(later)}, too"
            console.print(f"read first: {first.id} ({algorithm}); {also}", soft_wrap=True)
    console.print(f"results: {ran.results}", soft_wrap=True)

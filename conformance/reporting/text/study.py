"""Show the results of `conformance study` in a terminal and as Markdown."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.studies import claims
from conformance.model.studies.claims import Judged, Verdict
from conformance.model.studies.study import Claim
from conformance.reporting.text import markdown
from conformance.support.console import count

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.study import Board, Listed, Told

_STYLES = {
    Verdict.REPRODUCED: "green", Verdict.DIFFERS: "red", Verdict.INCONCLUSIVE: "yellow", Verdict.NOT_JUDGED: "dim",
}  # fmt: skip
#: most findings shown of one claim; those that do not hold come first
_MOST_FINDINGS = 4


def show_told(told: "Told", console: rich.console.Console) -> None:
    """Show what the study scales, its anchors, and each claim with its verdict and the findings behind it."""
    study = told.study
    console.print(f"{study.name}: {study.title}", style="bold", soft_wrap=True)
    console.print(_source(told), soft_wrap=True)
    for scaled in study.scaled:
        console.print(f"scaled: {scaled['what']}: {scaled['why']}", soft_wrap=True)
    for name, scenario in study.scenarios.items():
        console.print(f"scenario {name}: {scenario.title}", style="dim", soft_wrap=True)
    for name, judged in told.judgment.anchors.items():
        console.print(_line(f"anchor {name}", judged), soft_wrap=True)
        _show_findings(judged, console)
    for claim, judged in told.judgment.claims:
        console.print(_line(f"{claim.id} ({claim.place})", judged), soft_wrap=True)
        console.print(f"  {claim.says}; published: {claim.published}", soft_wrap=True)
        if judged.verdict is not Verdict.NOT_JUDGED:
            _show_findings(judged, console)
        if judged.why:
            console.print(f"  {judged.why}", style="dim", soft_wrap=True)
        if judged.verdict is Verdict.DIFFERS and claim.difference:
            console.print(f"  likeliest cause: {claim.difference}", soft_wrap=True)
    console.print(summary(told), style="bold", soft_wrap=True)


def _line(what: str, judged: Judged) -> rich.text.Text:
    part = f", {judged.part}" if judged.part else ""
    return rich.text.Text.assemble((str(judged.verdict), _STYLES[judged.verdict]), f" {what}{part}")


def _show_findings(judged: Judged, console: rich.console.Console) -> None:
    for words in findings(judged):
        console.print(f"    {words}", soft_wrap=True)


def findings(judged: Judged) -> Iterator[str]:
    """Yield a line for each place that was judged, those that do not hold first, then how many more there are."""
    order = {False: 0, None: 1, True: 2}
    known = sorted((one for one in judged.findings if one.why is None), key=lambda one: order[one.holds])
    held = {True: "holds", False: "does not hold", None: "is undecided"}
    for one in known[:_MOST_FINDINGS]:
        where = f"{one.instance.where}: " if one.instance.where else ""
        yield f"{where}{'; '.join(claims.words_of(one))}: {one.instance.relation.words}: {held[one.holds]}"
    if len(known) > _MOST_FINDINGS:
        yield f"and {count(len(known) - _MOST_FINDINGS, 'more place')}"


def _source(told: "Told") -> str:
    source = told.study.source
    return ", ".join(filter(None, [source.get("authors"), source["title"], source["published"]]))


def summary(told: "Told") -> str:
    """Return one line that says how many claims have each verdict, and how much was measured."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in told.judgment.counts.items())
    tier = "" if told.tier is None else f"{told.tier} tier; "
    schemes = f" of {', '.join(told.schemes)}" if told.schemes else ""
    others = f", {told.referenced} more known from references of zones" if told.referenced else ""
    return f"{told.study.name}: {tier}{counts}; {told.measured} of {told.points} points measured{schemes}{others}"


def as_markdown(told: "Told") -> str:
    """Return the scoreboard as Markdown: a row for each claim."""
    rows = []
    for claim, judged in told.judgment.claims:
        part = f" ({judged.part})" if judged.part else ""
        rows.append((claim.id, claim.says, claim.published, " / ".join(_seen(judged)), f"{judged.verdict}{part}",
                     _remark(claim, judged)))  # fmt: skip
    header = ("claim", "says", "published", "seen", "verdict", "remark")
    title, source, results = map(markdown.plain, (told.study.title, _source(told), summary(told)))
    lines = [f"### {title}", "", source, "", results, ""]
    lines += [f"- Scaled: {markdown.plain(one['what'])}: {markdown.plain(one['why'])}" for one in told.study.scaled]
    return "\n".join([*lines, "", *markdown.table(header, rows)]) + "\n"


def _seen(judged: Judged) -> list[str]:
    return [] if judged.verdict is Verdict.NOT_JUDGED else list(findings(judged))


def _remark(claim: Claim, judged: Judged) -> str:
    """Return why a claim is not judged, or the likeliest cause of a difference."""
    if judged.verdict is Verdict.DIFFERS and claim.difference:
        return f"likeliest cause: {claim.difference}"
    return judged.why or ""


def show_board(board: "Board", console: rich.console.Console) -> None:
    """Show how many claims have each verdict, of each study and of all."""
    table = rich.table.Table(box=None)
    for name in _BOARD:
        table.add_column(name, justify="left" if name == _BOARD[0] else "right")
    for row in _board_rows(board):
        table.add_row(*row[: len(_BOARD)])
    console.print(table)
    for words in map(_costs, board.studies):
        console.print(words, soft_wrap=True)
    for one in board.studies:
        if one.referenced:
            words = f"{one.study.name}: {count(one.referenced, 'more point')} known from references of zones"
            console.print(words, soft_wrap=True)


def _costs(told: "Told") -> str:
    """Return in words what the tiers of a study cost, as far as they were measured."""
    parts = (
        f"{tier} tier {seconds / 60:.1f} core-minutes ({points} of {count(len(told.study.points[tier]), 'point')})"
        for tier, (points, seconds) in told.core_s.items()
    )
    return f"{told.study.name}: {', '.join(parts)}"


_BOARD = ("study", "claims", *map(str, Verdict), "points measured")
#: a further column, for which only Markdown has room
_BY_ZONES = "further points known from references of zones"


def _board_rows(board: "Board") -> Iterator[tuple[str, ...]]:
    for one in board.studies:
        counts = (str(one.judgment.counts[verdict]) for verdict in Verdict)
        known = f"{one.measured} of {one.points}", str(one.referenced)
        yield one.study.name, str(len(one.study.claims)), *counts, *known
    every = (str(board.counts[verdict]) for verdict in Verdict)
    yield "all", str(sum(len(one.study.claims) for one in board.studies)), *every, "", ""


def board_markdown(board: "Board") -> str:
    """Return the counts as Markdown, and each study's scoreboard."""
    counts = "\n".join(markdown.table((*_BOARD, _BY_ZONES), list(_board_rows(board))))
    costs = [f"- {_costs(one)}" for one in board.studies]
    return "\n".join([counts, "", *costs, "", *map(as_markdown, board.studies)])


def show_listed(listed: "Listed", console: rich.console.Console) -> None:
    """Show the name, size and title of each study."""
    table = rich.table.Table(box=None)
    for name in ("study", "claims", "smoke", "full", "what"):
        table.add_column(name, justify="right" if name in ("claims", "smoke", "full") else "left")
    for one in listed.studies:
        sizes = [f"{len(one.points[tier])} x {one.trials[tier]}" for tier in ("smoke", "full")]
        table.add_row(one.name, str(len(one.claims)), *sizes, one.title)
    console.print(table)

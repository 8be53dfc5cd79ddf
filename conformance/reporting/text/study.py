"""Show the results of `conformance study` in a terminal and as Markdown."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import rich.console
import rich.table
import rich.text

from conformance.model.studies import claims
from conformance.model.studies.claims import ClaimVerdict, JudgedClaim
from conformance.model.studies.study import Claim
from conformance.reporting.text import markdown
from conformance.support.console import count, table

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.study import Board, StudyList, StudyState

_STYLES = {
    ClaimVerdict.REPRODUCED: "green", ClaimVerdict.DIFFERS: "red", ClaimVerdict.INCONCLUSIVE: "yellow",
    ClaimVerdict.NOT_JUDGED: "dim",
}  # fmt: skip
#: most findings shown of one claim; those that do not hold come first
_MOST_FINDINGS = 4


def show_told(results: "StudyState", console: rich.console.Console) -> None:
    """Show what the study scales, its anchors, and each claim with its verdict and the findings behind it."""
    study = results.study
    console.print(f"{study.name}: {study.title}", style="bold", soft_wrap=True)
    console.print(_source(results), soft_wrap=True)
    for scaled in study.scaled:
        console.print(f"scaled: {scaled['what']}: {scaled['why']}", soft_wrap=True)
    for name, scenario in study.scenarios.items():
        console.print(f"scenario {name}: {scenario.title}", style="dim", soft_wrap=True)
    for name, judged in results.judgment.anchors.items():
        console.print(_line(f"anchor {name}", judged), soft_wrap=True)
        _show_findings(judged, console)
    for claim, judged in results.judgment.claims:
        console.print(_line(f"{claim.id} ({claim.place})", judged), soft_wrap=True)
        console.print(f"  {claim.says}; published: {claim.published}", soft_wrap=True)
        if judged.verdict is not ClaimVerdict.NOT_JUDGED:
            _show_findings(judged, console)
        if judged.why:
            console.print(f"  {judged.why}", style="dim", soft_wrap=True)
        if judged.verdict is ClaimVerdict.DIFFERS and claim.difference:
            console.print(f"  likeliest cause: {claim.difference}", soft_wrap=True)
    console.print(summary(results), style="bold", soft_wrap=True)


def _line(what: str, judged: JudgedClaim) -> rich.text.Text:
    part = f", {judged.part}" if judged.part else ""
    return rich.text.Text.assemble((str(judged.verdict), _STYLES[judged.verdict]), f" {what}{part}")


def _show_findings(judged: JudgedClaim, console: rich.console.Console) -> None:
    for words in findings(judged):
        console.print(f"    {words}", soft_wrap=True)


def findings(judged: JudgedClaim) -> Iterator[str]:
    """Yield a line for each place that was judged, those that do not hold first, then how many more there are."""
    order = {False: 0, None: 1, True: 2}
    known = sorted(
        (finding for finding in judged.findings if finding.why is None), key=lambda finding: order[finding.holds]
    )
    held = {True: "holds", False: "does not hold", None: "is undecided"}
    for finding in known[:_MOST_FINDINGS]:
        where = f"{finding.instance.where}: " if finding.instance.where else ""
        yield f"{where}{'; '.join(claims.words_of(finding))}: {finding.instance.relation.words}: {held[finding.holds]}"
    if len(known) > _MOST_FINDINGS:
        yield f"and {count(len(known) - _MOST_FINDINGS, 'more place')}"


def _source(results: "StudyState") -> str:
    source = results.study.source
    return ", ".join(filter(None, [source.get("authors"), source["title"], source["published"]]))


def summary(results: "StudyState") -> str:
    """Return one line that says how many claims have each verdict, and how much was measured."""
    counts = ", ".join(f"{number} {verdict}" for verdict, number in results.judgment.counts.items())
    tier = "" if results.tier is None else f"{results.tier} tier; "
    schemes = f" of {', '.join(results.schemes)}" if results.schemes else ""
    others = f", {results.referenced} more known from references of zones" if results.referenced else ""
    return (
        f"{results.study.name}: {tier}{counts}; {results.measured} of {results.points} points measured{schemes}{others}"
    )


def as_markdown(report: "StudyState") -> str:
    """Return the scoreboard as Markdown: a row for each claim."""
    rows = []
    for claim, judged in report.judgment.claims:
        part = f" ({judged.part})" if judged.part else ""
        shown = " / ".join(findings(judged) if judged.verdict is not ClaimVerdict.NOT_JUDGED else ())
        rows.append((claim.id, claim.says, claim.published, shown, f"{judged.verdict}{part}", _remark(claim, judged)))
    header = ("claim", "says", "published", "seen", "verdict", "remark")
    title, source, results = map(markdown.plain, (report.study.title, _source(report), summary(report)))
    lines = [f"### {title}", "", source, "", results, ""]
    lines += [
        f"- Scaled: {markdown.plain(scaling['what'])}: {markdown.plain(scaling['why'])}"
        for scaling in report.study.scaled
    ]
    return "\n".join([*lines, "", *markdown.table(header, rows)]) + "\n"


def _remark(claim: Claim, judged: JudgedClaim) -> str:
    """Return why a claim is not judged, or the likeliest cause of a difference."""
    if judged.verdict is ClaimVerdict.DIFFERS and claim.difference:
        return f"likeliest cause: {claim.difference}"
    return judged.why or ""


def show_board(board: "Board", console: rich.console.Console) -> None:
    """Show how many claims have each verdict, of each study and of all."""
    rows = (row[: len(_BOARD)] for row in _board_rows(board))
    console.print(table(_BOARD, rows, _BOARD[1:], box=None))
    for words in map(_costs, board.studies):
        console.print(words, soft_wrap=True)
    for study in board.studies:
        if study.referenced:
            words = f"{study.study.name}: {count(study.referenced, 'more point')} known from references of zones"
            console.print(words, soft_wrap=True)


def _costs(results: "StudyState") -> str:
    """Return in words what the tiers of a study cost, as far as they were measured."""
    parts = (
        f"{tier} tier {seconds / 60:.1f} core-minutes ({points} of {count(len(results.study.points[tier]), 'point')})"
        for tier, (points, seconds) in results.core_s.items()
    )
    return f"{results.study.name}: {', '.join(parts)}"


_BOARD = ("study", "claims", *map(str, ClaimVerdict), "points measured")
#: a further column, for which only Markdown has room
_BY_ZONES = "further points known from references of zones"


def _board_rows(board: "Board") -> Iterator[tuple[str, ...]]:
    for study in board.studies:
        counts = (str(study.judgment.counts[verdict]) for verdict in ClaimVerdict)
        known = f"{study.measured} of {study.points}", str(study.referenced)
        yield study.study.name, str(len(study.study.claims)), *counts, *known
    every = (str(board.counts[verdict]) for verdict in ClaimVerdict)
    yield "all", str(sum(len(study.study.claims) for study in board.studies)), *every, "", ""


def board_markdown(board: "Board") -> str:
    """Return the counts as Markdown, and each study's scoreboard."""
    counts = "\n".join(markdown.table((*_BOARD, _BY_ZONES), list(_board_rows(board))))
    costs = [f"- {_costs(study)}" for study in board.studies]
    return "\n".join([counts, "", *costs, "", *map(as_markdown, board.studies)])


def show_listed(listed: "StudyList", console: rich.console.Console) -> None:
    """Show the name, size and title of each study."""
    rows = []
    for study in listed.studies:
        sizes = [f"{len(study.points[tier])} x {study.trials[tier]}" for tier in ("smoke", "full")]
        rows.append((study.name, str(len(study.claims)), *sizes, study.title))
    console.print(table(("study", "claims", "smoke", "full", "what"), rows, ("claims", "smoke", "full"), box=None))

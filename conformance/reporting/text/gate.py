"""Show the result of `conformance gate`: lines in a terminal, and a folder that CI systems read.

The folder OUT has summary.md, gate.json, summary.json, badge.json, badge.svg, bencher.json, junit.xml, results.jsonl
and site/; for each algorithm that violates, it also has why/ALGORITHM.json and .svg.
"""

import collections
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import rich.console

from conformance.catalogue import baseline, documents
from conformance.catalogue.clauses import rule as rule_of
from conformance.model.judging.expectation import UNEXPLAINED, Surprise
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import CONFIDENCE, Says, Status, Verdict, counts, false_alarms
from conformance.model.rounding import digits_to_tell
from conformance.model.trials.trial import Measurement
from conformance.reporting import heatmaps
from conformance.reporting.html import site
from conformance.reporting.text import compare as compare_text, markdown
from conformance.reporting.tools import badge, bencher, export, junit
from conformance.results import merge, source, store
from conformance.support import files
from conformance.support.console import count, duration, one_line

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.gate import Clauses, GateResult
    from conformance.commands.gate_budget import Spent

#: most findings, and most unmeasured cells, that are named; the site has the others
_MOST_NAMED = 20
_MOST_UNMEASURED = 6
#: decimals of values and bounds in a sentence; there are more if these do not tell them apart
_DIGITS = 3
#: the indentation of a line that continues the one before
_FURTHER = "    "
#: the files that say how a gate ended
VERDICT = ("summary.md", "gate.json", "summary.json", "badge.json", "bencher.json", "badge.svg", "junit.xml")
#: the exit statuses ERROR and UNKNOWN (conformance/commands/status.py)
_ERROR, _UNKNOWN = 3, 4
ENDS = {0: "passes", 1: "fails", _ERROR: "cannot tell: error", _UNKNOWN: "cannot tell"}


def show(outcome: "GateResult", console: rich.console.Console) -> None:
    """Show in a terminal what the Markdown says."""
    for line in (*_lines(outcome, one_line), f"gate {_ending(outcome)}"):
        console.print(line, soft_wrap=True)


def write(
    outcome: "GateResult", document: Mapping[str, Any], measurements: Iterable[Measurement], target: pathlib.Path
) -> heatmaps.Drawn:
    """Write the folder `target` from this run's measurements alone; return what reports show. Raises UserError.

    `document`: what `--format json` prints of the outcome.
    """
    drawn = heatmaps.Drawn()
    named: Sequence[source.File] = ()
    clear(target)
    lines = b"".join(map(store.dumps, sorted(measurements, key=lambda m: merge.order(m.trial))))
    results = files.write(target / "results.jsonl", lines, files.OTHER_FOLDER)
    if lines:
        read = source.Source([results])
        drawn = heatmaps.drawn(read.measurements)
        named = read.files
    contents: dict[str, str | bytes] = {
        "summary.md": summary(outcome, drawn),
        "gate.json": json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n",
        "summary.json": export.summary_json(drawn.series, named),
        "badge.json": badge.endpoint(drawn),
        "bencher.json": bencher.render(drawn.series),
        "badge.svg": badge.svg(drawn),
        "junit.xml": junit.render(outcome, lambda finding: "; ".join(_told(outcome, finding))),
    }
    for name, content in contents.items():
        files.write(target / name, content, files.OTHER_FOLDER)
    if lines:
        # The site comes last: it takes seconds, in which CI may end the command.
        site.write(read, target / "site", {at: blamed.sentence for at, blamed in outcome.blamed.items()})
    return drawn


def clear(target: pathlib.Path) -> None:
    """Remove an earlier run's verdict, and what looked wrong with any algorithm. Raises UserError."""
    verdict = (target / name for name in (*VERDICT, "site/index.html"))
    algorithms = {path.parent.name for path in documents.judging_files()}
    with files.errors(target, files.OTHER_FOLDER):
        for stale in (*verdict, *(file for algorithm in algorithms for file in _why_files(target, algorithm))):
            stale.unlink(missing_ok=True)


def add_why(
    outcome: "GateResult",
    drawn: heatmaps.Drawn,
    reports: Mapping[str, Any],
    target: pathlib.Path,
    write_report: Callable[[Any, pathlib.Path, pathlib.Path], None],
) -> None:
    """Add to the folder what looks wrong: the files in why/, and a part of summary.md. Raises UserError.

    `reports`: {algorithm: what `conformance why` found}; `write_report` writes a report as JSON and as SVG.
    """
    from conformance.reporting.text import why as why_text  # imported late: drawing libraries take seconds

    for algorithm, report in reports.items():
        write_report(report, *_why_files(target, algorithm))
    text = ["### What looks wrong", ""]
    for report in reports.values():
        text += [*why_text.lines(report), ""]
    files.write(target / "summary.md", summary(outcome, drawn, text), files.OTHER_FOLDER)


def _why_files(target: pathlib.Path, algorithm: str) -> tuple[pathlib.Path, pathlib.Path]:
    return (target / "why" / f"{algorithm}.json", target / "why" / f"{algorithm}.svg")


def summary(outcome: "GateResult", drawn: heatmaps.Drawn, further: Sequence[str] = ()) -> str:
    """Return Markdown: whether the gate passes and why, what looks wrong (the lines `told`), then the schemes."""
    lines = [f"### Gate {_ending(outcome)}", "", *map(_item, _lines(outcome, markdown.span))]
    if outcome.features is not None:
        lines += ["", "#### What moved since the baseline", "", *compare_text.lines(outcome.features)]
    if outcome.baseline:
        lines += ["", "The gate judged by the baseline; below, the same results are judged by the zones that ship."]
    known = {
        (f.verdict.zone_id, f.verdict.place): f.expected.words
        for f in outcome.findings
        if f.as_expected and f.expected is not None
    }
    schemes = markdown.render(
        drawn.series, known=lambda zone_id, place: known.get((zone_id, place)), of_points=drawn.rows
    )
    return "\n".join([*lines, "", *further, schemes])


def _item(line: str) -> str:
    return f"{_FURTHER}- {line.removeprefix(_FURTHER)}" if line.startswith(_FURTHER) else f"- {line}"


def _lines(outcome: "GateResult", quote: Callable[[str], str]) -> Iterator[str]:
    """Yield the lines before the one that says how the gate ends. `quote` makes text from stacks and users harmless."""
    if outcome.features is not None:
        yield quote(f"features: {compare_text.summary(outcome.features)}")
        for line in (*compare_text.sentences(outcome.features), *compare_text.notes(outcome.features)):
            yield quote(line)
    if outcome.clauses is not None:
        yield from map(quote, _clauses(outcome.clauses))
    for judged in outcome.judged:
        parts = [counts(finding.verdict.status for finding in judged.findings) or "nothing measured"]
        for places, what in ((judged.unmeasured, "not measured in time"), (judged.lost, baseline.LOST)):
            if places:
                named = ", ".join(cell.id for cell in places[:_MOST_UNMEASURED])
                more = ", ..." if len(places) > _MOST_UNMEASURED else ""
                parts.append(f"{len(places)} {what} ({named}{more})")
        yield f"zone {judged.zone.id}, {quote(judged.scheme_id)}: {', '.join(parts)}"
    for failures in outcome.failures:
        yield quote(f"{failures.algorithm} fails, all cells taken together: {failures.words}")
    if any(f.verdict.status.decided or f.verdict.status is Status.INCONCLUSIVE for f in outcome.findings):
        yield f"the gate: {false_alarms(outcome.family)}"
    unknown = [f for f in outcome.findings if f.verdict.status is Status.UNSUPPORTED and not f.as_expected]
    for reason, n in collections.Counter(finding.verdict.reason for finding in unknown).items():
        yield quote(f"unsupported, {count(n, 'verdict')}: {reason}")
    others = [f for f in outcome.findings if f.surprise is not Surprise.UNCONFIRMED]
    failing = [f for f in others if f.surprise.fails or f.status is Status.ERROR]
    open_ = [f for f in others if f.status is Status.INCONCLUSIVE]
    failing += open_ if outcome.strict else [f for f in open_ if f in outcome.perhaps_failing]
    listed = [("not confirmed: ", f) for f in outcome.unconfirmed] + [("", f) for f in failing[:_MOST_NAMED]]
    for how, finding in listed:
        first, *further = _told(outcome, finding)
        yield quote(how + first)
        yield from (_FURTHER + quote(line) for line in further)
    if len(failing) > _MOST_NAMED:
        yield f"and {len(failing) - _MOST_NAMED} more"
    if any(finding.surprise is Surprise.GONE for finding in outcome.findings):
        yield quote(f"to remove what no longer happens from expected.json: {outcome.gone}")
    known = [f.expected for f in outcome.findings if f.as_expected and f.expected is not None]
    if known:
        unexplained = sum(expected.reason == UNEXPLAINED for expected in known)
        yield (
            f"as the stack's expected.json says: {count(len(known), 'verdict')}"
            + (f"; {unexplained} of them {UNEXPLAINED}" if unexplained else "")
        )
    if outcome.spent is not None:
        yield _spent(outcome.spent)
    if outcome.exit_status == _UNKNOWN and not outcome.evidence.half:
        yield f"a gate passes only if half of its {_asked(outcome)} are decided{_needed(outcome)}"
    elif outcome.exit_status == _UNKNOWN and outcome.evidence.unknown_algorithms:
        yield "a gate passes only if a verdict on each algorithm is decided; name those that it is about"
    if outcome.why_options is not None:
        for algorithm in dict.fromkeys(zone.algorithm for zone, _ in outcome.violating):
            yield quote(f"to see what looks wrong: conformance why {algorithm}{outcome.why_options}")


def _clauses(clauses: "Clauses") -> Iterator[str]:
    """Yield how many clauses have which verdict, then the new violations with their evidence."""
    parts = [counts(finding.confirmed.status for finding in clauses.findings) or "none measured"]
    known = ", ".join(f"{f.verdict.zone_id} ({f.algorithm})" for f in clauses.findings if f.as_expected)
    parts += [f"{len(clauses.unmeasured)} not measured in time"] if clauses.unmeasured else []
    yield f"clauses: {', '.join(parts)}" + (f"; violated as on record: {known}" if known else "")
    for finding in clauses.new:
        rule = rule_of(finding)
        first, *further = rule.headline(finding.scheme, finding.verdict).splitlines()
        yield first
        yield from (f"{_FURTHER}{line.strip()}" for line in further)
        yield from (f"{_FURTHER}{title:10} {text}" for title, text in rule.lines(finding.verdict))


def _spent(spent: "Spent") -> str:
    wall = f"the budget: {duration(spent.wall_s)} of wall time"
    if spent.share is None or spent.processor_s is None:
        return f"{wall}; workers made the trials"
    return f"{wall} on {count(spent.cores, 'core')}, {spent.share:.0%} of it processor time"


def _asked(outcome: "GateResult") -> str:
    """Return the verdicts that a gate rests on: "41 smoke verdicts"."""
    evidence = outcome.evidence
    return count(evidence.chosen, "smoke verdict" if evidence.smoke else "verdict")


def _needed(outcome: "GateResult") -> str:
    """Return how much more time the undecided verdicts need, as the end of a sentence; "" if time was not limited."""
    if outcome.spent is None:
        return ""
    if outcome.spent.needed_s is None:
        return "; too few trials were made to tell how much more time that takes"
    if not outcome.spent.needed_s:
        return "; more time would not help"
    return f"; the others need about {duration(outcome.spent.needed_s)} more, and the same command goes on from here"


def _ending(outcome: "GateResult") -> str:
    """Return how the gate ends, and how many verdicts decide that: "fails: 1 unexpected of 68 verdicts (...)"."""
    findings = [finding for finding in outcome.findings if finding.status is not Status.NOT_JUDGED]
    unconfirmed = len(outcome.unconfirmed)
    others = [f for f in findings if not f.as_expected]
    unexpected, known = len(outcome.surprises), sum(finding.as_expected for finding in findings)
    unsupported = sum(f.status is Status.UNSUPPORTED for f in others)
    inconclusive = sum(f.status is Status.INCONCLUSIVE and not f.unconfirmed for f in others)
    left = sum(len(judged.unmeasured) for judged in outcome.judged)
    lost = sum(len(judged.lost) for judged in outcome.judged)
    of = f"of {count(len(findings), 'verdict')}"
    end = ENDS[outcome.exit_status]
    if outcome.exit_status == _ERROR:
        errors = sum(f.status is Status.ERROR for f in others)
        text = f"cannot tell: {count(errors, 'error')} {of}"
    elif outcome.exit_status == _UNKNOWN:
        unknown = sum(f.status.says is Says.OPEN or f.unconfirmed for f in others)
        text = f"cannot tell: {unknown} unknown {of}"
        if not outcome.evidence.half:
            text = f"cannot tell: {outcome.evidence.decided or 'none'} of {_asked(outcome)} decided"
        elif outcome.evidence.unknown_algorithms:
            text = f"cannot tell: no verdict on {', '.join(outcome.evidence.unknown_algorithms)} decided"
        elif outcome.perhaps_failing:
            text = f"cannot tell: {len(outcome.perhaps_failing)} {of} may fail"
    elif outcome.clauses is not None and outcome.clauses.new:
        broken = f"{count(len(outcome.clauses.new), 'clause')} violated"
        text = f"{end}: {broken}, {unexpected or 'nothing'} unexpected {of}"
    elif outcome.moved:
        moved = f"{count(len(outcome.moved), 'feature')} moved"
        text = f"{end}: {moved}, {unexpected or 'nothing'} unexpected {of}"
    elif unexpected or outcome.failures:
        text = f"{end}: {unexpected or 'nothing'} unexpected {of}"
    else:
        text = f"{end}: nothing unexpected in {count(len(findings), 'verdict')}"
    beside = [
        *(
            f"{failures.failed} of {failures.trials} trials of {failures.algorithm} failed"
            for failures in outcome.failures
        ),
        *([f"{unconfirmed} not confirmed"] if unconfirmed else []),
        *(["features unclear"] if outcome.features is not None and outcome.features.exit_status == _UNKNOWN else []),
        *(["no clause decided"] if outcome.clauses is not None and outcome.clauses.nothing else []),
        *([f"{known} as expected.json says"] if known else []),
        *([f"{inconclusive} inconclusive"] if inconclusive else []),
        *([f"{unsupported} unsupported"] if unsupported else []),
        *([f"{left} not measured in time"] if left else []),
        *([f"{lost} without baseline"] if lost else []),
    ]
    return f"{text} ({'; '.join(beside)})" if beside else text


def _told(outcome: "GateResult", finding: Finding) -> list[str]:
    """Return, in words, a finding's verdict, and if there are any, the verdict on fresh seeds and the cause."""
    verdict = finding.verdict
    text = f"{verdict.status} {verdict.zone_id} at {verdict.place.id}: {verdict.words}{_figures(verdict)}"
    if verdict.status is Status.INCONCLUSIVE:
        text += "; --max-trials allows more trials"
    if finding.expected is not None and finding.surprise is not Surprise.NONE:
        text += f"; but {finding.expected.words}"
    elif finding.expected is not None:
        text += f"; known: {finding.expected.reason}"
    if outcome.spent is not None and finding.surprise is Surprise.NEW and finding.again is None:
        text += "; not measured again"
    parts = [text]
    if finding.again is not None:
        parts.append(f"again with fresh seeds: {finding.again.status}: {finding.again.reason}{_figures(finding.again)}")
    if cause := outcome.blamed.get(finding.shown_at):
        parts.append(cause.sentence)
    return parts


def _figures(verdict: Verdict) -> str:
    """Return measured and permitted values as the end of a sentence; "" if nothing was measured."""
    if verdict.value is None or verdict.interval is None:
        return ""
    (low, high), permitted = verdict.interval, verdict.permitted
    digits = digits_to_tell((verdict.value, low, high), permitted.low, permitted.high, _DIGITS)
    return (
        f"; median {verdict.value:.{digits}f} of {verdict.n} trials"
        f" ({CONFIDENCE:.0%} interval {low:.{digits}f}..{high:.{digits}f}),"
        f" permitted {permitted.low:.{digits}f}..{permitted.high:.{digits}f} ({permitted.margin.words})"
    )

"""Write a gate's annotations for GitHub: workflow commands such as `::error title=...::...`, one a line.

Text from stacks and files is escaped as the runner's own toolkit does it (GitHub, "Workflow commands"), so that it
neither ends a line nor begins another command.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from conformance.catalogue import clauses
from conformance.model.groups import grouped
from conformance.model.judging.expectation import Surprise
from conformance.support.console import count, printable

if TYPE_CHECKING:
    from conformance.commands.gate import GateResult
    from conformance.commands.why import Report

#: how many annotations of a step GitHub shows
_MOST = 10
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def annotations(outcome: "GateResult", reports: Mapping[str, "Report"]) -> Iterator[str]:
    """Yield an error for each feature that moved, algorithm that fails in all cells together, clause that is newly
    violated, and zone with unexpected verdicts.

    A zone's error names the first suspect.

    `reports`: {algorithm: what `conformance why` found}.
    """
    yield from list(_errors(outcome, reports))[:_MOST]


def _errors(outcome: "GateResult", reports: Mapping[str, "Report"]) -> Iterator[str]:
    for moved in outcome.moved:
        quantity = moved.quantity
        sentence = outcome.features.sentences.get(quantity, "") if outcome.features else ""
        yield error(
            f"{quantity.algorithm}: {quantity.label} moved", f"{moved.before:.4g} to {moved.after:.4g}; {sentence}"
        )
    for failures in outcome.failures:
        yield error(f"{failures.algorithm} fails", failures.words)
    for finding in outcome.clauses.new if outcome.clauses else ():
        violated = clauses.rule(finding)
        title = f"{finding.algorithm}: {violated.clause.id} {finding.verdict.status}"
        yield error(title, f"{finding.verdict.reason}: {violated.clause.text}")
    by_zone = grouped((finding.verdict.zone_id, finding) for finding in outcome.surprises)
    algorithms = {judged.zone.id: judged.zone.algorithm for judged in outcome.judged}
    for zone_id, findings in by_zone.items():
        first = findings[0].verdict
        gone = all(finding.surprise is Surprise.GONE for finding in findings)
        does = "no longer deviates as expected.json says" if gone else "is not as expected"
        text = f"{does} in {count(len(findings), 'cell')}; {first.status} at {first.place.id}: {first.reason}"
        report = reports.get(algorithms[zone_id])
        if report is not None and report.suspects:
            suspect = report.suspects[0]
            text += f"; first suspect: {suspect.label}: {suspect.evidence[0].sentence}"
        yield error(zone_id, text)


def error(title: str, message: str) -> str:
    """Return the workflow command that shows an error, whatever the two texts contain."""
    return f"::error title={_escaped(title, _PROPERTY)}::{_escaped(message, _DATA)}"


def _escaped(text: str, by: Mapping[str, str]) -> str:
    # The command's own escapes come first; then the control characters that remain are made visible.
    return printable("".join(by.get(c, c) for c in text))

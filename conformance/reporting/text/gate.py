"""What `conformance gate` says: lines in a terminal, and a folder of what CI systems read.

OUT/summary.md, gate.json, summary.json, badge.json, badge.svg, junit.xml, results.jsonl and site/; of what violates,
why/ALGORITHM.json and .svg.
"""

import collections
import json
import math
import re
import xml.etree.ElementTree as xml

from conformance.model.expectation import UNEXPLAINED, Surprise
from conformance.model.metrics import digits_to_tell
from conformance.model.verdict import ALPHA, CONFIDENCE, Status, decided, false_alarms, false_alarms_of_any
from conformance.reporting import heatmaps
from conformance.reporting.html import site
from conformance.reporting.text import markdown
from conformance.reporting.tools import badge, export
from conformance.results import merge, source, store
from conformance.support import files
from conformance.support.console import count, one_line

#: of findings and of cells that are named; the site has the others
_MOST_NAMED = 20
_MOST_UNMEASURED = 6
#: of values and bounds in a sentence, where that is enough to tell them apart
_DIGITS = 3
_ENDS = {0: "passes", 1: "fails", 3: "cannot tell: error", 4: "cannot tell"}
#: what XML 1.0 may hold (W3C, section 2.2); a stack may say anything
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def show(outcome, console):
    """The same as the Markdown, for a terminal."""
    for line in _lines(outcome, one_line):
        console.print(line, soft_wrap=True)


def write(outcome, measurements, target):
    """Write the folder `target` from this run's measurements alone; returns their Series. Raises UserError."""
    series, named = [], ()
    with files.errors(target, files.OTHER_FOLDER):
        for judged in outcome.judged:  # what an earlier run said of these looks like this one's
            for stale in _why_files(target, judged.zone.algorithm):
                stale.unlink(missing_ok=True)
    lines = b"".join(map(store.dumps, sorted(measurements, key=lambda m: merge.order(m.trial))))
    results = files.write(target / "results.jsonl", lines, files.OTHER_FOLDER)
    if measurements:
        made = source.Source([results])
        series, named = heatmaps.all_series(made.measurements), made.files
        site.write(made, target / "site")
    for name, content in {
        "summary.md": summary(outcome, series),
        "gate.json": json.dumps(to_json(outcome), indent=1, sort_keys=True, allow_nan=False) + "\n",
        "summary.json": export.summary_json(series, named),
        "badge.json": badge.endpoint(series),
        "badge.svg": badge.svg(series),
        "junit.xml": junit(outcome),
    }.items():
        files.write(target / name, content, files.OTHER_FOLDER)
    return series


def add_why(outcome, series, reports, target):
    """Say in the folder what looks wrong, too. `reports`: {algorithm: why.Report}. Raises UserError."""
    # Late: they draw, and what draws takes seconds to import.
    from conformance.commands import why
    from conformance.reporting.text import why as showing

    for algorithm, report in reports.items():
        why.write(report, *_why_files(target, algorithm))
    told = ["### What looks wrong", ""]
    for report in reports.values():
        told += [*showing.lines(report), ""]
    files.write(target / "summary.md", summary(outcome, series, told), files.OTHER_FOLDER)


def _why_files(target, algorithm):
    return (target / "why" / f"{algorithm}.json", target / "why" / f"{algorithm}.svg")


def to_json(outcome):
    """A document of schemas/gate.json."""
    return {
        "schema": "gate/1",
        "status": _ENDS[outcome.exit_status],
        "exit_status": outcome.exit_status,
        "strict": outcome.strict,
        "baseline": outcome.baseline,
        "zones": [
            {
                "zone": judged.zone.id,
                "metric": judged.zone.metric,
                "profile": judged.zone.profile,
                "scheme": judged.scheme_id,
                "count": {str(status): n for status, n in judged.count().items()},
                "false_alarms": {"at_most": ALPHA, "cells": len(judged.findings)} if judged.findings else None,
                "not_measured": [cell.id for cell in judged.unmeasured],
                "cells": [_cell(finding) for finding in sorted(judged.findings, key=lambda f: f.verdict.cell)],
            }
            for judged in outcome.judged
        ],
    }


def _cell(finding):
    verdict, expected = finding.verdict, finding.expected
    return {
        "cell": verdict.cell.id,
        "verdict": str(verdict.status),
        "reason": verdict.reason,
        "trials": verdict.n,
        "timeouts": finding.timeouts,
        "median": verdict.value,
        # Of few trials it has no end, and of some that timed out only one.
        "interval": list(verdict.interval) if verdict.interval and all(map(math.isfinite, verdict.interval)) else None,
        "permitted": [verdict.permitted.low, verdict.permitted.high],
        "expected": expected and {"verdict": str(expected.verdict), "reason": expected.reason, "link": expected.link},
        "surprise": None if finding.surprise is Surprise.NONE else str(finding.surprise),
    }


def summary(outcome, series, told=()):
    """Markdown: whether the gate passes and why, what looks wrong (`told`, lines), then the schemes."""
    lines = [f"### Gate {_ENDS[outcome.exit_status]}", "", *(f"- {line}" for line in _lines(outcome, markdown.span))]
    if outcome.baseline:
        lines += ["", "The gate judged by the baseline; below, the same results are judged by the zones that ship."]
    known = {(f.verdict.zone_id, f.verdict.cell): f.expected.words for f in outcome.findings if f.as_expected}
    schemes = markdown.render(series, known=lambda zone_id, cell: known.get((zone_id, cell)))
    return "\n".join([*lines, "", *told, schemes])


def _lines(outcome, quote):
    """`quote` makes text of others' harmless."""
    for judged in outcome.judged:
        by_status = judged.count()
        parts = [f"{by_status[status]} {status}" for status in Status if by_status[status]] or ["nothing measured"]
        if judged.unmeasured:
            named = ", ".join(cell.id for cell in judged.unmeasured[:_MOST_UNMEASURED])
            more = ", ..." if len(judged.unmeasured) > _MOST_UNMEASURED else ""
            parts.append(f"{len(judged.unmeasured)} not measured in time and not judged ({named}{more})")
        rate = f"; {false_alarms(len(judged.findings))}" if decided(by_status) else ""
        yield f"zone {judged.zone.id}, {quote(judged.scheme_id)}: {', '.join(parts)}{rate}"
    if rate := false_alarms_of_any(judged.count() for judged in outcome.judged):
        yield rate
    unknown = [f for f in outcome.findings if f.verdict.status is Status.UNSUPPORTED and not f.as_expected]
    for reason, n in collections.Counter(finding.verdict.reason for finding in unknown).items():
        yield quote(f"unsupported, {count(n, 'verdict')}: {reason}")
    failing = [f for f in outcome.findings if f.surprise is not Surprise.NONE or f.verdict.status is Status.ERROR]
    if outcome.strict:
        failing += [f for f in outcome.findings if f.verdict.status is Status.INCONCLUSIVE]
    for finding in failing[:_MOST_NAMED]:
        yield quote(words(finding))
    if len(failing) > _MOST_NAMED:
        yield f"and {len(failing) - _MOST_NAMED} more"
    if any(finding.surprise is Surprise.GONE for finding in outcome.findings):
        yield quote(f"take what does not happen any more out of expected.json: {outcome.gone}")
    known = [finding.expected for finding in outcome.findings if finding.as_expected]
    if known:
        unexplained = sum(expected.reason == UNEXPLAINED for expected in known)
        yield (
            f"as the stack's expected.json says: {count(len(known), 'verdict')}"
            + (f"; {unexplained} of them {UNEXPLAINED}" if unexplained else "")
        )
    judged, left = len(outcome.findings), sum(len(judged.unmeasured) for judged in outcome.judged)
    yield f"gate {_ENDS[outcome.exit_status]}" + (f", by {judged} of {count(judged + left, 'verdict')}" if left else "")


def words(finding):
    """One finding as a sentence: verdict, measured, permitted, why."""
    verdict = finding.verdict
    text = f"{verdict.status} {verdict.zone_id} at {verdict.cell.id}: {verdict.reason}"
    if verdict.value is not None:
        (low, high), permitted = verdict.interval, verdict.permitted
        digits = digits_to_tell((verdict.value, low, high), permitted.low, permitted.high, _DIGITS)
        text += (
            f"; median {verdict.value:.{digits}f} of {verdict.n} trials"
            f" ({CONFIDENCE:.0%} interval {low:.{digits}f}..{high:.{digits}f}),"
            f" permitted {permitted.low:.{digits}f}..{permitted.high:.{digits}f}"
        )
    if verdict.status is Status.INCONCLUSIVE:
        text += "; --max-trials lets it have more"
    if finding.surprise is Surprise.GONE:
        text += f"; but {finding.expected.words}"
    elif finding.expected:
        text += f"; known: {finding.expected.reason}"
    return text


def junit(outcome):
    """JUnit XML: a suite for each zone, a case for each cell, with its verdict as a property."""
    root = xml.Element("testsuites", name="conformance gate")
    for judged in outcome.judged:
        name = f"{judged.zone.id} {judged.scheme_id}"
        suite = xml.SubElement(root, "testsuite", name=_xml(name))
        for finding in judged.findings:
            case = _case(suite, judged, finding.verdict.cell)
            _property(case, "verdict", str(finding.verdict.status))
            _property(case, "trials", str(finding.verdict.n))
            if finding.verdict.value is not None:
                _property(case, judged.zone.metric, f"{finding.verdict.value:.6g}")
            kind = _kind(finding, outcome.strict)
            if kind:
                xml.SubElement(case, kind, type=str(finding.verdict.status), message=_xml(words(finding)))
        for cell in judged.unmeasured:
            case = _case(suite, judged, cell)
            kind = "failure" if outcome.strict else "skipped"
            xml.SubElement(case, kind, type="not measured", message="not measured in time")
        for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(name, str(len(list(suite.iter(kind)))))
    xml.indent(root)
    return xml.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _kind(finding, strict):
    """What JUnit calls it; None for a case that passes."""
    status = finding.verdict.status
    if finding.surprise is not Surprise.NONE:
        return "failure"
    if finding.as_expected:
        return "skipped"
    unknown = "failure" if strict else "skipped"
    return {
        Status.ERROR: "error", Status.INCONCLUSIVE: unknown, Status.UNSUPPORTED: unknown, Status.CONFORMS: None,
    }[status]  # fmt: skip


def _case(suite, judged, cell):
    return xml.SubElement(suite, "testcase", classname=_xml(judged.zone.id.replace("/", ".")), name=cell.id)


def _property(case, name, value):
    properties = case.find("properties")
    if properties is None:
        properties = xml.SubElement(case, "properties")
    xml.SubElement(properties, "property", name=name, value=_xml(value))


def _xml(text):
    """Without characters that XML has no way to write."""
    return _NO_XML.sub("?", text)

"""Write a gate's result as JUnit XML: a suite for each zone with a case for each cell, and a suite of features."""

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from conformance.catalogue import baseline, clauses
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Says
from conformance.model.networks.place import Point
from conformance.model.studies.comparison import Compared, Movement

if TYPE_CHECKING:  # for annotations only: a renderer may name a command's result, but runs no command
    from conformance.commands.gate import GateResult, ZoneResult

#: characters that XML 1.0 must not contain (W3C, section 2.2), but that a stack's text may
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: "GateResult", words: Callable[[Finding], str]) -> bytes:
    """Return a document with each verdict as a property; `words` returns a finding as a sentence."""
    root = xml.Element("testsuites", name="conformance gate")
    for judged in outcome.judged:
        name = f"{judged.zone.id} {judged.scheme_id}"
        suite = xml.SubElement(root, "testsuite", name=_xml(name))
        for finding in judged.findings:
            case = _case(suite, judged, finding.verdict.place)
            _property(case, "trials", str(finding.verdict.n))
            if finding.verdict.value is not None:
                _property(case, judged.zone.metric, f"{finding.verdict.value:.6g}")
            if cause := outcome.blamed.get(finding.shown_at):
                _property(case, "blame", cause.sentence)
            _say(case, finding, outcome.strict, words(finding))
        for cell in judged.unmeasured:
            _leave_out(_case(suite, judged, cell), outcome.strict)
        for cell in judged.lost:
            _leave_out(_case(suite, judged, cell), outcome.strict, "without baseline", baseline.LOST)
        _count(suite)
    if outcome.failures:
        suite = xml.SubElement(root, "testsuite", name="failures in all cells taken together")
        for failures in outcome.failures:
            case = xml.SubElement(suite, "testcase", classname=f"{failures.algorithm}.failures", name="all cells")
            xml.SubElement(case, "failure", type="failures", message=_xml(failures.words))
        _count(suite)
    if outcome.features is not None:
        _features(root, outcome.features.compared)
    if outcome.clauses is not None:
        suite = xml.SubElement(root, "testsuite", name="clauses")
        for finding in outcome.clauses.findings:
            clause = clauses.find(finding.verdict.zone_id)
            case = xml.SubElement(suite, "testcase", classname=f"{finding.algorithm}.clauses", name=clause.id)
            _say(case, finding, outcome.strict, f"{finding.verdict.reason}: {clause.text}")
        for name in outcome.clauses.unmeasured:
            case = xml.SubElement(suite, "testcase", classname="clauses", name=name)
            _leave_out(case, outcome.strict)
        _count(suite)
    xml.indent(root)
    written: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _features(root: xml.Element, compared: Iterable[Compared]) -> None:
    """Add a suite of features against the baseline's: one that moved is a failure, one that is unclear is skipped."""
    suite = xml.SubElement(root, "testsuite", name="features against the baseline's")
    for c in compared:
        quantity = c.quantity
        case = xml.SubElement(
            suite,
            "testcase",
            classname=f"{quantity.algorithm}.features",
            name=f"{quantity.name} at {quantity.place.id}",
        )
        _property(case, "before", f"{c.before:.6g}")
        _property(case, "after", f"{c.after:.6g}")
        kind = {Movement.MOVED: "failure", Movement.UNCLEAR: "skipped"}.get(c.change)
        if kind:
            text = f"{quantity.label}: {c.before:.4g} to {c.after:.4g}"
            xml.SubElement(case, kind, type=str(c.change), message=_xml(text))
    _count(suite)


def _say(case: xml.Element, finding: Finding, strict: bool, words: str) -> None:
    """Add a verdict and, if it does not pass, why."""
    status = str(finding.verdict.status)
    _property(case, "verdict", status)
    if kind := _kind(finding, strict):
        xml.SubElement(case, kind, type=status, message=_xml(words))


def _leave_out(
    case: xml.Element, strict: bool, why: str = "not measured", message: str = "not measured in time"
) -> None:
    """Say that a case was not judged, by default because there was no time for it."""
    xml.SubElement(case, "failure" if strict else "skipped", type=why, message=message)


def _count(suite: xml.Element) -> None:
    for name, kind in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(len(list(suite.iter(kind)))))


def _kind(finding: Finding, strict: bool) -> str | None:
    """Return what JUnit calls a finding that does not pass; None if it passes."""
    status = finding.verdict.status
    if finding.surprise.fails:
        return "failure"
    if finding.as_expected or status.says is Says.NOTHING:
        return "skipped"
    unknown = "failure" if strict else "skipped"
    if finding.unconfirmed:
        return "error" if finding.status.says is Says.FAULT else unknown
    return {Says.FAULT: "error", Says.OPEN: unknown}.get(status.says)


def _case(suite: xml.Element, judged: "ZoneResult", cell: Point) -> xml.Element:
    return xml.SubElement(suite, "testcase", classname=_xml(judged.zone.id.replace("/", ".")), name=cell.id)


def _property(case: xml.Element, name: str, value: str) -> None:
    properties = case.find("properties")
    if properties is None:
        properties = xml.SubElement(case, "properties")
    xml.SubElement(properties, "property", name=name, value=_xml(value))


def _xml(text: str) -> str:
    """Return text with "?" for each character that XML cannot contain."""
    return _NO_XML.sub("?", text)

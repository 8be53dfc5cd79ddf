"""JUnit XML of a gate: a suite for each zone, a case for each cell."""

import re
import xml.etree.ElementTree as xml
from collections.abc import Callable

from conformance.model.expectation import Surprise
from conformance.model.setting import Cell
from conformance.model.verdict import Status
from conformance.reporting.gated import Finding, GateResult, ZoneResult

#: what XML 1.0 may hold (W3C, section 2.2); a stack may say anything
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(outcome: GateResult, words: Callable[[Finding], str]) -> bytes:
    """Return a document with each verdict as a property; `words`: a finding as a sentence."""
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
    written: bytes = xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _kind(finding: Finding, strict: bool) -> str | None:
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


def _case(suite: xml.Element, judged: ZoneResult, cell: Cell) -> xml.Element:
    return xml.SubElement(suite, "testcase", classname=_xml(judged.zone.id.replace("/", ".")), name=cell.id)


def _property(case: xml.Element, name: str, value: str) -> None:
    properties = case.find("properties")
    if properties is None:
        properties = xml.SubElement(case, "properties")
    xml.SubElement(properties, "property", name=name, value=_xml(value))


def _xml(text: str) -> str:
    """Without characters that XML has no way to write."""
    return _NO_XML.sub("?", text)

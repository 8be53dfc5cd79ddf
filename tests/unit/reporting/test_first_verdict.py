"""What a person reads of BBRv3: what of the draft is not kept, what is off, the likeliest faults, and what to run."""

import dataclasses

import pytest

from conformance.catalogue import clause_record, clauses, documents
from conformance.model.judging import kinds
from conformance.model.judging.question import Named
from conformance.model.judging.session import Finding
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import NO_MARGIN, Interval
from conformance.reporting.text import first_verdict

DRAFT = clauses.first_for("bbrv3")
BY_ID = {clause.id: clause for clause in DRAFT.clauses}
ZONE = documents.zone_of("bbrv3", "heatmap", "packets")


def of_clause(name, value=None):
    """Return a finding about a clause: a violation with this value, or one that conforms."""
    clause = BY_ID[name]
    status = Status.CONFORMS if value is None else Status.VIOLATES
    permitted = Interval(low=clause.bound.low, high=clause.bound.high, bases=(), margin=NO_MARGIN)
    verdict = Verdict(
        status=status, zone_id=name, place=Named("bbrv3"), permitted=permitted, reason="r", n=8, value=value
    )  # fmt: skip
    return Finding(verdict=verdict, algorithm="bbrv3", group=clause.specification, noun="clauses of")


def of_kind(value):
    rule = next(rule for rule in kinds.rules(ZONE, ZONE.cells) if rule.kind == "up to 2 % of loss")
    verdict = Verdict(
        status=Status.VIOLATES, zone_id=ZONE.id, place=rule.place, permitted=rule.permitted(), reason="r", n=5,
        value=value,
    )  # fmt: skip
    return Finding(verdict=verdict, algorithm="bbrv3", group=ZONE.id, noun=rule.noun, at=rule.cells[0], values=(0.5,))


def lines(*findings, is_smoke=False):
    return list(first_verdict.lines(DRAFT, "bbrv3", findings, " --stack x", is_smoke))


def test_it_says_what_is_not_kept_then_what_is_off_then_the_fault_then_what_to_run():
    text = lines(of_clause("BBR04", 7.0), of_clause("BBR10"), of_kind(1.16), is_smoke=True)
    at = [
        next(n for n, line in enumerate(text) if line.startswith(begins))
        for begins in (
            "draft-ietf-ccwg-bbr-06, 2 clauses: 1 violates, 1 conforms", "  case 4; 5.3.2: Drain ends after three",
            "    measured 7 rounds, asked at most 5", "beside the reference, 1 questions: 1 violates",
            "  bbrv3/heatmap-packets, up-to-2pct: 1.16 of the reference's, permitted 0.90 to 1.10, farthest at ",
            "likeliest faults", "  5.3.2: drain-unbounded, as ngtcp2 before 1.23.0", "next:",
            "  pytest -m bbrv3 --stack x",
        )
    ]  # fmt: skip
    assert at == sorted(at)


def test_forty_lines_are_enough_for_ten_violations():
    beyond = [
        of_clause(clause.id, clause.bound.high + 1 if clause.bound.high < 1e9 else clause.bound.low - 0.1)
        for clause in DRAFT.clauses
    ]
    for number in (10, len(beyond)):
        assert 20 < len(lines(*beyond[:number], of_kind(1.2), of_kind(0.5), is_smoke=True)) <= 40


@pytest.mark.parametrize(
    ("violated", "kept", "likeliest"),
    [
        # as docs/bbr-draft.md has them
        ({"BBR04": 7.0, "BBR31": 0.98, "BBR302": 0.981}, ["BBR10", "BBR402"], {"drain-unbounded", "deaf-to-ce"}),
        ({"BBR10": 27.4, "BBR110": 1.0, "BBR210": 0.0}, ["BBR401"], {"no-probe-rtt"}),
        ({"BBR401": 1.08, "BBR402": 0.94}, ["BBR302"], {"loss-ignored"}),
        ({"BBR302": 0.98}, ["BBR102"], {"no-headroom"}),
        ({"BBR302": 0.1}, [], {"headroom-0.85"}),
    ],
)
def test_the_fault_that_most_violated_clauses_show_is_the_likeliest(violated, kept, likeliest):
    findings = [of_clause(name, value) for name, value in violated.items()] + [of_clause(name) for name in kept]
    by_clause = {BY_ID[finding.verdict.zone_id]: finding for finding in findings}
    assert likeliest <= named(first_verdict.likeliest(by_clause)[: len(violated)])


def test_a_stack_that_keeps_all_has_no_fault():
    text = lines(of_clause("BBR04"), of_clause("BBR10"))
    assert text == ["draft-ietf-ccwg-bbr-06, 2 clauses: 2 conforms"]


def named(likely):
    return {fault for faults, _ in likely for fault in faults}


#: what EVIDENCE.txt of adapters says, or docs/bbr-draft.md of Linux
_KNOWN = {
    "ngtcp2-1.11": {"drain-unbounded", "growth-each-ack", "no-headroom", "no-idle-restart"},
    "tquic": {"no-probe-rtt", "headroom-0.85", "each-round-lossy"},
    "picoquic": {"no-probe-rtt", "up-one-rtt-too-long", "no-headroom"},
    "linux-tcp": {"no-undo", "drain-0.35"},
    "document": set(),
}


@pytest.mark.parametrize("stack", _KNOWN)
def test_the_known_faults_of_real_stacks_are_among_the_first_five(stack):
    """Their weights were chosen on these stacks. Of noq, neither of its two is among them."""
    entries = {entry["clause"]: entry for entry in clause_record.judged(stack, "bbrv3") if entry["clause"] in BY_ID}
    of_stack = {
        BY_ID[name]: of_clause(name, entry["value"] if entry["verdict"] == Status.VIOLATES else None)
        for name, entry in entries.items()
    }
    first = named(first_verdict.likeliest(of_stack)[:5])
    assert _KNOWN[stack] <= first and bool(first) == bool(_KNOWN[stack])


def test_what_fails_is_said_with_its_reason():
    (failed, kind) = (
        dataclasses.replace(
            finding, verdict=dataclasses.replace(finding.verdict, status=Status.FAILS, value=None, reason="it ended")
        )
        for finding in (of_clause("BBR04", 7.0), of_kind(1.16))
    )
    text = lines(failed, kind)
    assert text[0].endswith("1 clauses: 1 fails") and "    it ended" in text
    assert "  bbrv3/heatmap-packets, up-to-2pct: it ended" in text

"""What a person reads of BBRv3: what of the draft is not kept, what is off, the likeliest faults, and what to run."""

import dataclasses

from conformance.catalogue import clauses, documents
from conformance.commands import gate
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
        status=Status.VIOLATES, zone_id=ZONE.id, place=rule.place, permitted=rule.permitted, reason="r", n=5,
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
            "    measured 7 rounds, asked at most 6", "beside the reference, 1 questions: 1 violates",
            "  bbrv3/heatmap-packets, up-to-2pct: 1.16 of the reference's, permitted 0.89 to 1.10, farthest at ",
            "likeliest faults",
            "  5.3.2: Drain has no end after three rounds (drain-unbounded, as in ngtcp2 before 1.23.0)", "next:",
            "  pytest -m bbrv3 --stack x",
        )
    ]  # fmt: skip
    assert at == sorted(at)


def test_likelier_causes_come_first_here_as_in_a_gate_and_the_first_is_looked_at_next():
    rate, start_up = of_clause("BBR13", 0.5), of_clause("BBR532", 1.2)
    text = lines(rate, start_up)
    assert [line[-8:] for line in text if line.endswith(("(BBR13)", "(BBR532)"))] == ["(BBR532)", " (BBR13)"]
    assert any("conformance clause show BBR532 " in line for line in text)
    assert gate.Clauses(findings=(rate, start_up), unmeasured=()).new == [start_up, rate]


def test_forty_lines_are_enough_for_ten_violations():
    beyond = [
        of_clause(clause.id, clause.bound.high + 1 if clause.bound.high < 1e9 else clause.bound.low - 0.1)
        for clause in DRAFT.clauses
    ]
    for number in (10, len(beyond)):
        assert 20 < len(lines(*beyond[:number], of_kind(1.2), of_kind(0.5), is_smoke=True)) <= 40


def test_a_stack_that_keeps_all_has_no_fault():
    text = lines(of_clause("BBR04"), of_clause("BBR10"))
    assert text == ["draft-ietf-ccwg-bbr-06, 2 clauses: 2 conforms"]


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

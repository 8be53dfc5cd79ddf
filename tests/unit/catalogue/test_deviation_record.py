"""Which faults clauses tell: what is on record of the document's deviations, judged by today's bounds."""

import record_deviations

from conformance.catalogue import clauses, deviation_record, deviations
from conformance.catalogue.deviation_record import HONEST

DRAFT = clauses.first_for("bbrv3")
#: the share of the deviations that a clause has to tell
_LEAST = 0.95
#: deviations that no packet shows, with the line that says why; three at most
_INVISIBLE = {
    "rate-of-the-ack-before": "bbr/mod.rs, update_on_ack: each rate sample is used one acknowledgement later, which is"
    " two packets of a round trip's 66 and more",
}


#: what a literal reading of the draft permits, or its steps contradict
_OPEN = {
    "filter-by-round+initial-rate-kept",
    "initial-rate-kept",
    "last-lost-only",
    "losses-by-ack",
    "no-undo",
    "not-precautionary",
}


def told():
    """Return {deviation: the clauses that tell it}."""
    return {
        name: [clause.id for clause in DRAFT.clauses if record_deviations.side(clause, values.get(clause.id, ()))]
        for name, values in deviation_record.load().items()
    }


def test_each_deviation_has_a_citation_and_is_on_record():
    assert deviation_record.load().keys() - {HONEST} == deviations.load().keys()
    every = deviations.load().values()
    assert all(deviation.source for deviation in every)
    assert all(bool(deviation.does) != ("+" in deviation.name) for deviation in every)


def test_clauses_tell_nearly_all_deviations():
    missed = [name for name, by in told().items() if name not in (HONEST, *_INVISIBLE) and not by]
    assert len(_INVISIBLE) <= 3 and not any(told()[name] for name in _INVISIBLE)
    assert 1 - len(missed) / (len(deviations.load()) - len(_INVISIBLE)) >= _LEAST, missed


def test_what_only_clauses_tell_that_accuse_nobody_is_known():
    shown = {name for name, by in told().items() if by and all(clauses.find(clause).only_shows for clause in by)}
    assert shown == _OPEN


def test_no_clause_rejects_the_document_without_a_deviation():
    assert told()[HONEST] == []


def test_each_clause_on_record_exists_and_the_document_was_measured_by_it():
    known = {clause.id for clause in DRAFT.clauses}
    recorded = {name for values in deviation_record.load().values() for name in values}
    assert recorded <= known and recorded == deviation_record.load()[HONEST].keys()

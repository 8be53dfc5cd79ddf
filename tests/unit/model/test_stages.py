"""Which of several violated clauses names the likeliest cause."""

import random

from conformance.catalogue import clauses
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.diagnosis import stages


def test_each_observable_has_one_stage():
    named = [name for _, names in stages.STAGES for name in names]
    assert {*named} == {*OBSERVABLES} and len(named) == len(OBSERVABLES)


def test_what_shows_no_stage_comes_last():
    assert stages.stage("utilization") == len(stages.STAGES)


def test_of_violated_clauses_the_earliest_stage_comes_first_and_then_what_is_demanded():
    ids = ["CL103", "CL002", "CL003", "CL011", "CL018", "CL017", "CL022"]
    random.Random(1).shuffle(ids)
    ordered = sorted(map(clauses.find, ids), key=lambda clause: clause.precedence)
    assert [clause.id for clause in ordered] == ["CL017", "CL018", "CL022", "CL011", "CL003", "CL002", "CL103"]

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
    assert stages.precedence("utilization") == len(OBSERVABLES)


def test_violated_clauses_come_in_the_order_of_a_transfer():
    """What a loss leaves comes before what grows after it, and probes in an outage before what follows the outage.

    The first loss is one among all: another beta shows at it, too (CL019).
    """
    ids = ["CL103", "CL002", "CL003", "CL019", "CL011", "CL018", "CL017", "CL022"]
    random.Random(1).shuffle(ids)
    ordered = sorted(map(clauses.find, ids), key=lambda clause: clause.precedence)
    assert [clause.id for clause in ordered] == ["CL017", "CL018", "CL011", "CL019", "CL022", "CL003", "CL002", "CL103"]

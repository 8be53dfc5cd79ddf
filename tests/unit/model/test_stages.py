"""Which of several observations names the likeliest cause."""

import random

from conformance.catalogue import clauses
from conformance.model.clauses.changes import COMPARED
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.diagnosis import stages
from conformance.model.diagnosis.feature_table import FEATURES


def test_each_observable_and_label_has_one_stage():
    labels = {label for feature in (*FEATURES, *COMPARED) for label in feature.label if label}
    named = [name for _, *columns in stages.STAGES for names in columns for name in names]
    assert {*named} == {*OBSERVABLES, *labels}
    for column in (1, 2):
        in_column = [name for row in stages.STAGES for name in row[column]]
        assert len(in_column) == len({*in_column})
    both = [name for name in {*OBSERVABLES} & labels if named.count(name) == 2]
    for name in both:
        (row,) = (row for row in stages.STAGES if name in row[1])
        assert name in row[2]


def test_what_shows_no_stage_comes_last():
    assert stages.stage("utilization") == stages.stage(None) == len(stages.STAGES)


def test_of_violated_clauses_the_earliest_stage_comes_first():
    ids = ["CL103", "CL001", "CL011", "CL018", "CL017", "CL022"]
    random.Random(1).shuffle(ids)
    ordered = sorted(map(clauses.find, ids), key=lambda clause: clause.stage)
    assert [clause.id for clause in ordered] == ["CL017", "CL018", "CL022", "CL011", "CL001", "CL103"]

"""Whether suspects can explain a difference of rate: direction, phase and size of what they do."""

import dataclasses

import pytest

from conformance.model.clauses import changes
from conformance.model.diagnosis import explaining, feature_table, ranking
from conformance.model.diagnosis.feature_table import CLEAN, FEW, MANY
from conformance.model.networks.place import Cell

FEATURES = {feature.id: feature for feature in (*feature_table.FEATURES, *changes.FEATURES)}


def reading(value):
    return ranking.Reading(value=value, low=value, high=value, n=5, spread=0.0, sightings=())


def suspect(name, ours, theirs, label="label"):
    feature = FEATURES[name]
    evidence = ranking.Evidence(feature=feature, label=label, score=2, ours=reading(ours), theirs=reading(theirs))
    return ranking.Suspect(label=label, evidence=(evidence,))


LOSSY = Cell(10, 80, 3)


def rates(ours, theirs, cell=LOSSY, seconds=30, rounds=(5, 4)):
    of = [{f"start_up_time-{CLEAN}": reading(n)} for n in rounds]
    return explaining.difference(cell.id, cell, seconds, ours, theirs, of)


#: bursts in start-up
PACING = suspect(f"start_up_burst-{CLEAN}", 2.9, 1.7, "pacing")


def test_bursts_in_start_up_do_not_explain_a_higher_rate_of_the_whole_transfer():
    """That is the case that the rule is for: ngtcp2's BBRv3 had 0.74, Linux's 0.57."""
    one = rates(0.74, 0.57)
    assert explaining.unexplained(one, [PACING]) == {"pacing": "it acts in start-up alone, 4% of the transfer at most"}
    assert one.size == pytest.approx(0.23, abs=0.005)


def test_what_start_up_can_cost_may_be_due_to_it():
    window = suspect(f"initial_window-{CLEAN}", 2, 10, "initial_window")
    assert explaining.unexplained(rates(0.56, 0.57), [window]) is None
    assert explaining.unexplained(rates(0.40, 0.57), [window]) is not None
    # A short transfer is mostly start-up.
    assert explaining.unexplained(rates(0.40, 0.57, seconds=1), [window]) is None
    # Nobody knows how long start-up was.
    assert explaining.unexplained(rates(0.40, 0.57, rounds=()), [window]) is None


def test_a_path_that_holds_more_takes_longer_to_fill():
    near, far = (rates(0.74, 0.57, Cell(mbps, 40, 0)) for mbps in (10, 80))
    assert far.start_up == pytest.approx(near.start_up * 8 / 5)


@pytest.mark.parametrize(
    ("ours", "theirs", "why_not"), [(0.7, 0.5, None), (0.5, 0.7, {"beta": "it would make transfers faster"})]
)
def test_a_suspect_explains_a_difference_in_its_own_direction_only(ours, theirs, why_not):
    beta = suspect(f"kept-{FEW}", 0.8, 0.7, "beta")
    assert explaining.unexplained(rates(ours, theirs), [beta]) == why_not
    assert explaining.unexplained(rates(ours, theirs), [PACING, beta]) == (
        why_not and {"pacing": "it acts in start-up alone, 3% of the transfer at most", **why_not}
    )


def test_one_piece_of_evidence_is_enough():
    beta, late = suspect(f"kept-{FEW}", 0.8, 0.7), suspect(f"start_up_burst-{CLEAN}", 2.9, 1.7)
    both = dataclasses.replace(beta, evidence=late.evidence + beta.evidence)
    assert explaining.unexplained(rates(0.7, 0.5), [both]) is None


def test_what_shows_where_networks_change_explains_nothing_elsewhere():
    marks = suspect(f"kept_of_mark-{changes.MARKS}", 1.0, 0.7, "marks")
    assert explaining.unexplained(rates(0.7, 0.5), [marks]) == {"marks": "it acts where networks change"}


def test_without_suspects_nothing_is_explained():
    assert explaining.unexplained(rates(0.7, 0.5), []) == {}


def test_it_is_known_of_each_feature_how_it_acts():
    """A feature whose direction nobody has thought of would explain nothing."""
    for feature in feature_table.FEATURES:
        up, down = (suspect(feature.id, *pair) for pair in ((0.9, 0.5), (0.5, 0.9)))
        one = rates(0.7, 0.5, rounds=())
        assert None in (explaining.unexplained(one, [up]), explaining.unexplained(one, [down])), feature.id
    assert MANY in {feature.cell for feature in feature_table.FEATURES}

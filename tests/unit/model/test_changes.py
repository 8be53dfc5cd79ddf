"""What `why --changes` says about networks that change, with made-up senders."""

import pytest
from made_senders import paced, seen

from conformance.catalogue import clauses
from conformance.model.clauses import changes
from conformance.model.clauses.observables import OBSERVABLES
from conformance.model.diagnosis import by_trial, ranking
from conformance.model.networks.place import Cell
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Movement

#: clauses whose networks are those of `why --changes`
_SLOW, _RATE_UP = "CL005", "BBR15"


def test_each_feature_is_an_observable_on_a_network_of_clauses():
    used = {clauses.setting(clause.network) for clause in clauses.all_clauses()}
    assert {clauses.setting(network) for network in changes.NETWORKS.values()} <= used
    assert {feature.cell for feature in (*changes.FEATURES, *changes.PERMITTED)} == set(changes.NETWORKS)
    assert {feature.name for feature in changes.FEATURES} <= set(OBSERVABLES)
    assert len({feature.id for feature in changes.FEATURES}) == len(changes.FEATURES)


def changed(network, clause_id, parts, **rest):
    _, found = seen(clause_id, paced, parts, **rest)
    assert found.setting == clauses.setting(changes.NETWORKS[network])
    return changes.readings(changes.Changed(views={network: {1: found}}))


def suspects(algorithm, ours, theirs):
    return [(suspect.label, suspect.evidence[0].sentence) for suspect in ranking.suspects(algorithm, ours, theirs)]


BODIES = {"requests": [(0.0, 7_500), (3.0, 2_500_000)]}


def test_a_window_that_grows_unused_is_a_suspect():
    grown = changed(changes.SLOW, _SLOW, [(0.3, 3.0), (3.0, 1.0)], **BODIES)
    right = changed(changes.SLOW, _SLOW, [(0.3, 3.0), (0.4, 1.0)], **BODIES)
    (found,) = suspects("cubic", grown, right)
    assert found[0] == "app_limited" and "a window that grows although it is not used" in found[1]
    assert suspects("cubic", right, grown) == suspects("cubic", right, right) == []


@pytest.mark.parametrize(("algorithm", "labels"), [("bbrv3", ["rate_step"]), ("cubic", [])])
def test_a_rate_that_rises_and_is_used_late_is_a_suspect_of_bbr(algorithm, labels):
    late = changed(changes.RATE_UP, _RATE_UP, [(1.0, 5.0), (9.5, 1.0)])
    soon = changed(changes.RATE_UP, _RATE_UP, [(1.0, 2.0), (9.5, 1.0)])
    assert [label for label, _ in suspects(algorithm, late, soon)] == labels


def test_what_a_trial_does_not_show_is_no_reading():
    assert changed(changes.SLOW, _SLOW, [(1.0, 1.0)]) == {}
    assert changes.readings(changes.Changed(views={})) == {}


def test_of_each_feature_a_thousandth_is_the_same_and_eight_times_as_much_has_moved():
    """A ratio's tolerance is a factor above 1: with one below, no difference would be too small to matter."""
    near, far = ({seed: at + seed / 1e6 for seed in range(1, 10)} for at in (1.001, 8.0))
    for feature in changes.COMPARED:
        quantity = by_trial.quantity(feature, "bbrv3", place=Cell(10, 20, 0))
        base = {seed: 1.0 + seed / 1e6 for seed in range(1, 10)}
        changed = [comparison.compare({quantity: (base, head)})[0].change for head in (near, far)]
        assert changed == [Movement.SAME, Movement.MOVED], feature.id

"""The rival: a second flow through the same bottleneck."""

import pytest
from helpers import line, setting
from test_guest import go

from conformance.catalogue import documents
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.networks.setting import Setting
from conformance.model.trials.trial import Outcome
from conformance.reporting import naming

CELL = Cell(10, 10, 0)


def competing(cell=CELL, **overrides):
    return documents.profile("competing", cell, **{"transfer_s": 2, **overrides})


def test_a_rival_is_part_of_the_settings_and_of_their_digest():
    ours, other, alone = competing(), competing(rival="reno"), setting(CELL)
    assert (ours.rival, ours.to_json()["topology"], other.rival) == ("cubic", "dumbbell", "reno")
    assert Setting.from_json(ours.to_json()) == ours
    assert ours.profile_digest != other.profile_digest
    assert "rival" not in alone.to_json()
    assert documents.profile("atc25", CELL, rival="bbr").to_json()["topology"] == "dumbbell"
    assert naming.settings(other).endswith("competing with a reno flow")


@pytest.mark.parametrize(
    "changes", [{"rival": None}, {"rival": "a b"}, {"topology": "one_segment"}, {"topology": "../nosuch"}]
)
def test_a_rival_and_its_topology_need_each_other(changes):
    with pytest.raises(UserError, match="rival"):
        Setting.from_json({**competing().to_json(), **changes})


def test_a_path_of_two_segments_has_no_rival():
    with pytest.raises(UserError, match="cannot have a rival"):
        documents.path("competing", (CELL, CELL))


@pytest.mark.guest
def test_two_flows_share_the_link_and_the_trial_does_not_depend_on_what_came_before(bench):
    seeds = (1, 2)
    first, second = go(bench, [competing()], seeds)
    again, _ = go(bench, [competing()], seeds)
    after = go(bench, [competing(Cell(10, 5, 1)), competing()], seeds, algorithm="cubic")
    assert {line(m) for m in (first, second)} <= {line(m) for m in after}
    assert line(first) == line(again)
    # There is no random loss, so seeds differ mostly in when the two flows meet.
    assert first.metrics["completion_s"] != second.metrics["completion_s"]
    for made in (first, second):
        elapsed_s = made.metrics["completion_s"]
        theirs = made.evidence["interfaces"]["sink"]["sink-eth0"]["rx_bytes"] * 8 / elapsed_s / 1e7
        assert 0.1 < made.metrics["utilization"] < 0.7
        assert 0.9 < made.metrics["utilization"] + theirs < 1.1


@pytest.mark.guest
def test_a_rival_that_the_kernel_lacks_is_an_error_that_names_it(bench):
    (found,) = go(bench, [competing(rival="copa")])
    assert found.outcome is Outcome.ERROR
    assert found.message == (
        "this kernel has no congestion control copa for group rival: choose one that it has (cubic, reno, bbr)"
    )

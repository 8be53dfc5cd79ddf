"""Shares of trials: what fails or times out now and then, and what only some trials show, moves as values do."""

import pytest

from conformance.commands import compare_shares
from conformance.commands.compare_shares import EVERYWHERE, FAILURES, TrialEnds
from conformance.model.networks.place import Cell
from conformance.model.studies.comparison import Movement, Quantity, Tolerance, compare

PLACE = Cell(10, 20, 1)
#: a feature; what weighs less shows less of a cause
BETA = Quantity(
    algorithm="cubic", name="beta", place=PLACE, profile="identify", tolerance=Tolerance(absolute=0.1), label="beta"
)
NONE = TrialEnds(seeds=range(9), failed={})


def changes(shares):
    """Return {(name, place): change} of shares that are one family, and what is said of each."""
    listed = list(shares)
    compared = compare({quantity: values for quantity, values, _ in listed})
    return {(c.quantity.name, c.quantity.place): c.change for c in compared}, [said for _, _, said in listed]


def failing(seeds):
    return TrialEnds(seeds=range(9), failed=dict.fromkeys(seeds, "it died"))


def test_two_failures_in_nine_trials_of_each_of_ten_places_move_only_together():
    places = [(NONE, failing([1, 5])) for _ in range(10)]
    alone, _ = changes(compare_shares.of_place("cubic", "p", PLACE, places[0]))
    assert alone == {(FAILURES, PLACE): Movement.UNCLEAR}
    together, said = changes(compare_shares.of_all_places("cubic", places))
    assert together == {(FAILURES, EVERYWHERE): Movement.MOVED}
    assert said == ["20 of 90 trials failed: it died; on base, none of 90 failed"]


def test_of_all_places_only_seeds_count_that_both_sides_tried():
    few = TrialEnds(seeds=range(2), failed={})
    ((_, (before, after), _),) = compare_shares.of_all_places("cubic", [(few, failing([1, 5])), (NONE, NONE)])
    assert len(before) == len(after) == 11 and sum(after.values()) == 1


def test_one_place_is_not_compared_twice_and_what_never_happens_is_not_compared():
    assert not list(compare_shares.of_all_places("cubic", [(NONE, failing([1]))]))
    assert not list(compare_shares.of_place("cubic", "p", PLACE, (NONE, NONE)))


def test_timeouts_are_a_share_of_their_own():
    late = TrialEnds(seeds=range(9), failed={}, timed_out=dict.fromkeys(range(9), "not done in 60 s"))
    moved, said = changes(compare_shares.of_place("cubic", "p", PLACE, (NONE, late)))
    assert moved == {("timeouts", PLACE): Movement.MOVED}
    assert said == ["9 of 9 trials timed out: not done in 60 s; on base, none of 9 timed out"]


@pytest.mark.parametrize(("seen", "change"), [(0, Movement.MOVED), (1, Movement.MOVED), (7, Movement.UNCLEAR)])
def test_what_fewer_trials_show_has_moved_although_its_values_have_not(seen, change):
    before, after = dict.fromkeys(range(9), 0.7), dict.fromkeys(range(seen), 0.7)
    moved, said = changes(compare_shares.of_showing(BETA, (before, after), [range(9), range(9)]))
    assert moved == {("beta: shown", PLACE): change}
    assert said == [f"{seen} of 9 trials show it; on base, 9 of 9 trials show it"]


@pytest.mark.parametrize("shows", [{}, dict.fromkeys(range(9), 0.7)])
def test_what_all_trials_show_or_none_is_not_compared_by_that(shows):
    assert not list(compare_shares.of_showing(BETA, (shows, shows), [range(9), range(9)]))

"""Features trial by trial: read from simulated senders whose rules are known, and compared like two builds."""

import senders

from conformance.model.diagnosis import by_trial, feature_table
from conformance.model.diagnosis.feature_table import FEATURES, FEW
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Movement

TRIALS = 8


def feature(name, cell):
    (found,) = (f for f in FEATURES if (f.name, f.cell) == (name, cell))
    return found


def side(**changes):
    """Return what a sender shows in the cell with a few losses, by seed."""
    flows = {
        seed: senders.flow(senders.Sender(lost=senders.every(400 + 7 * seed), **changes))
        for seed in range(1, TRIALS + 1)
    }
    return {FEW: {seed: by_trial.sampled(FEW, flow) for seed, flow in flows.items()}}


def compared(before, after, algorithm="reno"):
    values = {}
    for told in by_trial.told(algorithm):
        both = by_trial.values(told, before), by_trial.values(told, after)
        if all(both):
            values[by_trial.quantity(told, algorithm)] = both
    return comparison.largest_first(comparison.compare(values))


def test_another_beta_is_what_moved_first_and_by_how_much():
    moved = [c for c in compared(side(beta=0.7), side(beta=0.8)) if c.change is Movement.MOVED]
    assert moved[0].quantity.label == "beta" and moved[0].quantity.name == "kept"
    assert abs(moved[0].before - 0.7) < 0.03 and abs(moved[0].after - 0.8) < 0.03


def test_of_one_sender_nothing_moves():
    found = compared(side(), side())
    assert found and all(c.identical and c.change is Movement.SAME for c in found)


def test_a_sentence_says_what_a_side_does():
    text = by_trial.sentence(feature("kept", FEW), side(beta=0.8))
    assert "isolated losses it kept 0.8" in text
    assert by_trial.sentence(feature("kept", FEW), {}) == ""


def test_what_was_seen_too_seldom_has_no_value():
    few = {FEW: {1: {"kept": [0.7] * 4}}}
    assert by_trial.values(feature("kept", FEW), few) == {}
    enough = {FEW: {1: {"kept": [0.7] * 4}, 2: {"kept": [0.8]}, 3: {"kept": []}}}
    assert by_trial.values(feature("kept", FEW), enough) == {1: 0.7, 2: 0.8}


def test_of_several_losses_is_said_what_isolated_ones_leave():
    several = {FEW: {1: {"kept": [0.5] * 5, "kept_of_several": [0.25]}}}
    assert by_trial.values(feature("kept_of_several", FEW), several) == {1: 0.5}
    untouched = {FEW: {1: {"kept": [0.95] * 5, "kept_of_several": [0.25]}}}
    assert by_trial.values(feature("kept_of_several", FEW), untouched) == {}


def test_what_matters_is_a_share_of_what_stacks_may_differ_by():
    kept, burst = feature("kept", FEW), feature("start_up_growth", feature_table.CLEAN)
    assert by_trial.quantity(kept, "cubic").tolerance.of(0.7, 0.7) == kept.tolerance / 2
    both = by_trial.quantity(burst, "cubic", matters=1.0).tolerance
    assert abs(both.of(2.0, 3.0) - 2.0 * (burst.tolerance - 1)) < 1e-12


def test_a_dip_more_at_an_end_of_the_trace_moves_nothing():
    """Where a ProbeRTT falls outside depends on milliseconds, and is so in all trials of a build."""
    cell, data_s = feature_table.CELLS[feature_table.CLEAN]
    trace_s = data_s - 60 * 2 * cell.one_way_delay_ms / 1e3  # of a sender that uses all of the link
    two, three = ({seed: 10 * dips / trace_s + seed / 1e6 for seed in range(1, 10)} for dips in (2, 3))
    quantity = by_trial.quantity(feature("dips_per_10_s", feature_table.CLEAN), "bbrv3")
    assert comparison.compare({quantity: (two, three)})[0].change is Movement.SAME


def test_bbr_has_features_of_its_own():
    names = {told.name for told in by_trial.told("bbrv3")}
    assert "rate_high" in names and "growth" not in names
    assert "growth" in {told.name for told in by_trial.told("copa")}

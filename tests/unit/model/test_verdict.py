import copy
import dataclasses
import statistics

import pytest
from helpers import (
    CELL,
    as_read,
    judge_zones,
    measurement,
    measurements,
    measurements_of,
    refusal,
    setting,
    zone,
    zone_on,
)
from hypothesis import given, strategies as st

from conformance.model.errors import UserError
from conformance.model.judging import zone as zones
from conformance.model.judging.approach import approach
from conformance.model.judging.verdict import (
    ALPHA,
    LOOKS,
    Status,
    Verdict,
    false_alarms,
    judge,
    looks,
    overall,
    status_in,
)
from conformance.model.judging.zone import Basis
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

ZONE = zone(0.4, 0.6)


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ([0.5] * 5, Status.CONFORMS),
        ([0.4] * 5, Status.CONFORMS),
        ([0.6] * 5, Status.CONFORMS),
        ([0.3, 0.31, 0.32, 0.33, 0.34], Status.VIOLATES),
        ([0.7, 0.71, 0.72, 0.73, 0.74], Status.VIOLATES),
        ([0.3, 0.31, 0.32, 0.33, 0.45], Status.INCONCLUSIVE),  # median below, but one trial inside
        ([0.3, 0.31, 0.5, 0.51, 0.52], Status.COMPATIBLE),  # median inside, but its interval is not
        ([0.3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.7], Status.CONFORMS),  # of eight trials, the second to the seventh
        ([0.1], Status.INCONCLUSIVE),  # one trial never convicts
        ([0.5], Status.INCONCLUSIVE),  # nor acquits
    ],
)
def test_verdicts(values, status):
    assert judge(ZONE, CELL, measurements(values)).status is status


def test_what_more_trials_might_settle_is_inconclusive_as_long_as_they_may_come():
    wide = measurements([0.3, 0.31, 0.5, 0.51, 0.52])
    assert judge(ZONE, CELL, wide, more=True).status is Status.INCONCLUSIVE
    assert judge(ZONE, CELL, wide, more=False).status is Status.COMPATIBLE


def test_an_error_is_never_a_violation():
    found = [*measurements([0.1] * 4), measurement(seed=9, outcome=Outcome.ERROR, message="the guest died")]
    verdict = judge(ZONE, CELL, found)
    assert verdict.status is Status.ERROR
    assert verdict.reason == "the guest died (1 of 5 trials)"


def test_unsupported_is_not_an_error():
    assert judge(ZONE, CELL, [measurement(outcome=Outcome.UNSUPPORTED, message="no")]).status is Status.UNSUPPORTED


def test_nothing_measured_is_an_error():
    assert judge(ZONE, CELL, []).status is Status.ERROR


def test_timeouts_can_be_too_slow_but_never_good():
    slow = measurements([0.01] * 5, outcome=Outcome.TIMEOUT)
    assert judge(ZONE, CELL, slow).status is Status.VIOLATES
    assert judge(zone(0.005, 0.02), CELL, slow).status is Status.INCONCLUSIVE


def test_a_transfer_that_timed_out_may_be_as_slow_as_it_likes():
    """With one such transfer in five, the median's interval has no lower end; with one in eight, it has."""
    late = measurement(0.45, seed=9, outcome=Outcome.TIMEOUT)
    assert judge(ZONE, CELL, [*measurements([0.5] * 4), late]).status is Status.INCONCLUSIVE
    assert judge(ZONE, CELL, [*measurements([0.5] * 7), late]).status is Status.CONFORMS


def test_what_a_transfer_that_timed_out_did_not_show_is_neither_an_error_nor_unsupported():
    startup = zone(4, 6, metric="transfer_rtts")
    for late in (1, 5):
        unseen = [dataclasses.replace(m, outcome=Outcome.TIMEOUT) for m in measurements([0.5] * late)]
        found = judge(startup, CELL, [*unseen, *measurements_of("transfer_rtts", [5.0] * 5)[late:]])
        assert (found.status, found.value) == (Status.INCONCLUSIVE, None)
        assert found.reason == "a transfer timed out, so its transfer_rtts is not known"


def test_of_many_cells_one_must_be_further_outside():
    """Five of five trials outside have a chance of 3.8e-5, which is enough among 50 cells and not among 100."""
    outside = measurements([0.3] * 5)
    verdict = judge(ZONE, CELL, outside, family=50)
    assert verdict.status is Status.VIOLATES
    assert verdict.p == pytest.approx(2 / 53130)
    unclear = judge(ZONE, CELL, outside, family=100)
    assert unclear.status is Status.INCONCLUSIVE
    assert "more trials needed" in unclear.reason
    assert judge(ZONE, CELL, measurements([0.3] * 8), family=100).status is Status.VIOLATES


REFERENCE = [0.45 + i / 290 for i in range(30)]  # 0.45 to 0.55, median 0.5


def test_medians_are_compared_with_the_reference_s_median_and_not_with_its_range():
    """A value 20 % lower is outside a margin of 10 %, however far the reference's trials spread."""
    wide = [0.5 + 0.005 * (i - 14.5) for i in range(30)]  # 0.4275 to 0.5725
    judged = zone_on(Basis.of("r", wide))
    assert (judged.intervals[CELL].low, judged.intervals[CELL].high) == pytest.approx((0.45, 0.55))
    lower = [0.8 * value for value in wide]
    assert min(wide) < max(lower)
    assert judge(judged, CELL, measurements(lower), family=30).status is Status.VIOLATES
    assert judge(judged, CELL, measurements(wide)).status is Status.CONFORMS


def test_five_trials_of_a_stack_are_enough_beside_thirty_of_the_reference():
    """5 of 5 trials below all 30 of the reference, moved by the margin, are 2 / C(35, 5): enough for 400 questions."""
    verdict = judge(zone_on(Basis.of("r", REFERENCE)), CELL, measurements([0.3] * 5), family=400)
    assert verdict.status is Status.VIOLATES
    assert verdict.p == pytest.approx(2 / 324632)


def test_a_violation_is_outside_every_basis_on_the_same_side():
    kernel, document = Basis.of("kernel", REFERENCE), Basis.of("document", [value * 1.3 for value in REFERENCE])
    between, above = measurements([0.62] * 5), measurements([0.85] * 5)
    assert judge(zone_on(kernel), CELL, between).status is Status.VIOLATES
    assert judge(zone_on(document), CELL, measurements([0.5] * 5)).status is Status.VIOLATES
    both = zone_on(kernel, document)
    assert judge(both, CELL, between).status is Status.CONFORMS
    assert judge(both, CELL, measurements([0.5] * 5)).status is Status.CONFORMS
    assert judge(both, CELL, above).status is Status.VIOLATES
    # The chance is that of the basis that is the likeliest cause.
    assert judge(both, CELL, above).p >= judge(zone_on(kernel), CELL, above).p


def test_small_packets_are_permitted_what_they_can_carry():
    """Where a window limits the rate, packets of 1200 bytes carry 0.83 of what packets of 1448 do."""
    permitted = dataclasses.replace(zone_on(Basis.of("r", REFERENCE)).intervals[CELL], small_packets=0.83)
    judged = zone(intervals={CELL: permitted})
    less = [0.385, 0.387, 0.389, 0.391, 0.393]

    def sent(packet_bytes):
        counted = {"server": {}, "client": {"eth0": {"rx_bytes": 0, "rx_packets": 12_500_000 / packet_bytes}}}
        return [as_read(m, evidence={"interfaces": counted}) for m in measurements(less)]

    small, full = judge(judged, CELL, sent(1200)), judge(judged, CELL, sent(1448))
    assert (small.status, full.status) == (Status.CONFORMS, Status.VIOLATES)
    assert small.permitted.high == pytest.approx(0.83 * full.permitted.high)


def test_what_comes_near_to_a_violation_is_told_by_what_judges():
    permitted = dataclasses.replace(zone_on(Basis.of("r", REFERENCE)).intervals[CELL], small_packets=0.83)
    small = zone(intervals={CELL: permitted})
    counters = {"server": {}, "client": {"eth0": {"rx_bytes": 0, "rx_packets": 12_500_000 / 1200}}}
    made = measurements([0.57, 0.575, 0.58, 0.59, 0.6])
    of_small = [as_read(m, evidence={"interfaces": counters}) for m in made]
    assert judge(small, CELL, of_small).status is Status.VIOLATES
    assert approach(small, CELL, of_small, 1) <= 1 < approach(small, CELL, made, 1)
    # For transfers that timed out, only an upper bound is known, which is above.
    late = [dataclasses.replace(m, outcome=Outcome.TIMEOUT) for m in measurements([0.9] * 5)]
    assert judge(small, CELL, late).status is Status.INCONCLUSIVE
    assert approach(small, CELL, late, 1) > 1


def many(values_of_cells):
    """Return a zone with a cell for each list of values, and {cell: measurements}."""
    cells = [Cell(10, 20, i / 100) for i in range(len(values_of_cells))]
    interval = ZONE.intervals[CELL]
    made = zone(intervals=dict.fromkeys(cells, interval))
    return made, {cell: measurements(v, cell=cell) for cell, v in zip(cells, values_of_cells, strict=True)}


def test_cells_are_judged_together_by_holm():
    """67 cells are one too many for a chance of 3.8e-5; once the first cell violates, 66 are left."""
    assert ALPHA / LOOKS / 67 < 2 / 53130
    assert ALPHA / LOOKS / 66 >= 2 / 53130
    made, measured = many([[0.3] * 20, [0.3] * 5, *[[0.5] * 5] * 65])
    found = judge_zones([(made, measured)])[0]
    statuses = [v.status for v in found.verdicts.values()]
    assert statuses == [Status.VIOLATES, Status.VIOLATES, *[Status.CONFORMS] * 65]
    assert found.status is Status.VIOLATES
    assert false_alarms(found.family) == "false alarms in at most 1% of runs (Holm over 67 cells)"
    cell = list(measured)[1]
    assert judge(made, cell, measured[cell], family=67).status is Status.INCONCLUSIVE


@pytest.mark.parametrize("values", [[0.2] * 5, [0.5] * 5, [0.5, 0.5, 0.57, 0.6, 0.6], [0.5] * 3])
def test_a_cell_that_is_not_counted_is_not_judged_whatever_was_measured(values):
    permitted = zone_on(Basis.of("r", REFERENCE)).intervals[CELL]
    other = Cell(10, 40, 1)
    margin = dataclasses.replace(permitted.margin, relative=27.96, set_by=("quinn",))
    judged = zone(intervals={CELL: permitted, other: dataclasses.replace(permitted, counted=False, margin=margin)})
    beside = measurements(values, cell=other)
    (found,) = judge_zones([(judged, {CELL: measurements([0.5] * 5), other: beside})])
    not_judged = found.verdicts[other]
    assert (not_judged.status, not_judged.value) == (Status.NOT_JUDGED, statistics.median(values))
    assert "margin 2,796 % " in not_judged.reason and "quinn" in not_judged.reason
    assert (found.status, found.family) == (Status.CONFORMS, 1)
    assert judge_zones([(judged, {other: beside})])[0].status is Status.NOT_JUDGED
    assert status_in(judged.metric, judged.intervals[other], values, family=1) is Status.NOT_JUDGED


def test_a_failed_trial_is_named_where_nothing_is_judged():
    judged = zone(intervals={CELL: dataclasses.replace(ZONE.intervals[CELL], counted=False)})
    failed = [measurement(outcome=Outcome.ERROR, message="the guest died")]
    found = judge(judged, CELL, failed)
    assert found.status is Status.NOT_JUDGED and "the guest died" in found.reason
    assert judge(judged, CELL, []).status is Status.NOT_JUDGED


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from([0.3, 0.41, 0.5, 0.7]), min_size=1, max_size=12), min_size=1, max_size=12))
def test_holm_finds_every_violation_that_a_cell_finds_by_itself(values):
    """It finds them at the first clear look, so a cell may pass that would violate with all trials, not the reverse."""
    made, measured = many(values)
    together = judge_zones([(made, measured)])[0].verdicts
    for cell, found in measured.items():
        alone = judge(made, cell, found, family=len(values))
        if alone.status is Status.VIOLATES and len(found) <= 7:  # one look
            assert together[cell].status is Status.VIOLATES
        if together[cell].status is Status.INCONCLUSIVE:
            assert alone.status is Status.INCONCLUSIVE


def test_unlike_runs_are_not_taken_for_one_zone():
    made, measured = many([[0.5] * 5, [0.5] * 5])
    cell = list(measured)[1]
    measured[cell] = measurements([0.5] * 5, cell=cell, kernel_digest="8" * 16)
    assert "different runs" in refusal(judge_zones, [(made, measured)])


def test_a_cell_is_looked_at_a_few_times_with_more_trials_each():
    assert looks(5, 20) == (5, 8, 13, 20)
    assert looks(20, 20) == (20,)
    assert looks(1, 2) == (1, 2)
    assert "--max-trials 3 is less" in refusal(looks, 5, 3)


@given(st.integers(1, 200), st.integers(0, 400))
def test_looks_rise_from_the_first_to_the_last(first, more):
    numbers = looks(first, first + more)
    assert numbers[0] == first
    assert numbers[-1] == first + more
    assert list(numbers) == sorted(set(numbers))
    assert len(numbers) <= LOOKS


def test_unlike_runs_are_never_pooled():
    assert "different runs" in refusal(judge, ZONE, CELL, [measurement(), measurement(kernel_digest="8" * 16)])
    assert "different runs" in refusal(judge, ZONE, CELL, [measurement(), measurement(lab_digest="8" * 16)])


def test_another_profile_is_not_judged():
    assert "another atc25 profile" in refusal(judge, zone(profile_digest="0" * 16), CELL, measurements([0.5]))


DOCUMENT = {
    "version": 1, "id": "cubic/heatmap", "algorithm": "cubic", "algorithm_version": "RFC 9438", "metric": "utilization",
    "profile": "atc25", "profile_digest": setting().profile_digest,
    "margin_rule": {"text": "a rule", "relative": 0.1, "absolute": 0.01},
    "references": {"r": {"scheme": "s", "kernel_digest": "k", "trials": 20, "what": "w"}},
    "smoke": ["10mbps-20ms-1pct"],
    "cells": [{"bandwidth_mbps": 10, "one_way_delay_ms": 20, "loss_pct": 1, "low": 0.4, "high": 0.6,
               "bases": [{"reference": "r", "values": [0.45, 0.5, 0.55]}]}],
}  # fmt: skip


def test_a_zone_is_read():
    found = zones.from_json(DOCUMENT, "z.json")
    assert found.cells == (Cell(10, 20, 1),)
    assert 0.5 in found.intervals[CELL]
    assert 0.61 not in found.intervals[CELL]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["cells"].append(d["cells"][0]), "z.json: /cells/1: cell 10mbps-20ms-1pct is listed twice"),
        (lambda d: d["cells"][0].update(low=0.7), "/cells/0: low 0.7 is above high 0.6"),
        (lambda d: d["cells"][0].update(high=0.45, low=0.41), "own median 0.5 is outside"),
        (lambda d: d["cells"][0]["bases"][0].update(reference="x"), "reference 'x' is not among"),
        (lambda d: d["cells"][0].update(one_way_delay_ms=-1), "/cells/0: one_way_delay_ms is -1"),
        (lambda d: d["smoke"].append("10mbps-20ms-2pct"), "/smoke/1: cell 10mbps-20ms-2pct has no interval"),
    ],
)
def test_what_no_schema_can_say_is_checked(change, words):
    document = copy.deepcopy(DOCUMENT)
    change(document)
    with pytest.raises(UserError) as caught:
        zones.from_json(document, "z.json")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("statuses", "whole"),
    [
        (["conforms", "conforms"], "conforms"),
        (["conforms", "inconclusive"], "inconclusive"),
        (["conforms", "inconclusive", "violates"], "violates"),
        (["error", "violates", "conforms"], "violates"),
        (["unsupported", "inconclusive", "error"], "error"),
        (["compatible", "unsupported", "inconclusive"], "inconclusive"),
        (["not judged", "conforms", "compatible"], "compatible"),
        (["unsupported"], "unsupported"),
    ],
)
def test_the_verdict_on_a_zone_is_that_of_its_worst_cell(statuses, whole):
    def verdict(status):
        return Verdict(status=Status(status), zone_id="z", place=CELL, permitted=ZONE.intervals[CELL], reason="")

    assert overall([verdict(s) for s in statuses]) is Status(whole)


def test_a_metric_that_was_not_seen_is_an_error_and_never_zero():
    unseen = zone(0.1, 0.2, metric="queue_mean_bdp")
    assert judge(unseen, CELL, measurements([0.5] * 5)).status is Status.ERROR


def test_round_trips_of_a_client_that_does_not_tell_its_handshake_are_unsupported():
    startup = zone(4, 6, metric="transfer_rtts")
    assert judge(startup, CELL, measurements([0.5] * 5)).status is Status.UNSUPPORTED
    one_untold = [*measurements_of("transfer_rtts", [5.0] * 4), *measurements([0.5] * 5)[4:]]
    assert judge(startup, CELL, one_untold).status is Status.ERROR
    assert judge(startup, CELL, measurements_of("transfer_rtts", [5.0] * 5)).status is Status.CONFORMS

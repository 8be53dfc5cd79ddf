"""Families: a verdict depends on what was planned and on its own trials, and on nothing else."""

import dataclasses
import random

import pytest
from helpers import CELL, judge_zones, measurements, of_trial, zone, zone_verdicts
from hypothesis import given, strategies as st

from conformance.catalogue.questions import cell_questions
from conformance.model.judging import statistics
from conformance.model.judging.seeds import FRESH, JUDGED, repeats_apart
from conformance.model.judging.session import at_first_clear, last_step, looks_of, plan
from conformance.model.judging.verdict import ALPHA, LOOKS, USUAL_LOOKS, Status, judge
from conformance.model.judging.zone import Basis, Margin, hull
from conformance.model.networks.place import Cell

CELLS = (CELL, Cell(10, 40, 1), Cell(10, 60, 1))
P = st.sampled_from([1e-9, 1e-5, 1e-4, 3e-4, 1e-3, 0.0024, 0.01, 1.0])


def sharp(low=0.4, high=0.6, **changes):
    """Return a zone of three cells, with 20 trials evenly from `low` to `high` and a margin of 10 %."""
    made = zone(low, high, **changes)
    basis = Basis.of("r", [low + (high - low) * at / 19 for at in range(20)])
    margin = Margin(relative=0.1, absolute=0.0)
    bounds = hull([basis], margin)
    interval = dataclasses.replace(made.intervals[CELL], low=bounds[0], high=bounds[1], bases=(basis,), margin=margin)
    return dataclasses.replace(made, intervals=dict.fromkeys(CELLS, interval))


HEATMAP = sharp()
WIDE = sharp(id="cubic/wide")
NARROW = sharp(0.49, 0.51, id="cubic/narrow")
#: trials of values near the bounds and far from them
VALUES = st.lists(st.sampled_from([0.1, 0.3, 0.43, 0.46, 0.5, 0.54, 0.57, 0.9]), min_size=20, max_size=20)


def seeded(values, first=JUDGED, cell=CELL):
    made = measurements(values, cell=cell)
    return [of_trial(m, seed=first + at) for at, m in enumerate(made)]


@given(st.lists(P, max_size=12), st.integers(0, 400))
def test_the_last_step_rejects_what_holm_rejects(p_values, more):
    family = len(p_values) + more
    step = last_step(p_values, family)
    rejected = {at for at, p in enumerate(p_values) if p <= ALPHA / LOOKS / step}
    adjusted = statistics.holm_adjusted(p_values + [1.0] * more)
    assert rejected == {at for at, p in enumerate(adjusted[: len(p_values)]) if p <= ALPHA / LOOKS}


@given(VALUES, st.sampled_from([1, 30, 400]))
def test_a_question_is_judged_at_its_first_clear_look(values, family):
    made = measurements(values)

    def at(n, more):
        return judge(HEATMAP, CELL, made[:n], family, more)

    def first_clear(available):
        return at_first_clear(
            USUAL_LOOKS, {None: available}, lambda numbers, more: at(numbers[None], more),
            lambda found: [None] if found.status is Status.INCONCLUSIVE else [],
        )  # fmt: skip

    found = first_clear(20)
    clear = [n for n in USUAL_LOOKS if at(n, n < 20).status is not Status.INCONCLUSIVE]
    assert found.n == (clear[0] if clear else 20)
    # The verdict is the same however many more trials other zones asked for, and whatever these gave.
    for held in USUAL_LOOKS:
        if held >= found.n:
            assert first_clear(held) == found


@pytest.mark.slow
@given(VALUES, st.randoms(use_true_random=False))
def test_no_other_zone_no_order_and_no_later_trial_changes_a_verdict(values, shuffle):
    """The audit's findings 4 and 7: it violated at 5 alone, but not at 20 beside a zone that asked for more trials."""
    questions = [*cell_questions(HEATMAP, CELLS), *cell_questions(NARROW, CELLS)]
    asked = plan(questions, trials=5, most_trials=20)
    made = seeded(values)
    for question in (questions[0], questions[3]):
        alone = next(
            judged
            for n in asked.looks
            if asked.is_settled(judged := asked.judge(question, {question.setting: made[:n]})) or n == 20
        )
        mixed = list(made)
        shuffle.shuffle(mixed)
        assert asked.judge(question, {question.setting: mixed}) == alone
        # Only some questions may be asked, for example with -k or in a shard, with the family of all questions.
        part = plan([question], trials=5, most_trials=20, beside=questions)
        assert part.judge(question, {question.setting: made}).verdict == alone.verdict


@pytest.mark.slow
@given(st.lists(VALUES, min_size=3, max_size=3))
def test_what_did_not_arrive_makes_nothing_easier(values):
    questions = cell_questions(HEATMAP, CELLS)
    asked = plan(questions, trials=5, most_trials=20)
    measured = {q.key: seeded(v, cell=q.place) for q, v in zip(questions, values, strict=True)}
    whole = zone_verdicts(asked, measured)[HEATMAP.id]
    part = zone_verdicts(asked, dict(list(measured.items())[:1]))[HEATMAP.id]
    assert whole.family == part.family == 3
    for cell, verdict in part.verdicts.items():
        if verdict.status is Status.VIOLATES:
            assert whole.verdicts[cell].status is Status.VIOLATES
    # A verdict is never weaker than alone, because Holm's later steps can only add violations.
    for question in questions:
        alone = asked.judge(question, {question.setting: measured[question.key]}).verdict
        together = whole.verdicts[question.place]
        assert together.status is alone.status or (alone.status, together.status) == (
            Status.INCONCLUSIVE, Status.VIOLATES,
        )  # fmt: skip


def test_one_family_over_all_zones():
    """Five of five trials outside 20 of the reference have a chance of 3.8e-5: enough for 66 questions, not for 67."""
    far = [0.9] * 5
    for family, status in ((66, Status.VIOLATES), (67, Status.INCONCLUSIVE)):
        (found,) = judge_zones([(HEATMAP, {CELL: measurements(far)})], family)
        assert (found.family, found.verdicts[CELL].status) == (family, status)
    heatmap, wide = judge_zones(
        [(z, {cell: measurements([0.5] * 5, cell=cell) for cell in CELLS}) for z in (HEATMAP, WIDE)]
    )
    assert heatmap.family == wide.family == 6


def test_holm_is_taken_over_zones():
    """A violation in one zone leaves a larger share of the error rate to the cells of others."""
    far = {cell: measurements([0.9] * 5, cell=cell) for cell in CELLS}
    (alone,) = judge_zones([(HEATMAP, {CELL: far[CELL]})], 67)
    assert alone.verdicts[CELL].status is Status.INCONCLUSIVE
    farther = {cell: measurements([0.9] * 8, cell=cell) for cell in CELLS}
    both = judge_zones([(HEATMAP, {CELL: far[CELL]}), (WIDE, farther)], 67)
    assert {v.status for z in both for v in z.verdicts.values()} == {Status.VIOLATES}


def test_a_file_is_judged_as_the_session_that_made_it():
    """Trials after those of the verdict are ignored, but more trials than any session takes are judged at once."""
    turned = [0.9] * 8 + [0.5] * 12
    (found,) = judge_zones([(HEATMAP, {CELL: measurements(turned)})])
    assert (found.verdicts[CELL].status, found.verdicts[CELL].n) == (Status.VIOLATES, 5)
    (found,) = judge_zones([(HEATMAP, {CELL: measurements([0.9] * 8 + [0.5] * 22)})])
    assert (found.verdicts[CELL].status, found.verdicts[CELL].n) == (Status.CONFORMS, 30)
    many = [Cell(10, rtt, 1) for rtt in (20, 30, 40, 50)]
    judged = dataclasses.replace(HEATMAP, intervals=dict.fromkeys(many, HEATMAP.intervals[CELL]))
    (found,) = judge_zones([(judged, {cell: measurements(turned, cell=cell) for cell in many})])
    assert {(v.status, v.n) for v in found.verdicts.values()} == {(Status.COMPATIBLE, 20)}
    # If no trials follow, an unclear cell with a median inside is compatible.
    (found,) = judge_zones([(HEATMAP, {CELL: measurements([0.3, 0.46, 0.5, 0.54, 0.9])})])
    assert found.verdicts[CELL].status is Status.COMPATIBLE


@pytest.mark.parametrize(("again", "status"), [(0.9, Status.VIOLATES), (0.5, Status.INCONCLUSIVE)])
def test_trials_with_fresh_seeds_confirm_a_violation_in_a_file_or_take_it_back(again, status):
    made = [*seeded([0.9] * 5), *seeded([again] * 5, JUDGED + FRESH)]
    random.Random(1).shuffle(made)
    first, fresh = repeats_apart(made)
    assert [m.trial.seed for m in first] == list(range(1001, 1006))
    assert [m.trial.seed for m in fresh] == list(range(11001, 11006))
    (found,) = judge_zones([(HEATMAP, {CELL: made})])
    verdict = found.verdicts[CELL]
    assert (verdict.status, verdict.n) == (status, 5)
    assert verdict.reason.startswith("not confirmed: above the zone") == (status is Status.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("numbers", "looks"),
    [
        ((5, 20, 20, 20), USUAL_LOOKS), ((3, 5, 5, 8), USUAL_LOOKS), ((20,) * 4, (20,)), ((10,) * 4, (10, 13, 16, 20)),
        ((10, 13, 10, 20), (10, 13, 16, 20)), ((8, 8, 13, 20), (8, 13, 20)), ((20,) * 3, USUAL_LOOKS),
        ((), USUAL_LOOKS), ((30,) * 9, USUAL_LOOKS), ((20, 20, 20, 20, 30), (20,)),
    ],
)  # fmt: skip
def test_where_no_setting_has_few_trials_nobody_looked_at_few(numbers, looks):
    assert tuple(looks_of(numbers)) == looks


@pytest.mark.parametrize("trials", [1, 4, 5])
def test_a_repeat_that_was_interrupted_takes_no_violation_back(trials):
    """One of the five trials is outside, so no look is clear, and three more could follow."""
    again = [0.5, 0.5, 0.9, 0.5, 0.45][:trials]
    made = [*seeded([0.9] * 5), *seeded(again, JUDGED + FRESH)]
    (found,) = judge_zones([(HEATMAP, {CELL: made})])
    assert found.verdicts[CELL].status is Status.VIOLATES


def test_what_is_gone_is_gone_at_the_look_that_was_sure():
    """Eight trials give a sure verdict; of further trials for another zone, seven are outside."""
    made = [*[0.5] * 8, *[0.7] * 7, *[0.5] * 5]
    (found,) = judge_zones([(HEATMAP, {CELL: measurements(made)})])
    verdict = found.verdicts[CELL]
    assert (verdict.status, verdict.n, verdict.sure) == (Status.CONFORMS, 5, True)


def test_a_verdict_is_sure_by_an_interval_of_99_percent():
    assert not judge(HEATMAP, CELL, measurements([0.5] * 5)).sure
    assert judge(HEATMAP, CELL, measurements([0.5] * 8)).sure
    assert not judge(HEATMAP, CELL, measurements([0.3, *[0.5] * 7])).sure
    assert not judge(HEATMAP, CELL, measurements([0.9] * 8)).sure


@pytest.mark.parametrize(("values", "n"), [([0.5] * 20, 8), ([0.3, *[0.5] * 4, *[0.5] * 15], 13), ([0.9] * 20, 5)])
def test_trials_of_a_known_violation_go_on_until_it_is_sure_that_it_is_gone(values, n):
    (question, *_) = questions = cell_questions(HEATMAP, CELLS)
    asked = plan(questions, trials=5, most_trials=20, known=[question])
    found = asked.judge(question, {question.setting: seeded(values)}).verdict
    assert found.n == n
    assert found.sure == found.status.passes

"""Plans: families, work, looks, and what they refuse. All commands that judge ask a Plan, so it is pinned here."""

import dataclasses

import fake_room
import pytest
from helpers import measurements, setting, zone, zone_verdicts
from hypothesis import given, strategies as st

from conformance.catalogue import documents
from conformance.catalogue.questions import cell_questions, split_questions
from conformance.engine import benches
from conformance.engine.execute import Execution, execute
from conformance.model.errors import UserError
from conformance.model.judging.session import plan
from conformance.model.judging.verdict import Status, ask
from conformance.model.networks.place import Cell
from conformance.model.split import split_zone
from conformance.model.split.split_zone import PathCheck
from conformance.results.store import Store

HEATMAP, LOSS = documents.zone_of("cubic"), documents.zone_of("cubic", "loss")
#: the cells that are counted for utilization: only these can violate
CELLS = tuple(cell for cell, permitted in HEATMAP.intervals.items() if permitted.counted)
SPLIT = documents.split_part("cubic/split")


@pytest.mark.slow
@given(st.sets(st.sampled_from(CELLS), min_size=1), st.sets(st.sampled_from(CELLS), min_size=1))
def test_a_family_is_all_that_is_asked(heatmap, loss):
    questions = [*cell_questions(HEATMAP, heatmap), *cell_questions(LOSS, loss)]
    asked = plan(questions, trials=5, most_trials=20)
    counted = len(heatmap) + sum(LOSS.intervals[cell].counted for cell in loss)
    assert set(asked.families.values()) == {counted} == {asked.family}
    # A cell that several zones judge is measured once, and one that none can judge not at all.
    judged = heatmap | {cell for cell in loss if LOSS.intervals[cell].counted}
    assert {s.cell for _, s in asked.work} == judged
    assert len(asked.work) == len(judged)


@given(st.permutations(list(CELLS[:8])))
def test_families_do_not_depend_on_order_or_repetition(cells):
    asked = plan([*cell_questions(HEATMAP, cells), *cell_questions(HEATMAP, cells)], trials=5)
    assert set(asked.families.values()) == {8}
    assert [s.cell for _, s in asked.work] == cells


def test_first_looks_of_several_plans_are_one_plan_that_asks_nothing(tmp_path):
    fake_room.install("bad")
    asked = plan(cell_questions(HEATMAP, CELLS[:2]), trials=5, most_trials=20)
    ahead = asked.first_looks([1001, 1021, 1041])
    assert ahead.seeds == (*range(1001, 1006), *range(1021, 1026), *range(1041, 1046)) and ahead.work == asked.work
    answers = list(execute(ahead, benches.find(), Store(tmp_path / "r.jsonl")))
    assert [[m.trial.seed for m in answer.measurements] for answer in answers] == [list(ahead.seeds)] * 2
    assert not any(answer.judged for answer in answers)
    assert asked.families and asked.seeds == range(1001, 1021), "the plan itself is as before"


def test_a_family_may_be_a_whole_row():
    cells = [cell for cell in CELLS if LOSS.intervals[cell].counted][:3]
    questions = [*cell_questions(HEATMAP, cells), *cell_questions(LOSS, cells)]
    asked = plan(questions, trials=5, family=lambda question: question.algorithm)
    assert set(asked.families.values()) == {6}


def test_split_checks_share_the_chance_between_cells():
    questions = split_questions(SPLIT, documents.cells("10mbps"))
    asked = plan(questions, trials=5, most_trials=20)
    cells = {setting for question in questions for setting in question.settings}
    assert set(asked.families.values()) == {len(cells)}
    assert set(asked.work) == {("cubic", setting) for setting in cells}


def test_a_split_check_needs_more_trials_only_of_what_may_make_it_clear():
    """One cell's trials spread, so paths with this cell, or compared with it, may or may not pass a filter."""
    permitted = HEATMAP.intervals
    measured = {setting(c): measurements([permitted[c].basis.median] * 20, cell=c) for c in documents.cells("10mbps")}
    wide = Cell(10, 20, 1)
    values = [factor * permitted[wide].basis.median for factor in (0.4, 0.6, 1, 1.5, 1.8)] * 4
    measured[setting(wide)] = measurements(values, cell=wide)
    questions = split_questions(SPLIT, documents.cells("10mbps"))
    asked = plan(questions, trials=5, most_trials=20)
    first = {s: found[:5] for s, found in measured.items()}
    unclear = [q for q in questions if not asked.is_settled(asked.judge(q, first))]
    assert unclear and not any(isinstance(question.rule, PathCheck) for question in unclear)
    for question in unclear:
        needed = asked.next_look(asked.judge(question, first))
        assert setting(wide) in needed and len(needed) < len(question.settings) / 2
        assert set(needed.values()) == {8}
        judged = asked.judge(question, measured)
        taken = {s: len(found) for s, found in judged.measured.items()}
        assert {s for s, n in taken.items() if n > 5} == set(needed) and max(taken.values()) == judged.verdict.n
        assert not asked.next_look(judged)


def test_work_may_be_more_than_what_is_asked_about():
    work = [("cubic", setting(cell)) for cell in CELLS[:3]]
    asked = plan(cell_questions(HEATMAP, CELLS[:1]), trials=2, work=work)
    assert asked.work == tuple(work)
    assert [len(asked.about(key)) for key in work] == [1, 0, 0]
    assert asked.is_conclusive(work[1], measurements([0.5], cell=CELLS[1]))


def test_a_plan_that_nothing_could_fail_is_refused():
    of_20 = {cell: HEATMAP.intervals[cell] for cell in CELLS if HEATMAP.intervals[cell].basis.n == 20}
    whole = cell_questions(dataclasses.replace(HEATMAP, intervals=of_20), of_20)
    with pytest.raises(UserError, match=f"5 trials can never show that it is violated, as one of {len(of_20)} "):
        plan(whole, trials=5).refuse_blind()
    plan(whole, trials=5, most_trials=20).refuse_blind()


def test_a_plan_whose_split_checks_could_never_fail_is_refused():
    """Only intervals of medians at the family's level can violate."""
    check = SPLIT[0]
    (predicted,) = split_questions([check], check.cells)
    for trials in (5, 10):
        with pytest.raises(UserError, match=f"{trials} trials can never show that it is violated, as one of 2 "):
            plan([predicted], trials=trials).refuse_blind()
    plan([predicted], trials=11).refuse_blind()
    assert split_zone.judge(check, _all_at(check, 0.01, 11), family=2).status is Status.VIOLATES
    assert split_zone.judge(check, _all_at(check, 0.01, 10), family=2).status is not Status.VIOLATES


def _all_at(check, utilization, n):
    return {cell: measurements([utilization] * n, cell=cell) for cell in check.cells}


@pytest.mark.parametrize(("trials", "most"), [(0, None), (5, 4), (10_001, None)])
def test_numbers_of_trials_that_no_plan_can_have(trials, most):
    with pytest.raises(UserError):
        plan((), trials=trials, most_trials=most)


def test_seeds_begin_where_they_are_asked_to():
    assert plan((), trials=5, most_trials=20, first_seed=1401).seeds == range(1401, 1421)
    assert plan((), trials=5, most_trials=20).looks == (5, 8, 13, 20)


def test_a_question_may_be_about_another_algorithm():
    question = ask(HEATMAP, setting(CELLS[0]), "reno")
    asked = plan([question, *cell_questions(HEATMAP, CELLS[:2])], trials=5)
    assert asked.work[0][0] == "reno"
    assert set(asked.families.values()) == {3}


def test_zones_are_judged_whole_by_what_was_measured():
    other = Cell(10, 40, 1)
    intervals = {**zone().intervals, other: next(iter(zone().intervals.values()))}
    small = dataclasses.replace(zone(), intervals=intervals)
    questions = cell_questions(small, intervals)
    found = zone_verdicts(plan(questions, trials=5), {questions[0].key: measurements([0.5] * 5)})
    # The result that did not arrive was planned, so it takes its share of the family.
    assert found["cubic/heatmap"].family == 2
    assert found["cubic/heatmap"].status is Status.CONFORMS


@pytest.fixture
def room():
    return fake_room.install


@pytest.mark.parametrize(("kind", "status", "trials"), [("good", Status.CONFORMS, 5), ("clear later", None, 13)])
def test_execute_looks_until_it_is_clear(room, tmp_path, kind, status, trials):
    room(kind)
    asked = plan(cell_questions(HEATMAP, HEATMAP.smoke[:2]), trials=5, most_trials=20)
    answers = list(execute(asked, benches.find(), Store(tmp_path / "r.jsonl")))
    assert {answer.key for answer in answers} == set(asked.work)
    for answer in answers:
        (judged,) = answer.judged
        assert len(answer.measurements) == judged.verdict.n == trials
        assert status is None or judged.verdict.status is status


@pytest.mark.parametrize("ahead", [True, False])
def test_an_execution_answers_what_it_is_asked(room, tmp_path, ahead):
    room("good")
    questions = cell_questions(HEATMAP, HEATMAP.smoke[:3])
    path = tmp_path / "r.jsonl"
    with Execution(plan(questions, trials=5), benches.find(), Store(path), ahead=ahead) as execution:
        judged = execution.ask(questions[2])
    assert (judged.question, judged.verdict.status) == (questions[2], Status.CONFORMS)
    assert set(judged.measured) == {questions[2].setting}
    if not ahead:
        assert len(path.read_text().splitlines()) == 5

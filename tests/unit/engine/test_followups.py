"""Trials that follow from measurements are made in running guests, and judged as if each had a guest of its own."""

import collections
import threading

import fake_room
import pytest
from helpers import at_once, line, refusal

from conformance.catalogue import documents, scenarios
from conformance.catalogue.questions import cell_questions, split_questions, zone_questions
from conformance.commands.measuring import source
from conformance.engine import benches, execute
from conformance.engine.benches import Means
from conformance.engine.execute import Execution
from conformance.model.errors import UserError
from conformance.model.judging import seeds
from conformance.model.judging.session import Session, plan
from conformance.model.judging.verdict import Status
from conformance.model.judging.zone import AT_1_MS, kind_of
from conformance.model.split.split_zone import PathCheck
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support.console import Console

HEATMAP, LOSS = documents.zone_of("cubic"), documents.zone_of("cubic", "loss")
CELLS = tuple(c for c, permitted in HEATMAP.intervals.items() if permitted.counted and LOSS.intervals[c].counted)
SPLIT = documents.split_part("cubic/split")
#: so few questions that five trials detect each violation
QUESTIONS = (*cell_questions(HEATMAP, CELLS[:20]), *cell_questions(LOSS, CELLS[:20]))
PATIENCE_S = 60


def violates(judged):
    return judged.status is Status.VIOLATES


class Room(fake_room.Room):
    """A room that counts its starts and each trial; after `ends` trials it makes no more, as if interrupted."""

    def __init__(self, kind, ends=None):
        super().__init__(kind)
        self.starts, self.made, self.stuck = 0, collections.Counter(), threading.Event()
        self._ends, self._lock = ends, threading.Lock()

    def run(self, adapter, batches, cancelled):
        started = False
        for trials in batches:
            for trial in trials:
                with self._lock:
                    self.starts, started = self.starts + (not started), True
                    ended = self._ends is not None and self.made.total() >= self._ends
                    if not ended:
                        self.made[trial.key] += 1
                if ended:
                    self.stuck.set()
                    cancelled.wait(PATIENCE_S)
                    return
                yield fake_room.made(trial, self.kind)


@pytest.fixture
def session(tmp_path):
    """Return a function that asks a plan's questions as pytest does: (verdicts, those with fresh seeds, room)."""

    def run(kind, asked, file="r.jsonl", order=None, new=violates, ends=None, **how):
        room = Room(kind, ends)
        fake_room.install(kind, lambda kind: room)
        first, again = {}, {}
        kept = store.Store(tmp_path / file)
        with Execution(asked, benches.find(), kept, new=new, **how) as execution:
            if ends is not None:
                assert room.stuck.wait(PATIENCE_S)
                return first, again, room
            for question in order or asked.questions:
                first[question] = execution.ask(question)
                if violates(first[question]):
                    again[question] = execution.repeat(first[question])
        return first, again, room

    return run


def lines(path):
    return sorted(map(line, store.read(path)))


@pytest.mark.parametrize("workers", [1, 2])
def test_violations_start_no_guest_of_their_own(session, workers):
    asked = plan(QUESTIONS, trials=5, most_trials=20)
    _, again, room = session("bad", asked, workers=workers)
    assert set(again) == set(QUESTIONS) and all(map(violates, again.values()))
    assert room.starts <= workers
    assert room.made.total() == 2 * 5 * 20 and set(room.made.values()) == {1}
    for judged in again.values():
        (found,) = judged.measured.values()
        fresh = asked.first_seed + seeds.FRESH
        assert [m.trial.seed for m in found] == list(range(fresh, fresh + judged.verdict.n))


def test_each_violation_is_repeated_as_soon_as_it_is_known(session, tmp_path):
    """The violation's test is the next to be reported."""
    session("bad", plan(cell_questions(HEATMAP, CELLS[:3]), trials=5), workers=1)
    made = [(CELLS.index(m.trial.setting.cell), m.trial.seed > seeds.FRESH) for m in store.read(tmp_path / "r.jsonl")]
    assert list(dict.fromkeys(made)) == [(at, fresh) for at in range(3) for fresh in (False, True)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bad", "bad once", "clear later", "unclear", "good", "error"])
@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 2}, {"ahead": False, "workers": 1}])
def test_trials_and_verdicts_are_those_of_repeats_that_are_made_alone(session, tmp_path, kind, how):
    """Repeats are made alone if nothing counts as new: then each is asked for by itself, as pytest did before."""
    questions = (*QUESTIONS[:6], *QUESTIONS[20:23])
    asked = plan(questions, trials=5, most_trials=20)
    *alone, _ = session(kind, asked, "alone.jsonl", new=lambda judged: False, workers=1)
    *found, _ = session(kind, asked, **how)
    assert found == alone
    assert lines(tmp_path / "r.jsonl") == lines(tmp_path / "alone.jsonl")
    assert bool(alone[1]) == (kind in ("bad", "bad once"))


@pytest.mark.slow
def test_neither_order_nor_a_part_nor_a_shard_changes_a_verdict(session):
    questions = QUESTIONS[:24]
    asked = plan(questions, trials=5, most_trials=20)
    first, again, _ = session("bad", asked)
    assert session("bad", asked, "backwards.jsonl", order=questions[::-1])[:2] == (first, again)
    for part in (questions[::3], questions[1::3], questions[2::3]):
        shard = plan(part, trials=5, most_trials=20, beside=questions)
        own = {question: first[question] for question in part}, {question: again[question] for question in part}
        assert session("bad", shard, f"{len(part)}.jsonl")[:2] == own


@pytest.fixture(scope="module")
def checks():
    """Return questions of CUBIC's split part, which share cells: all about paths, and one about a share of the grid."""
    questions = split_questions(SPLIT, documents.cells("10mbps"))
    share = next(question for question in questions if not isinstance(question.rule, PathCheck))
    return [*(question for question in questions if isinstance(question.rule, PathCheck)), share]


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"ahead": True}, {"ahead": False}])
def test_a_check_of_several_settings_is_repeated_in_the_guests_that_are_there(session, checks, tmp_path, how):
    """All violate at their first look, which is as long as a prediction takes."""
    asked = plan(checks, trials=20)
    *alone, before = session("bad", asked, "alone.jsonl", new=lambda judged: False, workers=1, **how)
    *found, room = session("bad", asked, workers=1, **how)
    assert found == alone and set(found[1]) == set(asked.questions)
    assert lines(tmp_path / "r.jsonl") == lines(tmp_path / "alone.jsonl")
    assert room.starts < before.starts


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["unclear", "clear later", "bad", "good"])
@pytest.mark.parametrize("workers", [1, 2])
def test_checks_of_several_settings_are_looked_at_again_in_few_guests(
    session, checks, monkeypatch, tmp_path, kind, workers
):
    """Trials and verdicts are the same as if more had been measured for each check alone."""
    asked = plan(checks, trials=5, most_trials=20)
    first, again, room = session(kind, asked, workers=workers)
    counts = []
    session(kind, asked, "counted.jsonl", new=lambda _: False, on_trial=lambda p: counts.append((p.done, p.total)))
    assert again or counts[-1] == (len(store.read(tmp_path / "counted.jsonl")),) * 2
    monkeypatch.setattr(execute.FollowUps, "then", lambda *_: ())
    *alone, before = session(kind, asked, "alone.jsonl", workers=1)
    assert [first, again] == alone
    assert lines(tmp_path / "r.jsonl") == lines(tmp_path / "alone.jsonl")
    if workers == 1 and not again:  # two workers race, because fake trials take no time
        # Cells and paths cannot share a guest; each may come back once.
        assert room.starts <= 4 and (kind != "unclear" or room.starts < before.starts)


@pytest.fixture(scope="module")
def of_kinds():
    """Return a plan about a kind of cells of BBRv3."""
    zone = documents.zone_of("bbrv3", profile="packets")
    cells = [cell for cell in zone.places if cell.bandwidth_mbps == 10 and kind_of(cell, zone.metric) == AT_1_MS]
    questions = zone_questions(zone, [scenarios.setting(zone.profile, cell) for cell in cells])
    return plan(questions, trials=5, most_trials=20)


def findings_of_a_command(asked, path, budget_s=None):
    means = Means(results=path, notes=ConsoleNotes(Console()), workers=1)
    return Session(plan=asked, confirms=False).findings(source(benches.find(), means, left_s=lambda: budget_s))


@pytest.mark.parametrize(("kind", "budget_s"), [("unclear", None), ("clear later", None), ("clear later", PATIENCE_S)])
def test_a_command_judges_a_kind_of_cells_by_all_of_its_trials_as_pytest_does(
    session, of_kinds, tmp_path, kind, budget_s
):
    by_pytest, *_ = session(kind, of_kinds)
    found = findings_of_a_command(of_kinds, tmp_path / "command.jsonl", budget_s)
    assert [finding.verdict for finding in found] == [by_pytest[asked].verdict for asked in of_kinds.questions]
    assert max(finding.verdict.n for finding in found) > 5


def test_a_further_look_that_cannot_be_made_is_no_verdict_of_an_earlier_one(of_kinds, tmp_path):
    class Full(fake_room.Room):
        def made(self, trial):
            if trial.seed >= of_kinds.first_seed + of_kinds.looks[0]:
                raise UserError("the disk is full")
            return super().made(trial)

    fake_room.install("unclear", Full)
    assert "the disk is full" in refusal(findings_of_a_command, of_kinds, tmp_path / "r.jsonl")


@pytest.mark.slow
def test_a_check_that_was_measured_before_needs_no_guest(session, checks, tmp_path):
    asked = plan(checks, trials=5, most_trials=20)
    *whole, made = session("unclear", asked)
    *found, nothing = session("unclear", asked)
    assert found == whole and made.starts and not nothing.starts


def test_a_worker_of_xdist_repeats_a_violation_in_the_guest_that_found_it(session):
    asked = plan(cell_questions(HEATMAP, CELLS[:4]), trials=5)
    *_, room = session("bad", asked, workers=1, ahead=False)
    assert room.starts == 4


def test_only_what_is_new_is_repeated(session, tmp_path):
    questions = cell_questions(HEATMAP, CELLS[:4])
    asked = plan(questions, trials=5)
    session("bad", asked, new=lambda judged: judged.question is questions[2], order=questions[2:3])
    made = [m.trial for m in store.read(tmp_path / "r.jsonl")]
    assert {trial.setting for trial in made if trial.seed > seeds.FRESH} == {questions[2].setting}


@pytest.mark.parametrize("ends", [0, 3, 5, 8, 12, 19])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_loses_nothing_and_what_follows_makes_the_rest(session, tmp_path, ends, workers):
    asked = plan(cell_questions(HEATMAP, CELLS[:2]), trials=5)
    *whole, _ = session("bad", asked, "whole.jsonl")
    *_, cut = session("bad", asked, ends=ends, workers=workers)
    assert {m.trial.key for m in store.read(tmp_path / "r.jsonl")} == set(cut.made) and len(cut.made) == ends
    *found, rest = session("bad", asked, workers=workers)
    assert found == whole and rest.made.total() == 20 - ends and not rest.made & cut.made
    assert lines(tmp_path / "r.jsonl") == lines(tmp_path / "whole.jsonl")
    *found, nothing = session("bad", asked, workers=workers)
    assert found == whole and not nothing.starts


def test_who_waits_for_a_repeat_is_told_of_an_interrupt(tmp_path):
    room = Room("bad", ends=7)
    fake_room.install("bad", lambda kind: room)
    asked = plan(cell_questions(HEATMAP, CELLS[:1]), trials=5)
    with Execution(asked, benches.find(), store.Store(tmp_path / "r.jsonl"), new=violates) as execution:
        judged = execution.ask(asked.questions[0])
        assert room.stuck.wait(PATIENCE_S)
    assert "interrupted" in refusal(execution.repeat, judged)


def test_two_sessions_with_one_results_file_repeat_once(session, tmp_path):
    asked = plan(cell_questions(HEATMAP, CELLS[:6]), trials=5)
    made = []
    at_once(*[lambda: made.append(session("bad", asked))] * 2)
    assert made[0][:2] == made[1][:2]
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2 * 5 * 6

"""`run`, `gate`, `cross`, `expect` and pytest come to the same verdict and the same exit status."""

import dataclasses
import random

import fake_room
import pytest
from helpers import CELL, as_read, invoke, measurement, measurements, of_trial, refusal, zone_on, zone_verdicts

from conformance.catalogue import documents
from conformance.catalogue.questions import cell_questions, split_questions
from conformance.commands import cross, gate, run as running
from conformance.commands.gate import ZoneResult, by_zone
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.model.groups import grouped
from conformance.model.judging.session import Finding, Session, plan, settle, stored
from conformance.model.judging.verdict import Status, Verdict
from conformance.model.judging.zone import NO_LOSS, Basis, kind_of
from conformance.model.networks.place import Cell
from conformance.model.split.split_zone import PathCheck
from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps
from conformance.reporting.heatmaps import CellResult
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support.console import Console

ZONE = zone_on(Basis.of("r", [0.4 + 0.2 * at / 19 for at in range(20)]))
PERMITTED = ZONE.intervals[CELL]


class Turns(fake_room.Room):
    """A room whose first five trials are far below the zone, and all others like the reference."""

    def made(self, trial):
        return fake_room.made(trial, "bad" if trial.seed < 1006 else "good")


@pytest.mark.parametrize("command", [("run",), ("gate", "--no-confirm", "--no-why")])
def test_a_look_that_nobody_asked_for_decides_nothing(command, tmp_path, monkeypatch):
    """If twenty trials were asked for at once, they are one look, not four."""
    monkeypatch.chdir(tmp_path)
    fake_room.install("good", Turns)
    name, *options = command
    asked = [name, "cubic", "--grid", "10mbps-20ms-2pct", "--trials", "20", *options]
    assert invoke(*asked).exit_code == 0


BBRV3 = documents.zone_of("bbrv3", "heatmap", "packets")
WITHOUT_LOSS = [cell for cell in BBRV3.cells if kind_of(cell) == NO_LOSS]


class Uneven(fake_room.Room):
    """A room in which one cell of a kind has a fifth less than the reference: not enough for its kind to violate."""

    def made(self, trial):
        made, share = super().made(trial), 0.8 if trial.setting.cell == WITHOUT_LOSS[1] else 1.0
        return as_read(made, metrics={**made.metrics, "utilization": share * made.utilization})


def test_run_judges_kinds_of_cells_where_a_zone_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake_room.install("good", Uneven, monkeypatch.setattr)
    cells = ",".join(cell.id for cell in WITHOUT_LOSS)
    done = invoke("run", "bbrv3", "--profile", "packets", "--grid", cells, "--results", "r.jsonl")
    assert "zone bbrv3/heatmap-packets: 1 inconclusive, 1 conforms" in done.output
    assert f"violates at {WITHOUT_LOSS[1].id}" in done.output, "a cell is shown, and decides nothing"
    assert done.exit_code == ExitStatus.UNKNOWN
    (series,) = heatmaps.all_series(store.read("r.jsonl"))
    assert {verdict.status for verdict in series.utilization.verdicts} == {Status.INCONCLUSIVE, Status.CONFORMS}


def test_cross_judges_kinds_of_cells_where_a_zone_does():
    zones = {name: [documents.zone_of(name, "heatmap", "packets")] for name in ("bbrv1", "bbrv3")}
    of_zone = grouped((question.id, question.rule.place.id) for question in cross._questions(zones))
    assert "up-to-2pct" in of_zone["bbrv3/heatmap-packets"]
    assert all(place.startswith("10mbps-") for place in of_zone["bbrv1/heatmap-packets"])


def _verdict(status, place=CELL):
    return Verdict(status=status, zone_id="z", place=place, permitted=PERMITTED, reason="", n=5, value=0.5)


def _exit_statuses(*verdicts):
    """Return the exit statuses of `run`, of `gate` and of `gate --fail-inconclusive`."""
    results = [
        CellResult(
            cell=CELL, n=5, known=5, value=0.5, low=0, high=1, interval=None, late=0, message=None, unsupported=False,
            verdict=verdict, permitted=None, measurements=(),
        )
        for verdict in verdicts
    ]  # fmt: skip
    findings = tuple(Finding(verdict=verdict, expected=None) for verdict in verdicts)
    judged = (ZoneResult(zone=ZONE, scheme_id="s", findings=findings, unmeasured=()),)
    return (
        running.exit_status(results),
        *(gate.GateResult(judged=judged, strict=strict).exit_status for strict in (False, True)),
    )


def test_what_is_not_judged_has_no_part_in_an_exit_status():
    done, unknown, fails = ExitStatus.DONE, ExitStatus.UNKNOWN, ExitStatus.VIOLATES
    not_judged = _verdict(Status.NOT_JUDGED)
    assert _exit_statuses(_verdict(Status.CONFORMS), not_judged) == (done, done, done)
    assert _exit_statuses(_verdict(Status.VIOLATES), not_judged) == (fails, fails, fails)
    # A gate that learned nothing does not pass; `run` has measured what it was asked to.
    assert _exit_statuses(not_judged) == (done, unknown, unknown)


def test_a_failed_trial_in_a_cell_that_is_not_judged_is_an_error_of_run():
    failed = measurement(outcome=Outcome.ERROR)
    result = CellResult(
        cell=CELL, n=1, known=0, value=None, low=None, high=None, interval=None, late=0, message="", unsupported=False,
        verdict=_verdict(Status.NOT_JUDGED), permitted=PERMITTED, measurements=(failed,),
    )  # fmt: skip
    assert running.exit_status([result]) is ExitStatus.ERROR


def test_an_error_where_no_zone_judges_is_one():
    made = [*measurements([0.5] * 4, algorithm="new"), measurement(seed=5, outcome=Outcome.ERROR, algorithm="new")]
    (series,) = heatmaps.all_series(made)
    assert running.MeasuredGrid(series=(series,), results="r", not_judged="x").exit_status is ExitStatus.ERROR


@pytest.mark.parametrize(
    ("own", "other", "status"),
    [
        (Status.CONFORMS, Status.VIOLATES, ExitStatus.DONE),
        (Status.INCONCLUSIVE, Status.VIOLATES, ExitStatus.UNKNOWN),
        (Status.CONFORMS, Status.INCONCLUSIVE, ExitStatus.UNKNOWN),
        (Status.VIOLATES, Status.INCONCLUSIVE, ExitStatus.VIOLATES),
        (Status.INCONCLUSIVE, Status.CONFORMS, ExitStatus.VIOLATES),
        (Status.VIOLATES, Status.ERROR, ExitStatus.VIOLATES),
        (Status.CONFORMS, Status.ERROR, ExitStatus.ERROR),
        (Status.CONFORMS, Status.UNSUPPORTED, ExitStatus.UNKNOWN),
    ],
)
def test_what_is_inconclusive_does_not_tell_algorithms_apart_or_mix_them_up(own, other, status):
    pairs = {("a", "a"): own, ("b", "b"): Status.CONFORMS, ("a", "b"): other, ("b", "a"): Status.VIOLATES}
    verdicts = {pair: (_verdict(found),) for pair, found in pairs.items()}
    made = cross.Cross(algorithms=("a", "b"), schemes={"a": "a", "b": "b"}, cells=(), trials=5, verdicts=verdicts)
    assert made.exit_status is status


OTHER = Cell(10, 40, 1)
#: five values of which chance gives as many in more runs than the first of two cells may have, and fewer than the last
NEARLY = [0.605, 0.63, 0.661, 0.661, 0.661]


def test_cross_settles_each_family_by_holm(tmp_path, monkeypatch):
    """Two cells violate; the second is clear of chance only by Holm's second step."""
    zone = dataclasses.replace(ZONE, smoke=(CELL, OTHER), intervals={CELL: PERMITTED, OTHER: PERMITTED})
    monkeypatch.setattr(documents, "zone_of", lambda algorithm, kind, profile: zone)
    monkeypatch.setattr(documents, "KINDS", ["heatmap"])

    class Outside(fake_room.Room):
        def made(self, trial):
            values = {CELL: [0.9] * 5, OTHER: NEARLY}
            return dataclasses.replace(measurement(values[trial.setting.cell][trial.seed - 1001]), trial=trial)

    fake_room.install("good", Outside)
    found = cross.compute(
        ["cubic"], benches.Choice(), benches.Means(results=tmp_path / "r.jsonl", notes=ConsoleNotes(Console())),
        trials=5, first_seed=1001,
    )  # fmt: skip
    assert [one.status for one in found.verdicts["cubic", "cubic"]] == [Status.VIOLATES] * 2


def _seeded(values, first=1001, cell=CELL):
    made = measurements(values, cell=cell)
    return [of_trial(m, seed=first + at) for at, m in enumerate(made)]


@pytest.mark.parametrize("in_time", [0, 5, 8])
def test_a_repeat_that_was_cut_short_clears_nothing(in_time):
    """Five trials leave the cell unclear, and with eight it violates again."""
    (question,) = cell_questions(ZONE, [CELL])
    asked = plan([question], trials=5, most_trials=20)
    again = [0.9, 0.9, 0.9, 0.9, 0.55, 0.9, 0.9, 0.9][:in_time]

    def source(plan):
        made = _seeded(again, 11001) if plan.repeats else _seeded([0.9] * 5)
        return plan.judged(question.key, made) if made else ()

    found = Session(plan=asked).findings(source)
    (judged,) = by_zone(asked, found, [ZONE], {"cubic": "s"})
    assert gate.GateResult(judged=(judged,), strict=False).exit_status is ExitStatus.VIOLATES
    assert found[0].confirmed.status is Status.VIOLATES


def test_holm_counts_no_cell_that_is_not_counted():
    """Of two cells that violate, the second is found by Holm's second step, whatever else was measured."""
    counted, others = [Cell(10, 20, 1), Cell(10, 40, 1)], [Cell(10, 20, at / 100) for at in range(2, 72)]
    intervals = {cell: PERMITTED for cell in counted}
    intervals |= {cell: dataclasses.replace(PERMITTED, counted=False) for cell in others}
    judged = dataclasses.replace(ZONE, intervals=intervals)
    asked = plan(cell_questions(judged, intervals), trials=5, most_trials=5)
    # By Holm's first step alone, the second cell would not be clear; by the second step it is.
    values = {counted[0]: [0.9] * 5, counted[1]: NEARLY}
    measured = {q.key: _seeded(values.get(q.place, [0.5] * 5), cell=q.place) for q in asked.questions}
    whole = zone_verdicts(asked, measured)[judged.id]
    alone = [asked.judge(q, {q.setting: measured[q.key]}) for q in asked.questions]
    settled = settle(map(Session(plan=asked).finding, alone))
    violating = {c for c in counted if whole.verdicts[c].status is Status.VIOLATES}
    assert violating == {finding.verdict.place for finding in settled if finding.verdict.status is Status.VIOLATES}


SPLIT = documents.split_part("cubic/split")


def _check():
    """Return a question about a path of two unlike segments."""
    every = split_questions(SPLIT, documents.cells("10mbps"))
    return next(one for one in every if isinstance(one.rule, PathCheck) and len(set(one.rule.path.segments)) == 2)


def _asked(asked, question, full, numbers):
    """Ask as a session does: measure what the next look needs, until there is no further look."""
    while True:
        judged = asked.judge(question, {s: full[s][:n] for s, n in numbers.items()})
        needed = asked.next_look(judged)
        if not needed:
            return judged
        numbers = {s: max(n, needed.get(s, 0)) for s, n in numbers.items()}


def test_a_split_verdict_does_not_depend_on_what_else_holds_one_of_its_cells_open():
    question, draw = _check(), random.Random(5)
    low = question.rule.permitted["split"].low
    asked = plan([question], trials=5, most_trials=20)
    statuses = set()
    for _ in range(150):
        full = {}
        for where in question.settings:
            middle, spread = low * draw.choice([0.97, 1.03, 1.1]), draw.choice([0.03, 0.1])
            full[where] = _seeded([middle * (1 + draw.gauss(0, spread)) for _ in range(20)], cell=where.cell)
        alone = _asked(asked, question, full, dict.fromkeys(question.settings, 5))
        statuses.add(alone.status)
        for held in question.settings:
            numbers = {s: 20 if s == held else 5 for s in question.settings}
            assert _asked(asked, question, full, numbers).status is alone.status
        kept = {s: full[s][: len(found)] for s, found in alone.measured.items()}
        (from_file,) = stored({question: kept})
        assert from_file.verdict.status in (alone.status, Status.CONFORMS)
    assert len(statuses) > 1


def test_only_what_is_asked_about_can_save_a_session_from_being_blind():
    """In the other 120 cells the reference has 20 trials, too few to show a violation among so many cells."""
    heatmap = documents.zone_of("cubic")
    few = [cell for cell, permitted in heatmap.intervals.items() if permitted.counted and permitted.basis.n == 20]
    asked = plan(cell_questions(heatmap, few), trials=5, most_trials=5)
    assert "5 trials can never show that it is violated" in refusal(asked.refuse_blind)
    plan(cell_questions(heatmap, heatmap.intervals), trials=5, most_trials=5).refuse_blind()

"""Runs of references: their blocks and looks, what is counted and what is recorded, with made-up measurements."""

import dataclasses
import json
import re
import types

import fake_room
import pytest
from helpers import invoke, measurement, zone

from conformance.commands import false_alarms, mutants
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import scores
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import schema

A, B = Cell(10, 20, 0), Cell(10, 20, 1)
PLAN = mutants.MutantOptions(profile="atc25", trials=5, max_trials=20, first_seed=1001, results="r.jsonl", workers=1)


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """Replace guests: trials give 0.5, in cell B `value(seed)`, where None is an error; `asked` lists (cell, seeds)."""
    lab = types.SimpleNamespace(asked=[], value=lambda seed: 0.5)

    class Room(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            for trials in batches:
                lab.asked.append((trials[0].setting.cell, [trial.seed for trial in trials]))
                yield from map(self.made, trials)

        def made(self, trial):
            value = lab.value(trial.seed) if trial.setting.cell == B else 0.5
            made = measurement(value) if value else measurement(outcome=Outcome.ERROR, message="the guest died")
            return dataclasses.replace(made, trial=trial)

    lab.kernel = types.SimpleNamespace(name="default", release="6.12.0", digest="e" * 16)
    bench = fake_room.bench_of(Room("good"), kind=benches.Bench, kernel=lab.kernel)
    lab.zone = zone(intervals=dict.fromkeys((A, B), zone().intervals[zone().cells[0]]))
    monkeypatch.setattr(benches, "find", lambda: bench)
    monkeypatch.setattr(mutants, "zones_of", lambda *_: [lab.zone])
    monkeypatch.setattr(false_alarms, "path", lambda: tmp_path / "false-alarms.json")
    monkeypatch.chdir(tmp_path)
    return lab


def count(n, console, record=False, **plan):
    """Run the command; return (exit status, what it said)."""
    at = console.file.tell()
    found = false_alarms.compute(n, dataclasses.replace(PLAN, **plan), record, ConsoleNotes(console))
    schema.check("false-alarms", printed(found), "false alarms")
    scores.show_counted(found, console)
    status = found.exit_status
    return status, console.file.getvalue()[at:]


@pytest.mark.parametrize(("wrong", "status"), [(False, 0), (True, 1)])
def test_runs_are_counted(made_up, console, wrong, status):
    if wrong:
        made_up.value = lambda seed: 0.9 if seed >= 1021 else 0.5
    ended, said = count(4, console)
    assert ended == status
    assert re.findall(r"^(\w+) +(\w+), seeds from (\d+) \((\d+) trials", said, re.MULTILINE) == [
        ("conforms", "cubic", "1001", "10"),
        ("violates" if wrong else "conforms", "cubic", "1021", "10"),
        ("conforms", "reno", "1001", "10"),
        ("conforms", "bbrv1", "1001", "10"),
    ]
    assert (
        f"{int(wrong)} of 4 whole runs of the references (cubic {int(wrong)} of 2, reno 0 of 1, bbrv1 0 of 1)" in said
    )
    words = "false alarm: cubic, seeds from 1021: cubic/heatmap 10mbps-20ms-1pct: 0.900, permitted 0.400..0.600"
    assert words in said or not wrong
    # The first runs of all three share their seeds, so there are two draws, of which one has an alarm or none.
    assert f"at most {'97.5%' if wrong else '77.6%'} of runs" in said


def test_a_run_looks_again_at_what_is_unclear_with_seeds_of_its_own(made_up, console):
    """The second of two runs has a cell at the edge of its zone; all other results are well inside."""
    made_up.value = lambda seed: (0.61 if seed % 2 else 0.59) if seed >= 1021 else 0.5
    _, said = count(4, console)
    assert re.findall(r"cubic, seeds from (\d+) \((\d+) trials", said) == [("1001", "10"), ("1021", "25")]
    asked = made_up.asked[:5]
    first, second = [*range(1001, 1006), *range(1021, 1026)], list(range(1026, 1041))
    assert sorted(asked[:2]) == sorted([(A, first), (B, first)])
    assert [cell for cell, _ in asked[2:]] == [B, B, B]
    assert [seed for _, seeds in asked[2:] for seed in seeds] == second


def test_a_reference_that_fails_is_no_false_alarm_and_is_tried_again(made_up, console):
    made_up.value = lambda seed: None
    status, said = count(1, console, record=True)
    assert status == 3
    assert "error: cubic, seeds from 1001: the guest died (5 of 5 trials)\n" in said
    assert "false alarms: not known, as no run succeeded" in said
    assert not false_alarms.path().exists()
    made_up.value = lambda seed: 0.5
    assert count(1, console, record=True)[0] == 0


def test_a_run_that_is_recorded_is_not_made_again(made_up, console, tmp_path):
    made_up.value = lambda seed: 0.9 if seed >= 1021 else 0.5
    assert count(3, console, record=True)[0] == 0
    assert len(made_up.asked) == 6
    # On another machine, there are no results.
    status, said = count(5, console, record=True, results="elsewhere/r.jsonl")
    assert status == 1
    assert [seeds for _, seeds in made_up.asked[6:]] == [list(range(1021, 1026))] * 4
    assert "2 of 5 whole runs of the references (cubic 1 of 2, reno 1 of 2, bbrv1 0 of 1)" in said
    kept = json.loads(false_alarms.path().read_text())
    assert [run["first_seed"] for run in kept["cubic"]["runs"]] == [1001, 1021]
    assert kept["cubic"]["runs"][1] == {
        "first_seed": 1021, "trials": 10, "status": "violates",
        "nearest": {"zone": "cubic/heatmap", "cell": "10mbps-20ms-1pct", "ratio": 0.0301, "margin_used": 4.0},
        "why": ["cubic/heatmap 10mbps-20ms-1pct: 0.900, permitted 0.400..0.600"],
    }  # fmt: skip
    again = count(5, console, record=True, results="nowhere/r.jsonl")
    assert again == (1, said.replace("3 of these runs", "5 of these runs").replace("elsewhere", "nowhere"))
    assert len(made_up.asked) == 10


def wider(lab):
    lab.zone = zone(intervals=dict.fromkeys((A, B), zone(0.39, 0.6).intervals[zone().cells[0]]))


def another_kernel(lab):
    lab.kernel.digest = "f" * 16


@pytest.mark.parametrize("change", [wider, another_kernel])
def test_runs_of_other_zones_or_another_lab_do_not_count(made_up, console, change):
    count(6, console, record=True)
    before = json.loads(false_alarms.path().read_text())
    change(made_up)
    made_up.asked.clear()
    count(1, console, record=True, results="elsewhere/r.jsonl")
    assert len(made_up.asked) == 2
    after = json.loads(false_alarms.path().read_text())
    assert [run["first_seed"] for run in before["cubic"]["runs"]] == [1001, 1021]
    assert [run["first_seed"] for run in after["cubic"]["runs"]] == [1001]
    assert after["reno"] == before["reno"]


@pytest.mark.parametrize(
    "text", ["{", "[]", "[" * 100_000, '{"cubic": {}}', '{"cubic": {"about": {}, "runs": [{"trials": 1}]}}']
)
def test_a_record_that_is_none_says_how_to_mend_it(made_up, console, text):
    false_alarms.path().write_text(text)
    with pytest.raises(UserError, match=r"false-alarms\.json.*delete it, and measure again"):
        count(1, console, record=True)


def test_options_that_exclude_each_other(own_cache):
    for words in (
        ["cubic-beta-0.595"],
        ["--whole"],
        ["--out", "x"],
        ["--record", "--zone", "x"],
        ["--record", "--grid", "full"],
    ):
        result = invoke("dev", "mutants", "--false-alarms", "3", *words)
        assert result.exit_code == 2
        assert "give it without" in result.output


def test_recorded_runs_of_another_kernel_are_made_again_and_that_is_said(made_up, console):
    assert "not used" not in count(4, console, record=True)[1]
    made_up.kernel.release, made_up.kernel.digest = "7.2.11", "a" * 16
    _, said = count(4, console, record=True, results="elsewhere/r.jsonl")
    assert "guest kernel Linux 7.2.11; 2 recorded runs of cubic on Linux 6.12.0 are not used\n" in said
    assert said.count("are not used") == 3 and "of these runs" not in said

"""`conformance gate`: order, budget, shards, exit statuses and what it writes; the room is a fake."""

import dataclasses
import functools
import itertools
import json
import re
import threading
import types
import xml.etree.ElementTree as xml

import fake_room
import helpers
import pytest
import senders
from helpers import EVIL, invoke

from conformance.catalogue import documents, scenarios, separation as apart
from conformance.commands import blame, compare_clauses, gate, gate_budget, gate_order, trace, tracing, why
from conformance.commands.gate import ZoneResult
from conformance.commands.result import printed
from conformance.engine import benches, execute, runs
from conformance.engine.progress import RunProgress
from conformance.model.diagnosis import blame as model, feature_table
from conformance.model.errors import UserError
from conformance.model.judging import expectation, grid, kinds
from conformance.model.judging.expectation import Expected
from conformance.model.judging.question import Named
from conformance.model.judging.session import Finding, plan
from conformance.model.judging.verdict import Status, Verdict, ZoneSide
from conformance.model.networks.place import Cell
from conformance.model.trials import trial
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import gate as shown, trace as trace_text
from conformance.reporting.text.progress import ConsoleNotes
from conformance.reporting.tools import github, junit as tools_junit
from conformance.results import merge, store
from conformance.support import files, schema
from conformance.support.console import Console

#: cells that count for utilization and for loss
CELLS = "10mbps-20ms-4pct,10mbps-40ms-4pct,10mbps-60ms-4pct"


class Hangs(fake_room.Room):
    """A room that measures nothing and waits until it is told to end."""

    def run(self, adapter, batches, cancelled):
        cancelled.wait(60)
        yield from ()


@pytest.fixture
def run_with_site(tmp_path, monkeypatch):
    """Return a function that runs the command with a room of the given `kind`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(why, "of_violations", lambda *_: {})
    monkeypatch.setattr(blame, "of_violations", lambda *_: {})

    def call(*arguments, kind="good", room=fake_room.Room):
        fake_room.install(kind, room)
        return invoke("gate", *arguments)

    return call


@pytest.fixture
def run(run_with_site, front_page):
    """Return the same, but no page of a site is written except the first, which is empty."""
    return run_with_site


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes these verdicts known deviations of the stack."""

    def write(status, cells=None, reason="beta is 0.5", side=None):
        entries = [
            Expected(zone_id=zone, cells=cells, verdict=status, reason=reason, side=side)
            for zone in ("cubic/heatmap", "cubic/loss")
        ]
        monkeypatch.setattr(gate.expectations, "load", lambda stack: tuple(entries))

    return write


def test_a_gate_that_nothing_could_fail_is_refused(run):
    zones = [zone for _, zone in documents.judging("atc25") if zone.algorithm == "cubic"]
    result = run("cubic", "--trials", "4", "--max-trials", "4", kind="bad")
    assert result.exit_code == 2
    few = f"4 trials can never show that it is violated, as one of {_counted(zones)} questions; give --max-trials 5"
    assert few in result.output
    result = run("cubic", "--grid", CELLS, "--max-trials", "5", kind="bad")
    assert result.exit_code == 1
    cells = 2 * len(CELLS.split(","))
    assert result.output.count("false alarms in at most 1% of runs") == 1
    assert f"the gate: false alarms in at most 1% of runs (Holm over {cells} cells)" in result.output


def _counted(zones, grid_name="full"):
    """Return how many cells of these zones are counted, of a grid and of zones with cells of their own."""
    return sum(zone.intervals[cell].counted for zone in zones for cell in grid.within(grid_name, zone.places))


def test_a_cell_that_cannot_tell_is_not_judged_and_fails_nothing(run, tmp_path):
    cell = "10mbps-20ms-1pct"
    of = {kind: documents.zone_of("cubic", kind).intervals[Cell.parse(cell)] for kind in ("heatmap", "loss")}
    assert of["heatmap"].counted and not of["loss"].counted
    assert run("cubic", "--grid", cell, "--out", "out", kind="bad").exit_code == 1
    utilization, loss = (zone["cells"][0] for zone in json.loads((tmp_path / "out/gate.json").read_text())["zones"])
    assert utilization["verdict"] == "violates"
    assert (loss["verdict"], loss["surprise"], loss["median"] is not None) == ("not judged", None, True)
    assert "margin 10 % and 0.3 percentage points" in loss["reason"]
    (suite,) = [s for s in xml.parse(tmp_path / "out/junit.xml").iter("testsuite") if "loss" in s.get("name")]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_no_trial_is_spent_on_what_no_zone_can_judge(run, tmp_path):
    heatmap, loss = (documents.zone_of("bbrv2", kind) for kind in ("heatmap", "loss"))
    judged = next(c for c, of in heatmap.intervals.items() if c.bandwidth_mbps == 10 and of.counted)
    blind = next(c for c, of in heatmap.intervals.items() if not of.counted and not loss.intervals[c].counted)
    done = run("bbrv2", "--grid", f"{judged.id},{blind.id}", "--format", "json")
    of_blind = [c for zone in json.loads(done.stdout)["zones"] for c in zone["cells"] if c["cell"] == blind.id]
    assert {(c["verdict"], c["trials"]) for c in of_blind} == {("not judged", 0)} and len(of_blind) >= 2
    assert {m.trial.setting.cell for m in store.read(tmp_path / "results" / "results.jsonl")} == {judged}
    alone = run("bbrv2", "--grid", blind.id)
    assert alone.exit_code == 2 and f"judges cells of {blind.id}" in alone.output


def test_a_shard_knows_how_much_all_shards_judge(run):
    zones = [zone for _, zone in documents.judging("atc25") if zone.algorithm == "cubic"]
    whole = _counted(zones, "10mbps")
    shards = [
        json.loads(run("cubic", "--grid", "10mbps", "--shard", f"{n}/3", "--format", "json").stdout) for n in (1, 3)
    ]
    for found in shards:
        assert found["false_alarms"] == {"at_most": 0.01, "cells": whole}
        assert 0 < sum(len(zone["cells"]) for zone in found["zones"]) < whole / 2


def test_a_new_violation_fails_only_if_fresh_seeds_violate_too(run, tmp_path):
    once = run("cubic", "--grid", CELLS, "--out", "out", kind="bad once")
    assert once.exit_code == 0
    assert "3 new violations: measuring again with fresh seeds" in once.output
    assert once.output.count("not confirmed: violates cubic/heatmap at 10mbps-") == 3
    assert "again with fresh seeds: conforms: inside the zone; median " in once.output
    assert "gate passes: nothing unexpected in 6 verdicts (3 not confirmed)" in once.output
    (zone,) = [z for z in json.loads((tmp_path / "out/gate.json").read_text())["zones"] if z["zone"] == "cubic/heatmap"]
    assert {(c["verdict"], c["again"]["verdict"], c["surprise"]) for c in zone["cells"]} == {
        ("violates", "conforms", "not confirmed")
    }
    schema.load("gate", tmp_path / "out/gate.json")
    # The results have both sets of seeds, and each run is judged by its own.
    for file in ("results/results.jsonl", "out/results.jsonl"):
        assert {m.trial.seed for m in store.read(tmp_path / file)} == {*range(1001, 1006), *range(11001, 11006)}
    assert json.loads((tmp_path / "out/badge.json").read_text())["message"].startswith("3 inconclusive")
    strict = run("cubic", "--grid", CELLS, "--fail-inconclusive", kind="bad once")
    assert strict.exit_code == 4
    assert "gate cannot tell: 3 unknown of 6 verdicts (3 not confirmed)" in strict.output
    assert run("cubic", "--grid", CELLS, "--no-confirm", kind="bad once").exit_code == 1
    other = run("cubic", "--grid", CELLS, "--first-seed", "11001", kind="bad once")
    assert other.exit_code == 0
    assert "again" not in other.output


def test_a_violation_that_comes_again_fails_and_shows_both(run):
    twice = run("cubic", "--grid", CELLS, kind="bad")
    assert twice.exit_code == 1
    assert "violates cubic/heatmap at 10mbps-20ms-4pct: below the zone; median 0.001 of 5 trials" in twice.output
    assert twice.output.count("again with fresh seeds: violates: ") == 6
    assert "gate fails: 6 unexpected of 6 verdicts" in twice.output


def test_a_violation_to_the_other_side_of_a_known_one_fails(run, known):
    known(Status.VIOLATES, side=ZoneSide.BELOW)  # bad utilization is below its zone, and bad loss above
    done = run("cubic", "--grid", CELLS, kind="bad")
    assert done.exit_code == 1
    assert "gate fails: 3 unexpected of 6 verdicts (3 as expected.json says)" in done.output
    assert "; but known to violate below what is permitted: beta is 0.5" in done.output


def test_a_known_deviation_is_gone_only_when_it_is_sure(run, known, tmp_path):
    known(Status.VIOLATES)
    gone = run("cubic", "--grid", CELLS)
    assert gone.exit_code == 1
    # Five trials have no confidence interval of 99 %.
    assert {m.trial.seed for m in store.read(tmp_path / "results/results.jsonl")} == set(range(1001, 1009))
    few = run("cubic", "--grid", CELLS, "--max-trials", "5", "--results", "few.jsonl")
    assert few.exit_code == 0


@pytest.mark.parametrize("kind", ["good", "bad"])
def test_what_is_borderline_passes_either_way(run, known, kind):
    known(expectation.Known.BORDERLINE)
    assert run("cubic", "--grid", CELLS, kind=kind).exit_code == 0


@pytest.mark.parametrize(
    ("kind", "options", "status"),
    [
        ("good", (), 0),
        ("good", ("--fail-inconclusive",), 0),
        ("bad", (), 1),
        ("error", (), 3),
        ("unclear", ("--fail-inconclusive",), 4),
        ("unsupported", ("--fail-inconclusive",), 4),
        # Loss conforms, so something is known; utilization is unclear.
        ("unclear", (), 0),
        # Nothing at all is known.
        ("unsupported", (), 4),
    ],
)
def test_exit_statuses(run, kind, options, status):
    done = run("cubic", "--grid", CELLS, *options, kind=kind)
    assert done.exit_code == status, done.output
    assert f"zone cubic/heatmap, cubic/fake/55555555: 3 {'violates' if kind == 'bad' else ''}" in done.output


def test_what_is_not_known_is_said_with_its_reason(run, known):
    known(Status.VIOLATES, reason=expectation.UNEXPLAINED)
    done = run("cubic", "--grid", CELLS, kind="bad")
    assert "as the stack's expected.json says: 6 verdicts; 6 of them not explained yet" in done.output
    known(Status.VIOLATES, frozenset())
    done = run("cubic", "--grid", CELLS, "--results", "u.jsonl", kind="unsupported")
    assert "unsupported, 6 verdicts: " in done.output and "false alarms" not in done.output
    options = "cubic", "--grid", CELLS, "--results", "i.jsonl"
    assert "inconclusive cubic/heatmap at" not in run(*options, kind="unclear").output
    done = run(*options, "--fail-inconclusive", kind="unclear")
    assert "inconclusive cubic/heatmap at 10mbps-20ms-4pct: " in done.output
    assert "; --max-trials allows more trials" in done.output


def test_expectations_count_both_ways_and_are_not_repeated(run, known, tmp_path):
    known(Status.VIOLATES)
    done = run("cubic", "--grid", CELLS, kind="bad")
    assert done.exit_code == 0 and "as the stack's expected.json says: 6 verdicts\n" in done.output
    assert len(store.read(tmp_path / "results/results.jsonl")) == 15
    done = run("cubic", "--grid", CELLS, "--results", "good.jsonl")
    assert done.exit_code == 1
    assert "conforms cubic/loss at 10mbps-20ms-4pct: inside the zone" in done.output
    assert "; but known to violate: beta is 0.5" in done.output
    mend = "to remove what no longer happens from expected.json: conformance expect update --gone linux-tcp good.jsonl"
    assert mend in done.output
    known(Status.UNSUPPORTED)
    assert (
        run("cubic", "--grid", CELLS, "--fail-inconclusive", "--results", "u.jsonl", kind="unsupported").exit_code == 0
    )


def test_without_names_all_that_the_stack_offers_and_zones_exist_for(run):
    done = run("--grid", "smoke")
    assert done.exit_code == 0
    assert "gate: fake, cubic, reno: " in done.output
    judged = [zone for _, zone in documents.judging("atc25") if zone.algorithm in ("cubic", "reno") and zone.smoke]
    blind = [zone for zone in judged if not any(zone.intervals[at].counted for at in zone.smoke)]
    said = [line for line in done.output.splitlines() if line.startswith("zone ")]
    assert sum(" conforms" in line for line in said) == len(judged) - len(blind) < len(said) == len(judged)


class LeavesBadCells(fake_room.Room):
    """A room of a stack that says in cells which go badly that it lacks the algorithm."""

    def made(self, trial):
        if trial.setting.cell.id not in CELLS.split(",")[:2]:
            return dataclasses.replace(fake_room.made(trial, "unsupported"), message=trial.scheme.not_offered)
        return super().made(trial)


def test_status_127_is_no_way_out_of_a_cell_that_goes_badly(run):
    done = run("cubic", "--grid", CELLS, room=LeavesBadCells)
    assert done.exit_code == 3, done.output
    assert "fake does not offer cubic (5 of 5 trials), although it does in other trials" in done.output


def test_kinds_of_smoke_cells_are_smoke_verdicts():
    """Without them, two cells of the loss spoke for all that a budget had left no time for."""
    heatmap, loss = (documents.zone_of("bbrv3", kind, "packets") for kind in ("heatmap", "loss"))
    places = tuple(rule.place for rule in kinds.rules(heatmap, heatmap.places) if rule.judgeable)
    decided = [Verdict(status=Status.CONFORMS, zone_id=loss.id, place=at, permitted=loss.intervals[at], reason="")
               for at in loss.smoke]  # fmt: skip
    results = [
        ZoneResult(zone=heatmap, scheme_id="s", findings=(), unmeasured=places),
        ZoneResult(zone=loss, scheme_id="s", findings=tuple(Finding(verdict=v) for v in decided), unmeasured=()),
    ]
    found = gate.evidence(results)
    assert found.smoke and found.decided == len(decided) and found.chosen > 2 * len(decided)
    assert {place.id for zone, place in found.undecided if zone is heatmap} == {
        "no-random-loss", "up-to-2pct", "up-to-2pct-even",
    }  # fmt: skip


class LacksReno(fake_room.Room):
    """A room of a stack that does not offer Reno."""

    def made(self, trial):
        return fake_room.made(trial, "unsupported" if trial.scheme.algorithm == "reno" else self.kind)


def test_each_algorithm_that_is_named_or_listed_has_to_be_known(run, tmp_path):
    """With half of all verdicts decided, the gate passed, although nothing was known of one algorithm."""
    named = run("cubic", "reno", "--grid", CELLS, "--out", "out", room=LacksReno)
    assert named.exit_code == 4, named.output
    last = [line for line in named.output.splitlines() if line.startswith("gate ")][-1]
    assert last == "gate cannot tell: no verdict on reno decided (6 unsupported)"
    assert "a gate passes only if a verdict on each algorithm is decided" in named.output
    evidence = schema.load("gate", tmp_path / "out" / "gate.json")["evidence"]
    assert evidence["unknown_algorithms"] == ["reno"] and 2 * evidence["decided"] == evidence["asked"]
    every = run("--grid", CELLS, room=LacksReno)
    assert every.exit_code == 4 and "no verdict on reno decided (6 unsupported)" in every.output, every.output


def test_an_algorithm_none_of_whose_cells_can_be_judged_is_not_known(run):
    zones = [documents.zone_of(algorithm, kind) for algorithm in ("cubic", "bbrv2") for kind in ("heatmap", "loss")]
    *cubic, bbr, bbr_loss = zones
    blind = next(
        cell.id
        for cell in bbr.places
        if not any(zone.intervals[cell].counted for zone in (bbr, bbr_loss))
        and any(zone.intervals[cell].counted for zone in cubic)
    )
    done = run("cubic", "bbrv2", "--grid", blind)
    assert done.exit_code == 4 and "no verdict on bbrv2 decided" in done.output, done.output
    assert run("cubic", "bbrv2", "--grid", f"{CELLS},{blind}", "--shard", "1/2").exit_code in (0, 4)


def test_cells_that_the_baseline_lost_are_named_and_fail_a_strict_gate(run, tmp_path):
    cells = CELLS.split(",")

    class Late(fake_room.Room):
        def made(self, trial):
            made, late = super().made(trial), trial.setting.point.id == cells[0] and trial.seed == 1003
            return dataclasses.replace(made, outcome=Outcome.TIMEOUT, message="late") if late else made

    run("cubic", "--grid", CELLS, "--trials", 20, "--results", "before.jsonl", room=Late)
    options = "cubic", "--baseline", "before.jsonl", "--results", "after.jsonl", "--out", "out"
    done = run(*options)
    assert done.exit_code == 0, done.output
    lost = f"1 without baseline, as a trial of it timed out, failed or ended in an error there ({cells[0]})"
    assert f"2 conforms, {lost}" in done.output
    assert "(2 without baseline)" in done.output
    zone, _ = schema.load("gate", tmp_path / "out" / "gate.json")["zones"]
    assert zone["without_baseline"] == cells[:1]

    def lost_in_junit():
        suite = next(xml.parse(tmp_path / "out/junit.xml").iter("testsuite"))
        return {case.get("name"): case[-1].tag for case in suite if case[-1].get("type") == "without baseline"}

    assert lost_in_junit() == {cells[0]: "skipped"}
    assert run(*options, "--fail-inconclusive").exit_code == 4
    assert lost_in_junit() == {cells[0]: "failure"}


def test_a_stack_that_breaks_off_now_and_then_everywhere_fails(run, tmp_path, monkeypatch):
    class BreaksOff(fake_room.Failing):
        seed = 1003

    monkeypatch.setattr(runs, "beside", lambda bench: fake_room.bench_of(fake_room.Room("good")))
    done = run("cubic", "--grid", "10mbps", "--out", "out", "--annotations", room=BreaksOff)
    assert done.exit_code == 1, done.output
    words = r"\d+ of \d+ trials of cubic failed, and none of \d+ of another stack; it ended \(1 of 8 trials failed; .*"
    assert re.search(f"cubic fails, all cells taken together: {words}", done.output), done.output
    assert re.search(r"gate fails: nothing unexpected of \d+ verdicts \(\d+ of \d+ trials of cubic failed", done.output)
    assert "::error title=cubic fails::" in done.output
    (failures,) = schema.load("gate", tmp_path / "out" / "gate.json")["failures"]
    assert failures["algorithm"] == "cubic" and failures["failed"] > 30 and failures["p"] < 0.01
    suites = {suite.get("name"): suite for suite in xml.parse(tmp_path / "out/junit.xml").iter("testsuite")}
    assert suites["failures in all cells taken together"].get("failures") == "1"


def test_an_algorithm_of_the_baseline_that_is_not_offered_any_more_does_not_pass(run):
    run("cubic", "reno", "--grid", CELLS, "--trials", 20, "--results", "before.jsonl")
    done = run("--grid", CELLS, "--baseline", "before.jsonl", "--results", "after.jsonl", room=LacksReno)
    assert done.exit_code == 4 and "no verdict on reno decided" in done.output, done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cubik",), "no zone for algorithm 'cubik'; did you mean cubic? choose one of bbrv1"),
        (("cubic", "--budget", "10"), "--budget 10 is not a usable length of time; give one such as 90s"),
        (("cubic", "--budget", "0m"), "--budget 0m"),
        (("cubic", "--shard", "3/2"), "--shard 3/2 does not name a part; give which of how many, such as 2/5"),
        (("cubic", "--grid", "10mbps-20ms-1pct,10mbps-7ms-0pct"), "no zone of cubic has 10mbps-7ms-0pct; `conformance"),
        (("cubic", "--grid", "10mbps-20ms-1pct", "--shard", "2/2"), "judges cells of 10mbps-20ms-1pct in shard 2/2"),
        (("cubic", "--grid", "smok"), "grid 'smok' is not known; choose smoke, full, 10mbps"),
        (("cubic", "--trials", "0"), "Invalid value for '--trials'"),
        (("cubic", "--stack", "missing"), "stack 'missing' is not known"),
        (("cubic", "--baseline", "none.jsonl"), "cannot read results none.jsonl"),
        (("cubic", "--out", "results"), "--out results would replace the file of --results results/results.jsonl"),
    ],
)
def test_mistakes_are_misuse(run, arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output and "Traceback" not in done.output


def test_lengths_of_time():
    assert [gate_budget.seconds(text) for text in ("90s", "10m", "1.5h", None)] == [90, 600, 5400, None]


def test_smoke_cells_come_first_then_one_of_each_other_zone_then_cheap_ones_and_of_these_telling_ones():
    others = [zone for _, zone in documents.judging("atc25")]
    zones = {name: [zone for zone in others if zone.algorithm == name] for name in ("cubic", "reno")}
    ordered = gate_order.order(zones, others, "full")
    work = ordered.work
    further = sum(len(documents.zone_of("cubic", kind).cells) for kind in ("startup", "competing", "sawtooth-queue",
                                                                       "identify-queue", "pacing"))  # fmt: skip
    points = {(z.algorithm, z.profile, at) for own in zones.values() for z in own if not z.of_cells for at in z.places}
    assert len(work) == len(set(work)) == 2 * (150 + further) + len(points)
    at_smoke = {(z.algorithm, z.profile, at) for own in zones.values() for z in own for at in z.smoke}
    smoke = [(algorithm, scenarios.setting(profile, at)) for algorithm, profile, at in at_smoke]
    assert (
        set(work[: len(smoke)]) == set(smoke) == set(gate_order.order(zones, others, grid.SMOKE).work) == ordered.smoke
    )
    rest = work[len(smoke) :]
    unlooked = {(z.algorithm, z.profile) for own in zones.values() for z in own} - {(a, p) for a, p, _ in at_smoke}
    first, rest = rest[: len(unlooked)], rest[len(unlooked) :]
    assert ordered.urgent == {*smoke, *first}
    assert {(a, s.profile) for a, s in first} == unlooked >= {("cubic", "competing"), ("reno", "identify")}
    for algorithm, cheap in first:
        others_of_it = [s.transfer_bytes for a, s in rest if (a, s.profile) == (algorithm, cheap.profile)]
        assert cheap.transfer_bytes <= min(others_of_it)
    assert [s.transfer_bytes for _, s in rest] == sorted(s.transfer_bytes for _, s in rest)

    def telling(algorithm, cell):
        """Return how well a cell tells an algorithm from others by utilization and loss: by its worst gap."""
        widest = {}
        for mine in zones[algorithm]:
            for theirs in others:
                alike = (theirs.metric, theirs.profile) == (mine.metric, mine.profile) == (mine.metric, "atc25")
                if alike and theirs.algorithm != algorithm:
                    gap = apart.gap(mine.intervals[cell], theirs.intervals[cell])
                    widest.setdefault(theirs.algorithm, []).append(gap)
        return min(max(gaps) for gaps in widest.values())

    cheap = [
        telling(a, s.cell) for a, s in rest if a == "reno" and s.profile == "atc25" and s.cell.bandwidth_mbps == 10
    ]
    assert cheap == sorted(cheap, reverse=True)


def test_smoke_cells_are_measured_in_order_even_if_one_of_two_guests_waits_for_a_core(tmp_path):
    """The other guest made only trials of the zone `bonded`, which were many, and none of the cells before it."""
    zones = [zone for _, zone in documents.judging("packets") if zone.algorithm == "cubic"]
    ordered = gate_order.order({"cubic": zones}, zones, grid.SMOKE)
    profiles, enough = [], threading.Event()
    cell = next(setting.point for _, setting in ordered.work if setting.of_profile)

    class OneCore(fake_room.Room):
        def run(self, adapter, batches, cancelled):
            for trials in batches:
                if trials[0].setting.point == cell:
                    cancelled.wait(60)
                    return
                profiles.append(trials[0].setting.profile)
                if len(profiles) == 12:
                    enough.set()
                yield from super().run(adapter, [trials], cancelled)

    fake_room.install("good", OneCore)
    asked = plan(trials=5, work=ordered.work, urgent=ordered.urgent)
    with execute.Execution(asked, benches.find(), store.Store(tmp_path / "r.jsonl"), workers=2):
        assert enough.wait(60)
    assert profiles[:12] == ["short-flows", *["packets"] * 11]


@pytest.mark.slow
def test_zones_of_their_own_profiles_are_judged_too(run, tmp_path, monkeypatch):
    traced = []
    monkeypatch.setattr(trace, "compute", lambda *_, profile, target, **__: traced.append((profile, str(target))))
    monkeypatch.setattr(trace_text, "show", lambda found, console: None)
    cell = "10mbps-50ms-0pct"  # a cell that all of them have, and no grid
    done = run("cubic", "--grid", cell, "--keep-traces", "kept", kind="bad")
    assert done.exit_code == 1 and "gate: fake, cubic: 4 cells" in done.output
    for kind in ("startup", "competing", "identify-utilization", "identify-queue", "sawtooth-queue"):
        assert f"zone cubic/{kind}, cubic/fake/55555555: 1 violates" in done.output
    assert "cubic/heatmap" not in done.output
    names = {"competing", "identify", "startup", "sawtooth"}
    assert {m.trial.setting.profile for m in store.read(tmp_path / "results/results.jsonl")} == names
    assert len(traced) == 3 and all(target == f"kept/cubic-{cell}-{profile}" for profile, target in traced)
    assert "zone cubic/startup, cubic/fake/55555555: 6 conforms" in run("cubic", "--results", "all.jsonl").output


@pytest.mark.slow
def test_shards_share_all_cells_out_once_and_merge_into_the_same_verdict(run, tmp_path):
    whole = [f"c{at}" for at in range(17)]
    parts = [gate_order.share(whole, which, 5) for which in range(1, 6)]
    assert sorted((c for part in parts for c in part), key=whole.index) == whole
    for which in (1, 2):
        done = run("cubic", "--grid", "10mbps", "--shard", f"{which}/2", "--results", f"{which}.jsonl")
        assert done.exit_code == 0 and "24 cells" in done.output
    assert merge.merge(["1.jsonl", "2.jsonl"], "all.jsonl") == 5 * 48
    # All trials are in the results, so the room, which is now a bad one, is not asked.
    done = run("cubic", "--grid", "10mbps", "--results", "all.jsonl", "--out", "out", kind="bad")
    assert done.exit_code == 0 and "29 conforms, 1 not judged" in done.output
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()


@pytest.mark.slow
def test_only_what_was_measured_in_time_is_judged(run, tmp_path):
    class Slow(fake_room.Room):
        """A room that measures ten cells, then hangs until it is told to end."""

        def run(self, adapter, batches, cancelled):
            for trials in itertools.islice(batches, 10):
                yield from super().run(adapter, [trials], cancelled)
            cancelled.wait(60)

    options = "cubic", "--grid", "10mbps", "--budget", "3s", "--out", "out", "--workers", 1
    done = run(*options, room=Slow)
    assert done.exit_code == 0, done.output
    suites = xml.parse(tmp_path / "out" / "junit.xml").getroot()
    cases = suites.findall("testsuite/testcase")
    missing = [case for case in cases if case.find("skipped[@type='not measured']") is not None]
    blind = [case for case in cases if case.find("skipped[@type='not judged']") is not None]
    skipped = sum(case in missing for case in suites[0].findall("testcase"))
    assert 20 <= skipped < 30
    assert f"{29 - skipped} conforms, 1 not judged, {skipped} not measured in time (10mbps-" in done.output
    assert (
        f"gate passes: nothing unexpected in {len(cases) - len(missing) - len(blind)} verdicts"
        f" ({len(missing)} not measured in time)" in done.output
    )
    assert run(*options, "--fail-inconclusive", room=Slow).exit_code == 4
    # The next run continues from there.
    assert "29 conforms, 1 not judged" in run("cubic", "--grid", "10mbps").output
    # Stored results are judged however short the budget is; the run does not wait for the rest of each guest's list.
    lines = (tmp_path / "results" / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "few.jsonl").write_text("".join(line for line in lines if '"one_way_delay_ms":20' in line))
    again = run("cubic", "--grid", "10mbps", "--budget", "1s", "--workers", 1, "--results", "few.jsonl", room=Hangs)
    assert "5 conforms, 1 not judged, 24 not measured in time" in again.output


def test_what_was_seen_of_an_unclear_cell_in_time_is_inconclusive(run):
    options = "cubic", "--grid", CELLS, "--results", "r.jsonl"
    assert "3 inconclusive" in run(*options, "--trials", 5, "--max-trials", 10, kind="unclear").output
    done = run(*options, "--budget", "1s", kind="unclear", room=Hangs)
    assert "3 inconclusive" in done.output and "not measured" not in done.output


def test_what_it_writes(run_with_site, tmp_path, known):
    known(Status.VIOLATES, frozenset(grid.cells("10mbps-20ms-4pct")), reason=EVIL + "|`")
    assert run_with_site("cubic", "--grid", CELLS, "--out", "out", kind="bad").exit_code == 1
    out = tmp_path / "out"
    suites = xml.parse(out / "junit.xml").getroot()
    assert [dict(suite.attrib) for suite in suites] == [
        {"name": f"cubic/{kind} cubic/fake/55555555", "tests": "3", "failures": "2", "errors": "0", "skipped": "1"}
        for kind in ("heatmap", "loss")
    ]
    case, deviation = (suites[0].find(f"testcase[@name='10mbps-{at}']") for at in ("40ms-4pct", "20ms-4pct"))
    assert case.find("properties/property[@name='verdict']").get("value") == "violates"
    assert case.find("properties/property[@name='utilization']").get("value") == "0.001"
    assert "permitted" in case.find("failure").get("message")
    assert EVIL in deviation.find("skipped").get("message")
    text = (out / "summary.md").read_text()
    assert text.startswith("### Gate fails: 4 unexpected of 6 verdicts (2 as expected.json says)\n")
    assert "cubic/loss at 10mbps-40ms-4pct: above the zone" in text
    assert "### Congestion-control conformance" in text
    assert (
        json.loads((out / "summary.json").read_text())["schemes"][0]["metrics"]["utilization"]["verdict"] == "violates"
    )
    found = schema.load("gate", out / "gate.json")
    assert (found["status"], found["exit_status"], found["baseline"]) == ("fails", 1, False)
    utilization, loss = found["zones"]
    assert (utilization["zone"], utilization["count"], loss["metric"]) == ("cubic/heatmap", {"violates": 3}, "lost_pct")
    was_known, new, _ = utilization["cells"]
    assert (new["cell"], new["surprise"], new["expected"]) == ("10mbps-40ms-4pct", "not expected", None)
    assert (was_known["surprise"], was_known["expected"]["verdict"]) == (None, "violates")
    assert was_known["median"] == 0.001 and was_known["trials"] == 5
    assert json.loads((out / "badge.json").read_text())["message"] == "6 violates"
    assert (out / "badge.svg").read_bytes().startswith(b"<svg")
    assert "violates" in (out / "site" / "index.html").read_text()
    assert len(store.read(out / "results.jsonl")) == 25  # two violations were measured again


def test_reports_are_of_this_run_alone(run, tmp_path):
    run("reno", "--grid", CELLS)
    run("cubic", "--grid", CELLS, "--out", "out")
    assert {m.trial.scheme.algorithm for m in store.read(tmp_path / "out" / "results.jsonl")} == {"cubic"}


def test_the_verdict_is_written_before_the_site(run, tmp_path, monkeypatch):
    """A site takes seconds, in which CI may end the command."""

    def terminated(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(shown.site, "write", terminated)
    run("cubic", "--grid", CELLS, "--out", "out")
    assert all((tmp_path / "out" / name).exists() for name in shown.VERDICT)


def test_a_site_of_an_earlier_run_is_not_left_where_nothing_was_measured(run, tmp_path):
    run("cubic", "--grid", CELLS, "--out", "out")
    assert (tmp_path / "out" / "site" / "index.html").exists()
    run("cubic", "--grid", CELLS, "--budget", "1s", "--out", "out", "--results", "other.jsonl", room=Hangs)
    assert not (tmp_path / "out" / "results.jsonl").read_bytes()
    assert not (tmp_path / "out" / "site" / "index.html").exists()


@pytest.mark.parametrize("arguments", [("cubic", "--shard", "9/2"), ("cubic", "--stack", "missing")])
def test_an_earlier_verdict_does_not_outlive_a_gate_that_ends_early(run, tmp_path, arguments):
    assert run("cubic", "--grid", CELLS, "--out", "out").exit_code == 0
    verdict = [tmp_path / "out" / name for name in (*shown.VERDICT, "site/index.html")]
    assert all(file.exists() for file in verdict)
    assert run(*arguments, "--out", "out").exit_code == 2
    assert not any(file.exists() for file in verdict)
    assert (tmp_path / "out" / "results.jsonl").exists()


def verdict(kind, status, **changes):
    """Return (zone, a verdict on it) for a cell whose utilization is counted and whose loss is not."""
    zone, cell = documents.zone_of("cubic", kind), Cell.parse("10mbps-20ms-1pct")
    permitted = zone.intervals[cell]
    said = {"reason": "as asked", "n": 5, "value": permitted.low, "interval": (permitted.low, permitted.low)}
    return zone, Verdict(status=status, zone_id=zone.id, place=cell, permitted=permitted, **said | changes)


def found(*results, strict=False):
    return gate.GateResult(
        judged=tuple(
            ZoneResult(zone=zone, scheme_id="cubic/x/1", findings=findings, unmeasured=unmeasured)
            for zone, findings, unmeasured in results
        ),
        strict=strict,
    )


def said(outcome):
    """Return the lines that a terminal shows; the last one says how the gate ends."""
    return helpers.shown(shown.show, outcome).splitlines()


def test_what_is_not_judged_fails_a_strict_gate_in_no_report():
    good, one = verdict("heatmap", Status.CONFORMS)
    other, not_judged = verdict("loss", Status.NOT_JUDGED)
    outcome = found((good, (Finding(verdict=one, expected=None),), ()),
                    (other, (Finding(verdict=not_judged, expected=None),), ()), strict=True)  # fmt: skip
    assert outcome.exit_status == 0
    junit = xml.fromstring(tools_junit.render(outcome, lambda one: one.verdict.reason))
    assert (len(list(junit.iter("failure"))), len(list(junit.iter("skipped")))) == (0, 1)
    *lines, ending = said(outcome)
    assert "not judged" not in "".join(line for line in lines if not line.startswith("zone "))
    assert "in 1 verdict" in ending
    counted = next(cell for cell, of in good.intervals.items() if of.counted and cell != one.place)
    lacking = found((good, (Finding(verdict=one, expected=None),), (counted,)), strict=True)
    assert lacking.exit_status == 4
    assert len(list(xml.fromstring(tools_junit.render(lacking, lambda one: "")).iter("failure"))) == 1


def test_junit_says_what_a_violation_in_a_kind_of_cells_is_due_to():
    zone, violates = verdict("heatmap", Status.VIOLATES)
    kind = dataclasses.replace(violates, place=Named("up-to-2pct"))
    outcome = found((zone, (Finding(verdict=kind, expected=None, at=violates.place),), ()))
    cause = model.NotAttributed("it is not a rate")
    blamed = dataclasses.replace(outcome, blamed={(zone.id, violates.place): cause})
    junit = xml.fromstring(tools_junit.render(blamed, lambda finding: ""))
    (case,) = junit.iter("testcase")
    assert case.find("properties/property[@name='blame']").get("value") == cause.sentence


def test_transfers_that_break_off_in_too_few_trials_to_fail_are_named_and_do_not_pass():
    """The gate passed, and named no such cell, although 8 of 20 transfers broke off."""
    reason = "client: reset (8 of 20 trials failed): more trials needed"
    zone, open_ = verdict("heatmap", Status.INCONCLUSIVE, leaning=Status.FAILS, reason=reason)
    decided = [Finding(verdict=dataclasses.replace(open_, status=Status.CONFORMS, place=at)) for at in SMOKE]
    outcome = found((zone, (Finding(verdict=open_), *decided), ()))
    assert outcome.exit_status == 4
    assert said(outcome)[-1] == f"gate cannot tell: 1 of {len(SMOKE) + 1} verdicts may fail (1 inconclusive)"
    assert any(reason in line for line in said(outcome))
    known = Expected(zone_id=zone.id, cells=None, verdict=expectation.Known.FAILS, reason="known")
    assert found((zone, (Finding(verdict=open_, expected=known), *decided), ())).exit_status == 0
    violates = dataclasses.replace(open_, leaning=Status.VIOLATES)
    outcome = found((zone, (Finding(verdict=violates), *decided), ()))
    assert outcome.exit_status == 0
    assert said(outcome)[-1] == f"gate passes: nothing unexpected in {len(SMOKE) + 1} verdicts (1 inconclusive)"


SMOKE = [place for place in documents.zone_of("cubic").smoke if place.bandwidth_mbps == 10]
SMOKE_IDS = [place.id for place in SMOKE]
OTHERS = "10mbps-1ms-4pct,10mbps-20ms-4pct,10mbps-40ms-4pct"


@pytest.mark.parametrize(
    ("grid_name", "measured", "kind", "status", "words"),
    [
        # Utilization is counted in seven of these cells, loss in three.
        ("10mbps", SMOKE_IDS[:2], "good", 4, "gate cannot tell: 4 of 10 smoke verdicts decided ("),
        ("10mbps", SMOKE_IDS[:3], "good", 0, "gate passes: nothing unexpected in 5 verdicts ("),
        ("10mbps", SMOKE_IDS[:1], "bad", 1, "gate fails: 2 unexpected of 2 verdicts ("),
        ("10mbps", ["10mbps-20ms-4pct"], "good", 4, "gate cannot tell: none of 10 smoke verdicts decided ("),
        # Without smoke cells, all that was asked for counts.
        (OTHERS, ["10mbps-20ms-4pct"], "good", 4, "gate cannot tell: 2 of 5 verdicts decided ("),
        (OTHERS, ["10mbps-20ms-4pct", "10mbps-40ms-4pct"], "good", 0, "gate passes: nothing unexpected in 4 ver"),
    ],
)  # fmt: skip
def test_a_gate_passes_only_if_half_of_the_smoke_verdicts_are_decided(run, grid_name, measured, kind, status, words):
    """It passed with 2 of 41 verdicts, none of them on a smoke cell of utilization or loss."""
    run("cubic", "--grid", ",".join(measured), kind=kind)
    done = run("cubic", "--grid", grid_name, "--budget", "1s", kind=kind, room=Hangs)
    assert (done.exit_code, words in done.output) == (status, True), done.output
    assert ("more time that takes" in done.output) == (status == 4)
    assert "s of wall time on " in done.output and "% of it processor time" in done.output


def test_a_gate_says_how_much_more_time_its_smoke_verdicts_need():
    zone, conforms = verdict("heatmap", Status.CONFORMS)
    lacking = found((zone, (Finding(verdict=conforms, expected=None),), SMOKE))
    spent = gate_budget.Spent(wall_s=60.0, cores=2, processor_s=12.0, needed_s=95.0)
    outcome = dataclasses.replace(lacking, spent=spent)
    assert outcome.exit_status == 4
    assert said(outcome)[-3:-1] == [
        "the budget: 1 min 00 s of wall time on 2 cores, 10% of it processor time",
        "a gate passes only if half of its 7 smoke verdicts are decided; the others need about 1 min 35 s more, and"
        " the same command goes on from here",
    ]
    assert (printed(outcome)["evidence"], printed(outcome)["spent"]["needed_s"]) == (
        {"smoke": True, "asked": 7, "decided": 0, "unknown_algorithms": []}, 95.0,
    )  # fmt: skip


def test_a_violation_whose_repeat_the_budget_cut_fails_and_says_so():
    zone, violates = verdict("heatmap", Status.VIOLATES)
    outcome = found((zone, (Finding(verdict=violates),), ()))
    assert not any("not measured again" in line for line in said(outcome))
    spent = gate_budget.Spent(wall_s=60.0, cores=2, processor_s=12.0, needed_s=0.0)
    outcome = dataclasses.replace(outcome, spent=spent)
    assert outcome.exit_status == 1
    assert any(line.endswith("; not measured again") for line in said(outcome))


def test_the_time_that_is_needed_is_that_of_the_undecided_cells():
    budget = gate_budget.Budget("10m")
    cells = [("cubic", helpers.setting(cell)) for cell in SMOKE[:3]]
    progress = RunProgress(clock=lambda: 0.0)
    assert budget.needed_s(cells) is None
    progress.expect(cells, 5)
    budget.follow(progress)
    assert budget.needed_s([]) == 0 and budget.needed_s(cells) is None
    for _ in range(5):
        made = helpers.measurement(cell=SMOKE[0])
        progress.one_more(dataclasses.replace(made, host={"wall_s": 2.0}), fresh=True)
    assert (budget.needed_s(cells), budget.needed_s(cells[1:2]), budget.needed_s(cells[:1])) == (20, 10, 0)


def test_an_error_of_a_repeat_is_counted_and_told_once():
    zone, violates = verdict("heatmap", Status.VIOLATES, value=0.1, interval=(0.1, 0.1), p=1e-5)
    error = dataclasses.replace(
        violates, status=Status.ERROR, reason="the guest died", value=None, interval=None, p=None
    )
    outcome = found((zone, (Finding(verdict=violates, expected=None, again=error),), ()))
    assert outcome.exit_status == 3
    assert said(outcome)[-1] == "gate cannot tell: 1 error of 1 verdict (1 not confirmed)"
    assert sum("the guest died" in line for line in said(outcome)) == 1


def test_a_baseline_takes_the_place_of_the_zones_and_of_what_is_known(run, known, tmp_path):
    known(Status.VIOLATES)
    run("cubic", "--grid", CELLS, "--trials", 20, "--results", "before.jsonl", kind="bad")
    same = run("cubic", "--grid", CELLS, "--baseline", "before.jsonl", "--out", "out", kind="bad")
    assert same.exit_code == 0, same.output
    assert "baseline before.jsonl is of the build that is tested: this cannot show a change" in same.output
    assert "judged by the baseline; below" in (tmp_path / "out" / "summary.md").read_text()
    as_of_another_build(tmp_path / "before.jsonl")
    done = run("--grid", CELLS, "--baseline", "before.jsonl", "--results", "better.jsonl")
    assert "of the build that is tested" not in done.output
    assert done.exit_code == 1 and "violates cubic/heatmap-baseline at" in done.output
    assert "no baseline for algorithm 'reno'" in run("reno", "--baseline", "before.jsonl").output


def moved(path):
    """Rewrite a results file as if another kernel had made its results."""
    path.write_text(path.read_text().replace('"kernel_digest":"' + "6" * 16, '"kernel_digest":"' + "9" * 16))
    text = path.read_text().replace('"kernel_release":"6.12.0"', '"kernel_release":"6.1.9"')
    path.write_text("".join(f"{line}\n" for line in rekeyed(text.splitlines())))


def rekeyed(lines):
    for line in lines:
        yield store.dumps(trial.Measurement.from_json(json.loads(line))).decode().strip()


def test_results_of_another_kernel_are_not_used_and_that_is_said(run, tmp_path):
    results = tmp_path / "results" / "results.jsonl"
    assert "guest kernel" not in run("cubic", "--grid", CELLS).output
    moved(results)
    done = run("cubic", "--grid", CELLS)
    assert "\nguest kernel Linux 6.12.0; 15 stored results of Linux 6.1.9 are not used\n" in done.output
    assert len(store.read(results)) == 30


def test_a_baseline_of_another_kernel_is_noted_or_refused(run, tmp_path, monkeypatch):
    before = tmp_path / "before.jsonl"
    options = "cubic", "--grid", CELLS, "--baseline", "before.jsonl"
    run("cubic", "--grid", CELLS, "--trials", 20, "--results", "before.jsonl")
    assert "was measured on" not in run(*options).output
    moved(before)
    done = run(*options)
    assert done.exit_code == 0, done.output
    assert "before.jsonl was measured on guest kernel Linux 6.1.9, but this run uses Linux 6.12.0" in done.output
    monkeypatch.setattr(fake_room, "STACK", "linux-tcp")
    monkeypatch.setattr(fake_room.Adapter, "name", "linux-tcp")
    before.write_text(before.read_text().replace('"stack":"fake"', '"stack":"linux-tcp"'))
    done = run(*options)
    assert done.exit_code == 2
    assert "measured on Linux 6.1.9, but this run tests the TCP of Linux 6.12.0; measure the baseline" in done.output


@pytest.fixture
def traces(monkeypatch):
    """Return a function that replaces traces by those of a simulated sender with this beta, and lists traces taken."""

    def make(beta):
        taken = []

        @functools.cache
        def flow(seed):
            return senders.flow(senders.Sender(beta=beta, lost=senders.every(400 + 7 * (seed % 1000))))

        def traced_all(schemes, plans, *, on_flow, **_):
            for role, (bench, algorithm) in schemes.items():
                for cell, seeds in plans[role].items():
                    for made in bench.trials(algorithm, tracing.settings()[cell], seeds):
                        on_flow(made, flow(made.seed))
                taken.extend(plans[role].get(feature_table.FEW, ()))
            return {}

        monkeypatch.setattr(tracing, "traced_all", traced_all)
        return taken

    return make


def as_of_another_build(path):
    """Rewrite a file with another digest of the fake stack."""
    path.write_text(path.read_text().replace("5" * 16, "6" * 16))


@pytest.mark.slow
def test_a_feature_that_moved_from_the_baselines_fails(run, traces, tmp_path):
    options = "cubic", "--grid", CELLS, "--features"
    assert len(traces(0.7)) == 0
    recorded = run(*options, "--trials", 20, "--results", "before.jsonl")
    assert recorded.exit_code == 0 and "to compare them, give --baseline" in recorded.output, recorded.output
    as_of_another_build(tmp_path / "before.features.jsonl")
    same = run(*options, "--baseline", "before.jsonl", "--results", "same.jsonl")
    assert same.exit_code == 0, same.output
    assert "nothing moved: every difference is exactly zero" in same.output
    traces(0.8)
    done = run(*options, "--baseline", "before.jsonl", "--results", "after.jsonl", "--annotations", "--out", "out")
    assert done.exit_code == 1, done.output
    assert "cubic: beta: kept moved from 0." in done.output and ": on head, after 99 isolated losses" in done.output
    assert "moved, nothing unexpected of 6 verdicts" in done.output
    assert "::error title=cubic%3A beta moved::0." in done.output
    out = tmp_path / "out"
    assert "#### What moved since the baseline" in (out / "summary.md").read_text()
    found = schema.load("gate", out / "gate.json")["features"]
    schema.check("compare", found, "gate.json")
    first = found["compared"][0]
    assert first["label"] == "beta" and first["change"] == "moved"
    assert first["after"] - first["before"] == pytest.approx(0.1, abs=0.03)
    assert 'classname="cubic.features" name="kept at 10mbps-20ms-0.3pct"' in (out / "junit.xml").read_text()


@pytest.mark.slow
def test_events_are_compared_with_the_baselines_by_name(run, traces, tmp_path, monkeypatch):
    def values(feature, measurements):
        deaf = feature.name == "kept_of_mark" and measurements[0].trial.scheme.stack_digest == "5" * 16
        return {m.trial.seed: (1.02 if deaf else 0.7) + m.trial.seed / 1e5 for m in measurements}

    monkeypatch.setattr(compare_clauses, "_values_of_feature", values)
    traces(0.7)
    options = "cubic", "--grid", CELLS, "--features"
    run(*options, "--trials", 20, "--results", "before.jsonl")
    for name in ("before.jsonl", "before.features.jsonl"):
        as_of_another_build(tmp_path / name)
    done = run(*options, "--baseline", "before.jsonl", "--results", "after.jsonl", "--out", "out")
    assert done.exit_code == 1 and "cubic: marks: kept of mark moved from 0.7" in done.output, done.output
    compared = schema.load("gate", tmp_path / "out" / "gate.json")["features"]["compared"]
    changes = {quantity["name"]: quantity["change"] for quantity in compared}
    assert [name for name, change in changes.items() if change == "moved"] == ["kept_of_mark"]
    assert changes.keys() >= {"after_outage", "probe_ratio", "burst_after_pause"}


def test_a_baseline_without_features_is_refused_with_the_command_that_makes_them(run, traces):
    traces(0.7)
    run("cubic", "--grid", CELLS, "--trials", 20, "--results", "before.jsonl")
    done = run("cubic", "--grid", CELLS, "--features", "--baseline", "before.jsonl")
    assert done.exit_code == 2
    assert "before.features.jsonl: features of fake's cubic are missing" in done.output
    assert "conformance gate cubic --features --results before.jsonl" in done.output


def test_an_algorithm_that_cannot_be_traced_is_named_and_no_reason_to_stop(run, traces, monkeypatch):
    taken = traces(0.7)
    monkeypatch.setattr(tracing, "why_not", lambda bench, algorithm: "no kernel" if algorithm == "reno" else None)
    done = run("cubic", "reno", "--grid", CELLS, "--features")
    assert done.exit_code == 0, done.output
    assert "reno is not traced: no kernel" in done.output and "cubic is not traced" not in done.output
    assert taken
    taken.clear()
    assert run("reno", "--grid", CELLS, "--features").exit_code == 0
    assert not taken
    assert run("cubic", "--grid", CELLS, "--features", "--shard", "1/2").exit_code == 0
    assert not taken


def test_annotations_name_violated_zones_and_the_first_suspect(run, monkeypatch):
    evil = "50%\r\n::warning::x"
    evidence = types.SimpleNamespace(sentence=f"it kept {evil}")
    report = types.SimpleNamespace(suspects=[types.SimpleNamespace(label="beta", evidence=[evidence])])
    monkeypatch.setattr(why, "of_violations", lambda *_: {"cubic": report})
    done = run("cubic", "--grid", CELLS, "--annotations", kind="bad")
    (line,) = [line for line in done.output.splitlines() if line.startswith("::error title=cubic/heatmap::")]
    assert "is not as expected in 3 cells; violates at 10mbps-" in line
    assert line.endswith("; first suspect: beta: it kept 50%25%0D%0A::warning::x")
    assert not any(line.startswith("::warning") for line in done.output.splitlines())
    assert "::error" not in run("cubic", "--grid", CELLS, kind="bad").output


def test_a_title_cannot_end_the_properties_of_an_annotation():
    assert github.error("a::b,c=d%\x1b", "e") == "::error title=a%3A%3Ab%2Cc=d%25\\x1b::e"


def test_what_violates_is_traced_to_say_what_looks_wrong_unless_time_is_short(run, monkeypatch):
    asked = []
    monkeypatch.setattr(why, "of_violations", lambda algorithms, *_: asked.append(*set(algorithms)))
    run("cubic", "--grid", CELLS)
    assert asked == []
    options = "cubic", "--grid", CELLS, "--results", "bad.jsonl"
    look = "to see what looks wrong: conformance why cubic"
    assert look not in run(*options, kind="bad").output
    assert asked == ["cubic"]
    assert run(*options, "--no-why", kind="bad").output.count(look) == 1
    assert run(*options, "--budget", "10m", kind="bad").output.count(look) == 1
    assert asked == ["cubic"]
    assert look not in run("cubic", "--grid", CELLS, "--no-why").output
    run(*options, "--budget", "10m", "--why", kind="bad")
    assert asked == ["cubic", "cubic"]


@pytest.mark.slow
def test_what_looks_wrong_stands_in_the_folder_of_this_run_alone(run, monkeypatch, tmp_path):
    evil = f"\x1b[2J{EVIL} | a"
    flows = {feature_table.CLEAN: {1: senders.flow(senders.Sender(initial_window=32))}}
    scheme = helpers.scheme("cubic", stack=evil)
    traced = tracing.Traced(scheme=scheme, flows=flows, problems=[f"nothing was captured of {evil}"])
    report = why.Report(algorithm="cubic", stack=traced, reference=None)
    monkeypatch.setattr(why, "of_violations", lambda *_: {"cubic": report})
    assert run("cubic", "--grid", CELLS, "--out", "out", "--results", "bad.jsonl", kind="bad").exit_code == 1
    out = tmp_path / "out"
    assert json.loads((out / "why" / "cubic.json").read_text())["suspects"][0]["label"] == "initial_window"
    assert (out / "why" / "cubic.svg").read_text().startswith("<svg")
    text = (out / "summary.md").read_text()
    fails, wrong, schemes = (text.index(title) for title in ("### Gate fails", "### What looks", "### Congestion"))
    assert fails < wrong < schemes
    assert "- **initial_window** " in text and "it sent 32 full packets in the first round trip" in text
    assert f"- not looked at: `nothing was captured of  [2J{EVIL} | a`" in text
    (out / "why" / "v1.2").mkdir()
    (out / "why" / "why.json").touch()  # not the suite's
    assert run("cubic", "--grid", CELLS, "--out", "out").exit_code == 0
    assert "### What looks" not in (out / "summary.md").read_text()
    (out / "why" / "cubic.json").touch()
    assert run("reno", "--grid", CELLS, "--out", "out").exit_code == 0
    assert {path.name for path in (out / "why").iterdir()} == {"v1.2", "why.json"}


def test_a_violation_says_what_it_is_due_to_unless_told_not_to(run_with_site, monkeypatch, tmp_path):
    def of_violations(violations, choice, notes, workers, budget_s):
        asked.append([(one.zone.id, len(one.values)) for one in violations])
        first = violations[0]
        assert first.values and first.zone.metric == "utilization"
        side = model.Side(
            values=first.values, sightings=[model.FlowTraits(waiting=0.0, payload_bytes=700, window_limited=1.0)] * 3
        )
        theirs = model.Side(
            values=[0.1], sightings=[model.FlowTraits(waiting=0.0, payload_bytes=1448, window_limited=1.0)] * 3
        )
        why_not = model.NotAttributed("lost_pct is not a rate")
        return {
            first.key: model.blame("cubic", "utilization", side, theirs, (0.09, 0.11)), violations[-1].key: why_not
        }  # fmt: skip

    asked = []
    monkeypatch.setattr(blame, "of_violations", of_violations)
    options = "cubic", "--grid", CELLS, "--results", "bad.jsonl"
    done = run_with_site(*options, "--out", "out", kind="bad")
    assert "\n    by congestion control: 0.01 of the reference's rate = recovery 1.00 x packet size 0.48" in done.output
    assert "\n    not attributed: lost_pct is not a rate" in done.output
    assert len(asked) == 1 and len(asked[0]) == 6
    pages = "".join(page.read_text() for page in (tmp_path / "out" / "site").glob("cubic-*.html"))
    assert pages.count("by congestion control: 0.01 of the reference") == 2  # in the table and at the cell
    document = schema.load("gate", tmp_path / "out" / "gate.json")
    blames = [cell["blame"] for zone in document["zones"] for cell in zone["cells"]]
    assert [b["cause"] for b in blames if b and "cause" in b] == ["congestion control"]
    assert "lost_pct is not a rate" in [cell["not_attributed"] for zone in document["zones"] for cell in zone["cells"]]
    junit = xml.parse(tmp_path / "out" / "junit.xml").getroot()
    assert len([p for p in junit.iter("property") if p.get("name") == "blame"]) == 2
    run_with_site(*options, "--no-blame", kind="bad")
    run_with_site(*options, "--no-why", kind="bad")
    run_with_site(*options, "--budget", "10m", kind="bad")
    assert len(asked) == 1
    run_with_site(*options, "--budget", "10m", "--blame", kind="bad")
    assert len(asked) == 2


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_measured(run, tmp_path):
    (tmp_path / "file").touch()
    done = run("cubic", "--grid", CELLS, "--out", "file/out")
    assert (done.exit_code, "name another folder with --out" in done.output) == (2, True)
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_traces_are_kept_of_a_few_cells_that_violate_and_only_of_those(run, monkeypatch, tmp_path):
    traced, flows = [], []

    def traces(algorithm, choice, *, point, seed, target, flow, **options):
        files.check_writable(target)
        traced.append((algorithm, point, seed))
        flows.append(flow)

    monkeypatch.setattr(trace, "compute", traces)
    monkeypatch.setattr(trace_text, "show", lambda found, console: console.print("shown"))
    assert run("cubic", "--grid", CELLS, "--keep-traces", "kept").exit_code == 0
    assert traced == []
    options = "cubic", "--grid", "10mbps", "--results", "bad.jsonl", "--flow", "test/0"
    assert "--flow would have no effect: no traces are kept" in run(*options, kind="bad").output
    done = run(*options, "--keep-traces", "kept", kind="bad")
    assert flows == ["test/0"] * 3
    assert "kept traces of 3 of the 48 points that violate" in done.output and done.output.count("shown\n") == 3
    assert len(traced) == len(set(traced)) == 3 and {seed for _, _, seed in traced} == {1001}
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {f"cubic-{cell}" for _, cell, _ in traced}
    assert "trace already kept: kept/cubic-10mbps" in run(*options, "--keep-traces", "kept", kind="bad").output
    assert len(traced) == 3
    (tmp_path / "file").touch()
    done = run(*options, "--keep-traces", "file/kept", kind="bad")
    assert done.exit_code == 2  # before anything is measured
    assert "cannot write file/kept: Not a directory; name another folder with --keep-traces" in done.output


def test_a_list_of_known_deviations_that_is_broken_is_found_before_anything_is_measured(run, monkeypatch, tmp_path):
    def load(stack):
        raise UserError("expected.json: /: not JSON")

    monkeypatch.setattr(gate.expectations, "load", load)
    done = run("cubic", "--grid", CELLS)
    assert (done.exit_code, "expected.json: /" in done.output) == (2, True)
    assert not (tmp_path / "results").exists()


def test_the_command_computes_and_leaves_showing_and_writing_to_its_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fake_room.install("bad")
    asked = gate.GateOptions(
        algorithms=["cubic"], choice=benches.Choice(), grid=CELLS, confirm=False, blame=False,
        target=tmp_path / "out", keep_traces=tmp_path / "kept",
    )  # fmt: skip
    console = Console(record=True, width=300)
    found = gate.compute(asked, benches.Means(results="r.jsonl", notes=ConsoleNotes(console)))
    assert {zone.id for zone, _ in found.violating} == {"cubic/heatmap", "cubic/loss"} and len(found.measurements) >= 15
    assert "violates" not in console.export_text() and not list((tmp_path / "out").glob("*"))


def test_nothing_measured_is_no_pass():
    outcome = gate.GateResult(judged=(), strict=False)
    assert outcome.exit_status == 4
    with pytest.raises(UserError):
        gate_order.shares("0/1")
    assert expectation.find((), "cubic/heatmap", None) is None

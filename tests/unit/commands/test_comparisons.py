"""`compare`, `cross`, `identify`, `identify-check`: from arguments to exit statuses; the room invents trials."""

import collections
import dataclasses
import functools
import itertools
import json
import random
import types

import fake_room
import pytest
import rich.console
import senders
from helpers import as_read, measurements_of, of_trial, refusal, scheme, shown

from conformance.catalogue import clauses, documents, scenarios
from conformance.commands import (
    compare,
    compare_places,
    compare_result as compared_in,
    compare_sides,
    cross,
    identify,
    tracing,
)
from conformance.commands.compare_shares import EVERYWHERE
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model.clauses import changes
from conformance.model.errors import UserError
from conformance.model.networks import events
from conformance.model.networks.place import Cell, Point
from conformance.model.networks.setting import Setting
from conformance.model.studies import comparison
from conformance.model.studies.comparison import Movement, Quantity, Tolerance
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import compare as compared, dev, studies
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support import paths, schema


class Room(fake_room.Room):
    """A room in which an algorithm behaves like the references of its own zones, or as `like` says of another's."""

    def __init__(self, kernel, like, outcome, shift, noise=None):
        self.kernel, self.like, self.outcome, self.shift, self.noise = kernel, like, outcome, shift, noise

    def made(self, trial):
        algorithm = self.like.get(trial.scheme.algorithm, trial.scheme.algorithm)
        made = dataclasses.replace(made_like(algorithm, trial.setting), trial=trial)
        if self.outcome is not Outcome.OK:
            return as_read(made, outcome=self.outcome, message="as asked", metrics={}, evidence={})
        if self.kernel not in self.shift:
            return made
        rng = random.Random(f"{self.kernel} {trial}" if self.noise else trial.seed)
        noise = self.noise or 0.01
        value = made.utilization * self.shift[self.kernel] * rng.uniform(1 - noise, 1 + noise)
        return as_read(made, metrics={**made.metrics, "utilization": value})


@functools.cache
def zones():
    return (*documents.all_zones("heatmap"), *documents.all_zones("loss"), *documents.all_zones("identify-*"))


@functools.cache
def made_like(algorithm, setting):
    """Return a measurement with the reference's median of every metric that a zone of this algorithm is about."""
    merged = None
    for zone in zones():
        if zone.algorithm == algorithm and zone.profile == setting.profile and setting.cell in zone.intervals:
            median = zone.intervals[setting.cell].basis.median
            (m,) = measurements_of(zone.metric, [median], cell=setting.cell)
            if merged is None:
                merged = as_read(m, metrics=dict(m.metrics))
                merged.metrics["utilization"] = 0.5
            merged.metrics.update({k: v for k, v in m.metrics.items() if k != "utilization" or zone.metric == k})
            merged = as_read(merged, evidence={**merged.evidence, **m.evidence})
    return merged or measurements_of("utilization", [0.5], cell=setting.cell)[0]


@pytest.fixture
def world(monkeypatch, tmp_path):
    """Return world(like=..., outcome=..., shift=...), which sets what the room does and returns common arguments.

    `noise`: how far trials scatter, differently on each kernel; without it, a seed gives the same value on both.
    """

    class Bench(benches.Bench):
        def scheme(self, algorithm):
            stack, kernel = self.choice.stack, self.place(algorithm).room.kernel
            return scheme(algorithm, stack=stack, stack_version="1.0", stack_digest=f"of {stack}", kernel_digest=kernel)

    def make(like=None, outcome=Outcome.OK, shift=None, offers=(), noise=None):
        about = dataclasses.replace(manifest.read("linux-tcp"), kernel_algorithms={name: name for name in offers})
        adapter = fake_room.Adapter("fake", about, offers)

        def bench(choice):
            room = Room(choice.kernel or "default", like or {}, outcome, shift or {}, noise)
            return fake_room.bench_of(room, adapter, Bench, choice=choice)

        monkeypatch.setattr(benches, "find", bench)
        means = benches.Means(results=tmp_path / "r.jsonl", workers=1, notes=RecordedNotes())
        return {"choice": benches.Choice(stack="fake"), "means": means}

    return make


class RecordedNotes(ConsoleNotes):
    def __init__(self):
        self.console = rich.console.Console(record=True, width=250, markup=False)
        super().__init__(self.console)


BBR = ("bbrv1", "bbrv2", "bbrv3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, 0, "conforms"),
        ({"like": {"bbrv3": "bbrv1"}}, 1, "violates"),
        ({"outcome": Outcome.ERROR}, 3, "error: as asked (5 of 5 trials)"),
        ({"outcome": Outcome.UNSUPPORTED}, 4, "unsupported: as asked"),
    ],
)
def test_cross(world, changes, status, words):
    shared = world(**changes)
    found = cross.compute(BBR, trials=5, first_seed=1, **shared)
    assert found.exit_status == status
    schema.check("cross", printed(found), "cross")
    dev.show_crossed(found, shared["means"].notes.console)
    said = shared["means"].notes.console.export_text()
    assert words in said and " trials\n" in said.partition("cross: fake, bbrv1, bbrv2, bbrv3: ")[2]


@pytest.mark.parametrize(
    ("changes", "cca", "status", "words"),
    [
        ({}, "cubic", 0, "behaves like cubic"),
        ({"like": {"cubic": "reno"}}, "cubic", 1, "behaves like reno, although it is called cubic"),
        ({"like": {"bbr": "bbrv2"}}, "bbr", 0, "behaves like bbrv2"),
        ({"outcome": Outcome.ERROR}, "cubic", 3, "error: as asked"),
        ({"outcome": Outcome.UNSUPPORTED}, "cubic", 4, "unsupported: as asked"),
    ],
)
def test_identify(world, changes, cca, status, words):
    shared = world(**changes)
    found = identify.compute(cca, trials=1, first_seed=1, **shared)
    assert found.exit_status == status
    assert words in shown(studies.show_identified, found)
    schema.check("identify", printed(found), "identify")


def test_identify_needs_the_same_cells_of_each_algorithm(monkeypatch):
    first, *others = identify.zones()
    cells = first.cells
    partial = dataclasses.replace(first, intervals={cell: first.intervals[cell] for cell in cells[1:]}, smoke=())
    monkeypatch.setattr(documents, "all_zones", lambda _: [partial, *others])
    with pytest.raises(UserError, match=f"zone {first.id} lacks {cells[0].id}; measure its reference there"):
        identify.zones()


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, 0), ({"like": {"cubic": "reno"}}, 1), ({"outcome": Outcome.ERROR}, 3), ({"outcome": Outcome.UNSUPPORTED}, 4)],
)
def test_identify_check(world, changes, status):
    found = identify.compute_check(trials=2, first_seed=1, **world(**changes))
    assert found.exit_status == status
    assert shown(studies.show_checked, found)
    schema.check("identify-check", printed(found), "identify-check")


def test_a_name_that_the_stack_does_not_offer_is_refused_before_anything_is_written(world):
    shared = world(offers=("cubic", "reno"))
    refused = pytest.raises(UserError, match=r"fake does not offer cubik; did you mean cubic\? it offers cubic, reno")
    with refused:
        identify.compute("cubik", trials=1, first_seed=1, **shared)
    with refused:
        compare.compute("@a", "@b", *asked(shared, algorithms=("cubik",)))
    assert not shared["means"].results.exists()


def asked(shared, **changes):
    """Return the options that the command line would make, without features, because these tests boot no guests."""
    options = {"algorithms": ("cubic",), "grid": "10mbps-20ms-0pct,10mbps-20ms-1pct", "features": False, **changes}
    return compare.CompareOptions(choice=shared["choice"], **options), shared["means"]


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"shift": {"a": 1.0, "b": 1.0}}, 0, "nothing moved: every difference is exactly zero"),
        (
            {"shift": {"a": 1.0, "b": 1.0}},
            0,
            "one side serves for the other: in every cell they differ by less than what zones",
        ),
        ({"shift": {"a": 1.0, "b": 0.8}}, 1, "2 moved, 2 the same, 0 unclear"),
        ({"shift": {"a": 1.0, "b": 0.8}}, 1, "not shown that one side serves for the other"),
        ({"outcome": Outcome.ERROR}, 3, "left out cubic at 10mbps-20ms-0pct: base: error: as asked"),
        ({"outcome": Outcome.TIMEOUT}, 4, "not shown that one side serves for the other"),
    ],
)
def test_compare(world, changes, status, words):
    shared = world(**changes)
    found = compare.compute("@a", "@b", *asked(shared))
    assert found.exit_status == status
    assert words in shown(compared.show, found)
    assert words.split(": ")[0] in compared.render(found)
    # Both sides share a results file. Results of one kernel are not used for the other by intent, so nothing is said.
    assert "stored results" not in shared["means"].notes.console.export_text()
    schema.check("compare", printed(found), "compare")


@pytest.mark.parametrize(("head", "n"), [("fake-1.11@b", 2), ("@b", None)])
def test_two_builds_that_behave_alike_are_measured_twice_and_two_kernels_as_often_as_any(world, monkeypatch, head, n):
    """If features are equal, so few trials of a change are enough; here the features are made up.

    They are too few to say whether one kernel serves for another.
    """
    shared = world(shift={"a": 1.0, "b": 1.0})
    options, means = asked(shared)
    features_are(monkeypatch, ALIKE, ALIKE)
    found = compare.compute("@a", head, dataclasses.replace(options, features=True, changes=False), means)
    n = n or found.trials
    assert {c.quantity.name: c.n for c in found.compared} == {
        "kept": (2, 2), "utilization": (n, n), "lost_pct": (n, n),
    }  # fmt: skip
    assert found.exit_status == 0
    assert (printed(found)["kernels"] is None) == (n == 2)


def features_are(monkeypatch, base, head, problems=()):
    """Let traces show these features, {cell's name: {seed: samples}}, of the two sides."""
    both = {"base": base, "head": head}, {"base": {}, "head": {}}, list(problems)
    monkeypatch.setattr(compare.compare_features, "both", lambda *_, **__: both)


def features_of(kept=0.7, seeds=(1, 2)):
    return {cell: {seed: {"kept": [kept + seed / 1000] * 5} for seed in seeds} for cell in ("few", "clean", "many")}


ALIKE = features_of()


def changes_are(monkeypatch, **kept_of_mark):
    """Let each kernel leave this share of its window after a mark, and everything else be the same."""

    def values(feature, measurements):
        of = kept_of_mark[measurements[0].trial.scheme.kernel_digest] if feature.name == "kept_of_mark" else 1.0
        return {m.trial.seed: of + m.trial.seed / 1e5 for m in measurements} if of else {}

    # Of all features, what shows them is what has a value.
    for reads in ("_values_of_feature", "_seeds_of_feature"):
        monkeypatch.setattr(compare.compare_clauses, reads, values)


def built_again(world, **changes):
    """Compare two builds that behave alike in cells, in the smoke tier."""
    shared = world(shift={"a": 1.0, "b": 1.0})
    options, means = asked(shared, **{"features": True, "grid": "smoke", **changes})
    return compare.compute("fake@a", "fake-1.11@b", options, means), means.notes


def test_a_build_that_is_deaf_to_marks_is_found_where_nothing_else_differs(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    changes_are(monkeypatch, a=0.7, b=1.02)
    found, _ = built_again(world)
    (moved,) = found.of(Movement.MOVED)
    assert (moved.quantity.label, moved.quantity.name, moved.n) == ("marks", "kept_of_mark", (9, 9))
    assert all(c.identical and c.n == (2, 2) for c in found.compared if c is not moved)
    assert found.exit_status == 1 and not found.never
    text = shown(compared.show, found)
    assert "cubic: marks: kept of mark moved from 0.71 to 1.03" in text
    assert "base fake@a (fake 1.0), head fake-1.11@b (fake-1.11 1.0): 1 moved" in text
    assert "what the features say, with X for the value: marks: kept of mark: N marks left X of its window" in text
    schema.check("compare", printed(found), "compare")


def fails_on(monkeypatch, side, seeds):
    """Let the trials of a side with these seeds fail, in all cells and networks that change."""
    of = compare.compare_measured.measured

    def measured(*given):
        found = of(*given)
        return {
            key: [
                as_read(m, outcome=Outcome.FAILED, message="the server died: oops", metrics={}, evidence={})
                if given[-2] == side and m.trial.seed in seeds
                else m
                for m in made
            ]
            for key, made in found.items()
        }

    monkeypatch.setattr(compare.compare_measured, "measured", measured)


def test_failures_of_one_side_are_a_quantity(world, monkeypatch):
    fails_on(monkeypatch, "base", range(1, 10_000))
    features_are(monkeypatch, ALIKE, ALIKE)
    found, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    (moved,) = found.of(Movement.MOVED)
    assert (moved.quantity.label, moved.before, moved.after, moved.known_interval) == ("failures", 1.0, 0.0, None)
    (together,) = (c for c in found.compared if c.quantity.place == EVERYWHERE)
    assert together.quantity.name == "failures" and 0 < together.before < 1
    assert found.exit_status == 1 and not found.left_out
    text = shown(compared.show, found)
    assert "cubic: failures moved from 1.00 to 0.00: on head, none of" in text
    assert "on base, 8 of 8 trials failed: the server died: oops" in text
    schema.check("compare", printed(found), "compare")


def test_trials_are_enough_if_each_place_adds_a_share_of_failures(world, monkeypatch):
    """Two kernels have 63 quantities in 24 places. Of 64 at most, eight trials can show that one moved, of 65 none."""
    features_are(monkeypatch, {}, {})
    found, _ = built_again(world, changes=False, budget_s=0.0)
    assert found.trials == 9 and comparison.smallest_p(8) * 65 > comparison.ALPHA


def test_what_may_cause_a_failure_is_said_before_it(world, monkeypatch):
    fails_on(monkeypatch, "head", range(1, 10_000))
    features_are(monkeypatch, features_of(0.7, range(1, 9)), features_of(0.9, range(1, 9)))
    found, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    assert [c.quantity.label for c in found.of(Movement.MOVED)] == ["beta", "failures"]


def test_failures_in_two_networks_of_one_cell_are_counted_together(world, monkeypatch):
    """What is traced in a cell is not lost among those of the same cell where losses are read for longer."""
    base = features_of(seeds=range(1001, 1010))
    died = {"base": {}, "head": {"few": dict.fromkeys(base["few"], "it died")}}
    both = {"base": base, "head": {**base, "few": {}}}, died, []
    monkeypatch.setattr(compare.compare_features, "both", lambda *_, **__: both)
    fails_on(monkeypatch, "head", [1001])
    found, _ = built_again(world, grid=compare_places.NO_CELLS)
    place = Cell(10, 20, 0.3)
    (share,) = (c for c in found.compared if (c.quantity.name, c.quantity.place) == ("failures", place))
    assert share.n == (18, 18) and (share.before, share.after) == (0, pytest.approx(10 / 18))


def test_what_fails_on_both_sides_alike_has_not_moved(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    fails_on(monkeypatch, "base", range(1, 10_000))
    fails_on(monkeypatch, "head", range(1, 10_000))
    found, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    assert {c.change for c in found.compared if c.quantity.is_share} == {Movement.SAME}


def test_one_failure_leaves_the_other_trials_to_be_compared(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    fails_on(monkeypatch, "head", [1001])
    found, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    by_name = {c.quantity.name: c for c in found.compared if c.quantity.place != EVERYWHERE}
    assert (by_name["failures"].change, by_name["utilization"].change) == (Movement.UNCLEAR, Movement.SAME)
    assert by_name["utilization"].n[1] == by_name["failures"].n[1] - 1


def test_a_change_of_a_comment_ends_well_even_if_cells_are_not_reached(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    changes_are(monkeypatch, a=0.7, b=0.7)
    of = compare.compare_measured.measured

    def measured(bench, work, *rest):
        return of(bench, [key for key in work if compare.compare_clauses.is_change(key[1])], *rest)

    monkeypatch.setattr(compare.compare_measured, "measured", measured)
    found, _ = built_again(world)
    assert found.exit_status == 0 and found.rest and not found.never
    text = shown(compared.show, found)
    assert "nothing moved: every difference is exactly zero (at most" in text
    assert "not measured in time; as nothing else differs, it does not count: 21 places" in text
    assert len(printed(found)["not_measured"]) == 21
    # Cells that were named, and cells without the changes, count.
    named, _ = built_again(world, features=True, changes=False)
    assert named.exit_status == 4 and len(named.unmeasured) == 21


def clock_of_trials(monkeypatch):
    """Let time pass by a second with each trial that a comparison plans; return {side: [(places, trials of each)]}."""
    clock, calls, of = [0.0], collections.defaultdict(list), compare.compare_measured.measured

    def measured(bench, work, seeds, means, budget_s, role, spent):
        calls[role].append(([setting.id for _, setting in work], len(seeds)))
        clock[0] += len(work) * len(seeds)
        return of(bench, work, seeds, means, None, role, spent)

    monkeypatch.setattr(compare.compare_measured, "measured", measured)
    monkeypatch.setattr(compare, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))
    return calls


def everything_moves(monkeypatch, strongly, share=1.0):
    """Let all features of changes differ by this share of their tolerance, of which half matters; and one by much."""

    def values(feature, measurements):
        little = feature.tolerance**share if feature.ratio else 1 + share * feature.tolerance
        far = 3.0 if feature.name == strongly else little
        value = far if measurements[0].trial.scheme.kernel_digest == "b" else 1.0
        return {m.trial.seed: value + m.trial.seed / 1e6 for m in measurements}

    for reads in ("_values_of_feature", "_seeds_of_feature"):
        monkeypatch.setattr(compare.compare_clauses, reads, values)


def test_all_places_are_looked_at_before_what_differs_most_gets_all_trials(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    everything_moves(monkeypatch, "kept_of_mark")
    calls = clock_of_trials(monkeypatch)
    found, _ = built_again(world, budget_s=480.0)
    places, trials = zip(*calls["base"], strict=True)
    looks = trials.index(9)
    assert set(trials[:looks]) == {2} and len({*itertools.chain(*places[:looks])}) == 58
    assert clauses.setting(changes.NETWORKS[changes.MARKS]).id in places[looks] and set(trials[looks:]) == {9}
    # Time was left for some of the 37 networks that differ; of the others it is said that they lack trials.
    full = {c.quantity.place for c in found.compared if c.n == (9, 9)}
    assert {c.quantity.place for c in found.of(Movement.MOVED)} == full and not found.unmeasured
    assert len(found.begun) + len({*itertools.chain(*places[looks:])}) == 37
    assert {c.change for c in found.compared if c.quantity.place not in full and not c.identical} == {Movement.UNCLEAR}
    words = f"measured in only 2 trials a side, which cannot show that anything moved: {len(found.begun)} places"
    assert words in shown(compared.show, found)
    document = printed(found)
    schema.check("compare", document, "compare")
    assert {one["trials"] for one in document["not_measured"]} == {2}


@pytest.mark.slow
def test_what_a_budget_leaves_out_changes_nothing_of_what_is_concluded_of_the_rest(world, monkeypatch, tmp_path):
    features_are(monkeypatch, ALIKE, ALIKE)
    everything_moves(monkeypatch, "kept_of_mark")
    clock_of_trials(monkeypatch)
    whole, _ = built_again(world)
    assert not (whole.unmeasured or whole.begun)
    changes_of = {c.quantity: (c.change, c.p) for c in whole.compared}
    for budget_s in (60.0, 200.0, 480.0):
        some, _ = built_again(world, budget_s=budget_s)
        lacking = {(profile, place) for _, profile, place in (*some.unmeasured, *some.begun, *some.rest)}
        compared_in_full = [c for c in some.compared if (c.quantity.profile, c.quantity.place) not in lacking]
        assert some.family == whole.family and compared_in_full
        assert all(changes_of[c.quantity][0] is c.change for c in compared_in_full)


def test_half_of_a_budget_is_for_looks_while_something_differs(world, monkeypatch):
    """A slow stack, which cannot be looked at everywhere in time, gets all trials somewhere."""
    features_are(monkeypatch, ALIKE, ALIKE)
    everything_moves(monkeypatch, "probe_ratio")
    calls = clock_of_trials(monkeypatch)
    found, _ = built_again(world, budget_s=110.0)
    assert [trials for _, trials in calls["base"]] == [2, 2, 2, 2, 9, 9] and found.unmeasured and found.begun
    assert found.of(Movement.MOVED)[0].quantity.name == "probe_ratio"


def test_what_differs_by_too_little_to_matter_waits_until_all_places_are_looked_at(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    everything_moves(monkeypatch, None, share=0.1)
    calls = clock_of_trials(monkeypatch)
    built_again(world, budget_s=240.0)
    assert [trials for _, trials in calls["base"]] == [2] * 15 + [9]


def test_equal_packets_settle_a_place_of_builds_that_differ_and_equal_values_do_not(world, monkeypatch):
    """In the world, all that trials keep is equal; then the head sends other packets, with the same values."""
    features_are(monkeypatch, features_of(0.7, range(1001, 1010)), features_of(0.8, range(1001, 1010)))
    same, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    assert {c.n for c in same.compared if c.quantity.name == "utilization"} == {(2, 2)}
    of = compare.compare_measured.measured

    def measured(*given):
        return {
            key: [dataclasses.replace(m, evidence={**m.evidence, "packets": given[-2]}) for m in trials]
            for key, trials in of(*given).items()
        }

    monkeypatch.setattr(compare.compare_measured, "measured", measured)
    other, _ = built_again(world, grid="10mbps-20ms-0pct", changes=False)
    assert {c.n for c in other.compared if c.quantity.name == "utilization"} == {(other.trials, other.trials)}


def test_networks_that_change_are_named_where_they_are_not_compared(world, monkeypatch):
    features_are(monkeypatch, features_of(0.7, range(1, 10)), features_of(0.8, range(1, 10)))
    changes_are(monkeypatch, a=0.7, b=1.02)
    found, _ = built_again(world, changes=False)
    assert [c.quantity.label for c in found.of(Movement.MOVED)] == ["beta"]
    assert found.exit_status == 1 and list(found.never) == [of for of in events.EVENTS if of != events.DISORDER]
    named = "never happened in what was compared: CE marks, idle times, another address; --changes makes them happen"
    assert named in shown(compared.show, found)
    both, _ = built_again(world)
    assert {c.quantity.label for c in both.of(Movement.MOVED)} == {"beta", "marks"} and not both.never


def test_networks_that_show_something_of_bbr_alone_are_its_first_and_other_algorithms_have_the_listed_order():
    names = {clauses.setting(network): name for name, network in changes.COMPARED_NETWORKS.items()}
    of = {
        algorithm: [names[setting] for _, setting in compare.compare_clauses.changing(algorithm)]
        for algorithm in ("bbrv3", "cubic")
    }
    of_bbr = {feature.cell for feature in changes.COMPARED if feature.label[0] is None}
    first = of["bbrv3"][: len(of_bbr)]
    assert {*first} == of_bbr and first[0] == changes.RISING and of_bbr > {changes.IDLE, changes.SPACED}
    for_loss = {feature.cell for feature in changes.COMPARED if feature.label[0]}
    assert of["cubic"] == [name for name in names.values() if name in for_loss]


def test_a_clauses_sentence_has_the_median_that_is_compared(monkeypatch):
    clause = clauses.find("CL011")
    monkeypatch.setattr(compare.compare_clauses, "_values_of_clause", lambda *_: {1: 0.5, 2: 0.7})
    assert " is 0.60 (RFC 9438, 4.6;" in compare.compare_clauses._sentence_of_clause(clause, [])


def test_a_stack_that_sends_no_ect_is_said_to_be_unmarked(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    changes_are(monkeypatch, a=None, b=None)
    monkeypatch.setattr(compare.compare_clauses, "why_invisible", lambda *_: "it sends no packet with ECT")
    found, _ = built_again(world)
    assert found.exit_status == 0 and found.never == {events.MARKS: "it sends no packet with ECT"}
    text = shown(compared.show, found)
    assert "CE marks never happened: it sends no packet with ECT" in text
    assert "every difference is exactly zero; CE marks never happened" in text


def test_a_build_that_no_longer_sends_ect_has_moved(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    changes_are(monkeypatch, a=0.7, b=None)
    found, _ = built_again(world)
    assert found.exit_status == 1 and not found.never and not found.one_sided
    assert "on head, 0 of 9 trials show it; on base, 9 of 9 trials show it" in shown(compared.show, found)


def test_what_four_of_nine_trials_show_is_not_counted_as_shown_by_none(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    changes_are(monkeypatch, a=0.7, b=None)
    of = compare.compare_clauses._seeds_of_feature

    def seeds(feature, measurements):
        head = measurements[0].trial.scheme.kernel_digest == "b" and feature.name == "kept_of_mark"
        return [m.trial.seed for m in measurements[:4]] if head else of(feature, measurements)

    monkeypatch.setattr(compare.compare_clauses, "_seeds_of_feature", seeds)
    found, _ = built_again(world)
    (share,) = (c for c in found.compared if c.quantity.is_share)
    assert (share.quantity.name, share.before, share.change) == ("kept_of_mark: shown", 1.0, Movement.UNCLEAR)
    assert share.after == pytest.approx(4 / 9)


def test_what_another_cell_must_scale_is_one_sided_where_that_is_not_known(world, monkeypatch):
    """Every trial of head shows losses of several packets, and none shows what an isolated one leaves."""
    base = {cell: {s: {"kept": [0.7] * 5, "kept_of_several": [0.5]} for s in (1, 2)} for cell in ("few", "clean")}
    head = {**base, "few": {seed: {"kept_of_several": [0.5]} for seed in (1, 2)}}
    features_are(monkeypatch, base, head)
    found, _ = built_again(world, changes=False, grid=compare_places.NO_CELLS)
    assert {q.name for q, side in found.one_sided if side == "base"} == {"kept_of_several"}
    assert [c.quantity.name for c in found.compared if c.quantity.is_share] == ["kept: shown"]


def test_what_is_unclear_is_undecided_with_the_leading_candidate_and_the_time_that_decides(world, monkeypatch):
    """Two of eight trials were traced in time, so nothing can be shown to have moved."""
    features_are(monkeypatch, features_of(0.7), features_of(0.8))
    monkeypatch.setattr(compare.TrialCost, "estimate_s", lambda _, trials: 2.0 * trials)
    found, _ = built_again(world)
    assert found.exit_status == 4
    assert (found.further.leading.quantity.name, found.further.trials) == ("kept", found.trials)
    # Six more traces of each side, at two seconds a trial.
    assert found.further.seconds == 2 * 2 * (found.trials - 2)
    text = shown(compared.show, found)
    assert "undecided: 1 unclear, " in text
    assert "the leading candidate is beta: kept 0.70 -> 0.80 at 10mbps-20ms-0.3pct (p 1)" in text
    assert "more would decide beta: kept: run it again with --budget 1m; what was measured is kept" in text
    assert "### Congestion control: undecided" in compared.render(found)
    schema.check("compare", printed(found), "compare")


def test_the_leading_candidate_differs_most_although_it_would_be_named_later():
    of = {"algorithm": "cubic", "place": Cell(10, 20, 1), "profile": "p", "tolerance": Tolerance(absolute=0.1)}
    steady, event = Quantity(name="kept", label="beta", is_steady=True, **of), Quantity(name="m", label="marks", **of)
    share = Quantity(name="failures", label="failures", is_share=True, **of)
    far = {1: 0.7, 2: 0.7}, {1: 0.9, 2: 1.2}
    sides = {steady: ({1: 0.7, 2: 0.7}, {1: 0.7, 2: 0.72}), event: far, share: ({1: 0.0, 2: 0.0}, {1: 0.0, 2: 1.0})}
    unclear = comparison.largest_first(comparison.compare(sides))
    assert [c.quantity for c in unclear] == [steady, event, share]
    work = types.SimpleNamespace(unmeasured=[], begun=[], tried={}, spent=compare.TrialCost())
    assert compare._further(work, unclear, 8).leading.quantity == event


def test_cells_that_were_not_traced_are_named(world, monkeypatch):
    features_are(monkeypatch, {"few": ALIKE["few"]}, {"few": ALIKE["few"]})
    found, _ = built_again(world, grid="none")
    assert [place.id for _, _, place in found.unmeasured] == ["10mbps-40ms-0pct", "10mbps-20ms-3pct"]
    assert found.exit_status == 4 and list(found.never) == list(events.EVENTS)
    nothing = built_again(world, grid="none", features=False)[0]
    assert not nothing.compared and nothing.exit_status == 4


def test_what_is_done_and_where_base_and_head_are_is_said_before_anything_is_measured(world, monkeypatch):
    features_are(monkeypatch, ALIKE, ALIKE)
    _, notes = built_again(world, budget_s=0.0)
    first, second, *_ = notes.console.export_text().splitlines()
    assert first.startswith(
        "compare: looking up base fake@a and head fake-1.11@b; what is not built may be built first"
    )
    assert second.startswith(
        "compare: base fake@a (fake 1.0), head fake-1.11@b (fake-1.11 1.0): cubic: features, then 21"
    )


def test_results_are_not_made_to_change(world, tmp_path):
    results = in_lab(tmp_path / "a.jsonl", "1" * 16)
    with pytest.raises(UserError, match="results are compared by what they hold; leave out --changes"):
        compare.compute(results, "@b", *asked(world(), changes=True, across_stacks=True))


def noisy(world, **changes):
    """Compare two kernels that behave alike except for noise of 20 %, which differs between them."""
    return compare.compute("@a", "@b", *asked(world(shift={"a": 1.0, "b": 1.0}, noise=0.2), **changes))


def test_that_nothing_moved_is_not_enough_for_one_kernel_to_serve_for_another(world):
    found = noisy(world, trials=7)
    assert not found.of(Movement.MOVED) and not found.serves and found.exit_status == 4
    assert "not shown that one side serves for the other: 2 values may differ by what zones permit or more" in (
        compared.summary(found)
    )
    told = printed(found)
    schema.check("compare", told, "compare")
    assert {(c["name"], c["cell"]) for c in told["kernels"]["not_shown"]} == {
        ("utilization", "10mbps-20ms-0pct"), ("utilization", "10mbps-20ms-1pct"),
    }  # fmt: skip


def test_a_wider_margin_or_more_trials_show_that_one_kernel_serves_for_another(world):
    found = noisy(world, trials=7, margin=3.0)
    assert found.serves and "in every cell they differ by less than 3 of what zones permit" in compared.summary(found)
    more = noisy(world, trials=60, matters=1.0)
    assert more.serves and more.exit_status == 0


def test_cells_that_a_budget_leaves_out_do_not_serve(world):
    found = compare.compute("@a", "@b", *asked(world(shift={"a": 1.0, "b": 1.0}), budget_s=0.0))
    assert found.unmeasured and not found.serves and found.exit_status == 4
    assert compared.summary(found).endswith("not shown that one side serves for the other")


def test_a_metric_that_one_side_alone_has_is_named_and_not_shown_to_be_equal(world, monkeypatch):
    of = compare.compare_measured.values
    monkeypatch.setattr(
        compare.compare_measured, "values",
        lambda metric, made: {} if metric.name == "lost_pct" and made[0].trial.scheme.kernel_digest == "b" else (
            of(metric, made)
        ),
    )  # fmt: skip
    found = compare.compute("@a", "@b", *asked(world(shift={"a": 1.0, "b": 1.0})))
    assert [side for _, side in found.one_sided] == ["base", "base"]
    assert [q.name for q in found.not_shown] == ["lost_pct", "lost_pct"] and found.exit_status == 4
    assert "lost at 10mbps-20ms-0pct was seen on base only" in shown(compared.show, found)


@pytest.mark.parametrize("grid", ["smoke", "10mbps-20ms-0pct,10mbps-20ms-1pct"])
def test_the_same_cells_under_another_profile(world, grid):
    shared = world(shift={"a": 1.0, "b": 1.0})
    usual = compare.compute("@a", "@b", *asked(shared, grid=grid))
    other = compare.compute("@a", "@b", *asked(shared, grid=grid, profile="identify"))
    cells = [c.quantity for c in usual.compared if isinstance(c.quantity.place, Cell)]
    assert {quantity.profile for quantity in cells} == {"atc25"}
    assert {(c.quantity.profile, c.quantity.place) for c in other.compared} == {
        ("identify", quantity.place) for quantity in cells
    }


def test_of_a_results_file_one_profile_is_compared(world, tmp_path):
    shared = world(shift={"a": 1.0, "b": 0.8})
    compare.compute("@a", "@b", *asked(shared))
    shared["means"].results.rename(tmp_path / "both.jsonl")
    lines = store.read(tmp_path / "both.jsonl")
    files = []
    for kernel in ("a", "b"):
        files.append(tmp_path / f"{kernel}.jsonl")
        files[-1].write_bytes(b"".join(store.dumps(m) for m in lines if m.trial.scheme.kernel_digest == kernel))
    found = compare.compute(*map(str, files), *asked(shared, grid="smoke", profile="atc25"))
    assert len(found.of(Movement.MOVED)) == 2 and found.margin == compared_in.MARGIN
    none = compare.compute(*map(str, files), *asked(shared, grid="smoke", profile="startup"))
    assert not none.compared and none.exit_status == 4


@pytest.mark.slow
def test_cells_that_look_alike_are_traced_twice_and_others_as_often_as_it_takes(world, monkeypatch):
    taken = collections.Counter()

    def traced_all(schemes, plans, *, on_flow, **_):
        for role, (bench, algorithm) in schemes.items():
            for cell, seeds in plans[role].items():
                for seed in seeds:
                    beta = 0.8 if (role, cell) == ("head", "few") else 0.7
                    sender = senders.Sender(beta=beta, lost=senders.every(400 + 7 * (seed % 1000)))
                    (trial,) = bench.trials(algorithm, compare.compare_features.tracing.settings()[cell], [seed])
                    taken[role, cell] += 1
                    on_flow(trial, senders.flow(sender))
        return {}

    monkeypatch.setattr(tracing, "traced_all", traced_all)
    shared = world()
    options, means = asked(shared, grid=compare_places.NO_CELLS, features=True)
    found = compare.compute("@a", "@b", options, means)
    assert found.exit_status == 1 and found.compared[0].quantity.label == "beta"
    assert taken == {
        ("base", "few"): found.trials, ("head", "few"): found.trials,
        ("base", "clean"): 2, ("head", "clean"): 2, ("base", "many"): 2, ("head", "many"): 2,
    }  # fmt: skip
    assert all(c.change is Movement.SAME for c in found.compared if c.quantity.place.loss_pct != 0.3)
    assert "base on Linux" in shown(compared.show, found)
    # Traces are kept: the reverse comparison takes none again, and its differences are the same with opposite signs.
    taken.clear()
    back = compare.compute("@b", "@a", options, means)
    assert not taken
    assert {c.quantity: -c.difference for c in back.compared} == {c.quantity: c.difference for c in found.compared}


def test_a_sysctl_is_set_for_its_side_alone_and_makes_another_side_of_one_build(world, monkeypatch):
    """Both sides are one build on one kernel, so with the same sysctls nothing could differ."""
    traced = {}

    def features(*_, under, **__):
        traced.update(under)
        return {"base": {}, "head": {}}, {"base": {}, "head": {}}, []

    monkeypatch.setattr(compare.compare_features, "both", features)
    shared = world()
    options, means = asked(shared, features=True, sysctls=((), compare_sides.sysctls("net.ipv4.tcp_tso_rtt_log=9")))
    found = compare.compute("@a", "@a", options, means)
    assert not found.same_build and len(found.compared) == 4
    assert [side.given for side in found.sides] == ["@a", "@a net.ipv4.tcp_tso_rtt_log=9"]
    kept = [m.trial.setting for m in store.read(shared["means"].results)]
    cells = {setting.cell.id for setting in kept}
    set_to = {(s.cell.id, dict(s.sysctls)["net.ipv4.tcp_tso_rtt_log"]) for s in (*kept, *traced["head"].values())}
    assert {(cell, value) for cell in cells for value in ("0", "9")} <= set_to
    assert {dict(s.sysctls).get("net.ipv4.tcp_tso_rtt_log") for s in traced["head"].values()} == {"9"}
    assert traced["base"].items() <= tracing.settings().items()


def test_a_sysctl_changes_what_trials_of_a_scenario_are_known_by(world):
    setting = scenarios.setting("fairness", Point.parse("flows=2"))
    world()
    usual, changed = (
        compare_sides.parse("@a", benches.Choice(stack="fake"), sysctls)
        for sysctls in ((), compare_sides.sysctls("net.ipv4.tcp_reordering=30"))
    )
    assert usual.under(setting) == setting
    under = changed.under(setting)
    assert dict(under.sysctls)["net.ipv4.tcp_reordering"] == "30" and under.sysctls == under.network.sysctls
    assert under.to_json() != setting.to_json() and Setting.from_json(under.to_json()) == under


@pytest.mark.slow
def test_features_are_traced_under_the_sysctls_of_their_side(world, monkeypatch):
    found = {}

    def traced_all(schemes, plans, *, under, **_):
        found.update(
            {role: {dict(s.sysctls).get("net.ipv4.tcp_ecn") for s in under[role].values()} for role in schemes}
        )
        return {}

    monkeypatch.setattr(tracing, "traced_all", traced_all)
    options, means = asked(
        world(), grid=compare_places.NO_CELLS, features=True, sysctls=((), compare_sides.sysctls("net.ipv4.tcp_ecn=1"))
    )
    compare.compute("@a", "@b", options, means)
    usual = {dict(s.sysctls).get("net.ipv4.tcp_ecn") for s in tracing.settings().values()}
    assert found == {"base": usual, "head": {"1"}} and usual != {"1"}


def test_trials_that_one_side_has_from_an_earlier_comparison_make_no_difference():
    few = {seed: {"kept": [0.7 + seed / 100] * 5} for seed in range(1, 9)}
    base, head = {"few": few, "many": {1: {"kept": [0.1]}}}, {"few": {seed: few[seed] for seed in (1, 2)}, "many": {}}
    level = compare.compare_features.level({"base": base, "head": head})
    assert level["base"]["few"] == level["head"]["few"] == head["few"]
    assert level["base"]["many"] == base["many"]
    other = {"few": {1: few[1], 2: {"kept": [0.9] * 5}}}
    assert compare.compare_features.level({"base": base, "head": other})["base"]["few"] == few


def test_one_build_on_one_kernel_is_not_measured(world):
    shared = world()
    found = compare.compute("@a", "fake@a", *asked(shared))
    assert found.same_build == ("cubic",) and found.exit_status == 0
    assert "the same build on the same kernel" in shown(compared.show, found)
    assert not shared["means"].results.exists()
    schema.check("compare", printed(found), "compare")


def test_two_results_files_are_compared_without_measuring(world, tmp_path):
    """Files of an algorithm without zones and of an unknown profile are compared like any other."""
    kept = tmp_path / "kept"
    kept.mkdir()
    cells = [documents.profile("atc25", cell, queue="cake") for cell in documents.cells("10mbps")[:3]]
    sides = []
    for name, value in (("before", 0.5), ("after", 0.7)):
        made = [
            of_trial(m, setting=setting)
            for setting in cells
            for m in measurements_of("utilization", [value] * 8, cell=setting.cell, algorithm="copa")
        ]
        path = kept / f"{name}.jsonl"
        path.write_bytes(b"".join(store.dumps(m) for m in made))
        sides.append(str(path))
    options, means = asked(world(), algorithms=(), grid="smoke", trials=None)
    found = compare.compute(*sides, dataclasses.replace(options, features=True), means)
    assert [(c.quantity.algorithm, c.change, c.before, c.after) for c in found.compared][:3] == [
        ("copa", Movement.MOVED, 0.5, 0.7)
    ] * 3
    assert "no features of copa" in shown(compared.show, found)


def in_lab(path, *labs):
    """Write a results file with 8 trials of a cell for each of these labs; return its path."""
    lines = []
    for at, digest in enumerate(labs):
        for m in measurements_of("utilization", [0.5] * 8, cell=Cell(10, 20, 0)):
            lines.append(store.dumps(of_trial(m, lab_digest=digest, seed=m.trial.seed + 8 * at)))
    path.write_bytes(b"".join(lines))
    return str(path)


def test_trials_of_two_labs_are_not_pooled_and_two_sides_of_two_labs_are_said_to_be(world, tmp_path):
    old, new, both = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "both"))
    options, means = asked(world(), algorithms=("cubic",), grid="smoke")
    found = compare.compute(in_lab(old, "1" * 16), in_lab(new, "2" * 16), options, means)
    assert "cubic: the sides are from two labs" in shown(compared.show, found)
    assert "two labs" not in shown(compared.show, compare.compute(str(old), str(old), options, means))
    with pytest.raises(UserError, match=r"virtual lab 11111111, virtual lab 22222222; give a file .* of one lab"):
        compare.compute(in_lab(both, "1" * 16, "2" * 16), str(new), options, means)


def at_points(tmp_path, values):
    """Write results files of {side: {point of the scenario `bonded`: utilization}}; return their paths."""
    paths = []
    for side, of in values.items():
        paths.append(tmp_path / f"{side}.jsonl")
        made = []
        for point, value in of.items():
            setting = scenarios.setting("bonded", Point.parse(point))
            for m in measurements_of("utilization", [value] * 8, cell=setting.cell):
                made.append(of_trial(m, setting=setting))
        paths[-1].write_bytes(b"".join(store.dumps(m) for m in made))
    return [str(path) for path in paths]


ON, OFF = "reordering=on,batch=100,rates=1:1", "reordering=off,batch=100,rates=1:1"


def test_points_that_share_a_cell_are_compared_each(world, tmp_path):
    cells = {scenarios.setting("bonded", Point.parse(point)).cell for point in (ON, OFF)}
    assert len(cells) == 1
    sides = at_points(tmp_path, {"before": {ON: 0.9, OFF: 0.9}, "after": {ON: 0.9, OFF: 0.5}})
    found = compare.compute(*sides, *asked(world(), grid="smoke", algorithms=("cubic",)))
    assert {(c.quantity.place, c.change) for c in found.compared if c.quantity.name == "utilization"} == {
        (Point.parse(ON), Movement.SAME), (Point.parse(OFF), Movement.MOVED),
    }  # fmt: skip
    assert Point.parse(OFF).id in shown(compared.show, found)
    document = printed(found)
    schema.check("compare", document, "compare")
    assert {one["cell"] for one in document["compared"]} == {Point.parse(ON).id, Point.parse(OFF).id}


def test_what_one_file_alone_holds_is_named_and_a_zone_names_points(world, tmp_path):
    sides = at_points(tmp_path, {"before": {ON: 0.9, OFF: 0.9}, "after": {ON: 0.9}})
    found = compare.compute(*sides, *asked(world(), grid="smoke", algorithms=("cubic",)))
    assert {c.quantity.place for c in found.compared} == {Point.parse(ON)}
    assert "cubic: 1 place not compared, because only one file has results there" in found.lacking
    of_zone = compare.compute(*sides, *asked(world(), grid="cubic/bonded-utilization", algorithms=("cubic",)))
    assert {c.quantity.place for c in of_zone.compared} == {Point.parse(ON)}
    other = compare.compute(*sides, *asked(world(), grid="cubic/fairness-jain", algorithms=("cubic",)))
    assert not other.compared and other.exit_status == 4


def test_of_two_stacks_points_of_the_smoke_tier_are_compared_and_those_of_a_zone_that_is_named(world):
    shared = world()
    found = compare.compute("@a", "@b", *asked(shared, grid="smoke"))
    assert not found.lacking
    assert {isinstance(c.quantity.place, Cell) for c in found.compared} == {True, False}
    points = compare.compute("@a", "@b", *asked(shared, grid="cubic/bonded-utilization"))
    assert not points.lacking
    places = {c.quantity.place for c in points.compared}
    assert places == set(documents.zone(documents.shipped_path("cubic/bonded-utilization")).intervals)


def user_file(tmp_path):
    """Return the path of a copy of the scenario `bonded` without grids, as a user may write one."""
    document = json.loads((paths.data("scenarios") / "bonded.json").read_text())
    document.pop("grids", None)
    copy = tmp_path / "mine.json"
    copy.write_text(json.dumps(document))
    return str(copy)


@pytest.mark.parametrize("grid", ["smoke", "zone", ON, f"{ON};{OFF}"])
def test_points_of_a_scenario_are_compared_by_default_those_of_its_smoke_tier(world, grid):
    found = compare.compute("@a", "@b", *asked(world(shift={"a": 1.0, "b": 1.0}), grid=grid, profile="bonded"))
    bonded = scenarios.find("bonded")
    points = bonded.grids.get(grid) or map(bonded.parse, grid.split(";"))
    places = {("bonded", bonded.setting(point).point) for point in points}
    assert {(c.quantity.profile, c.quantity.place) for c in found.compared} == places


def test_a_users_scenario_is_compared_at_all_points_where_it_has_no_smoke_tier(world, tmp_path):
    mine = user_file(tmp_path)
    found = compare.compute("@a", "@b", *asked(world(shift={"a": 1.0, "b": 0.8}), grid="smoke", profile=mine))
    every = {scenarios.find(mine).setting(point).point for point in scenarios.find(mine).grid("all")}
    assert {c.quantity.place for c in found.compared} == every


def test_features_at_points_are_those_of_the_flow_that_is_named(world, monkeypatch, tmp_path):
    """Each point has a guest of its own; what is traced there is not kept, as no line says of which flow it is."""
    traces = []

    def traced_all(schemes, plans, *, on_flow, under, of, **_):
        for role, (bench, algorithm) in schemes.items():
            for name, seeds in plans[role].items():
                for seed in seeds:
                    lost = 0.8 if role == "head" else 0.7
                    (trial,) = bench.trials(algorithm, under[role][name], [seed])
                    traces.append((name, of))
                    on_flow(trial, senders.flow(senders.Sender(beta=lost, lost=senders.every(400 + seed % 1000))))
        return {}

    monkeypatch.setattr(tracing, "traced_all", traced_all)
    shared = world(shift={"a": 1.0, "b": 1.0})
    given = {"grid": "flows=2", "profile": "fairness", "features": True}
    found = compare.compute("@a", "fake-1.11@b", *asked(shared, flow="test/1", **given))
    (place,) = {c.quantity.place for c in found.compared}
    assert set(traces) == {(place.id, (0, 1))}
    assert {c.quantity.kind for c in found.compared} == {"feature"}
    assert not list(tmp_path.glob("*features*"))
    refused = refusal(compare.compute, "@a", "@b", *asked(shared, flow="test/7", **given))
    assert "there is no flow 'test/7'; choose of test/0 to 1" in refused


def test_a_rivals_flow_is_not_compared_and_the_reason_is_said(world):
    given = {"grid": "smoke", "profile": "coexistence", "features": True, "flow": "other/0"}
    refused = refusal(compare.compute, "@a", "@b", *asked(world(), **given))
    assert "other/0 is a flow of the guest's kernel, the same on both sides" in refused


@pytest.mark.parametrize(
    ("base", "head", "changes", "words"),
    [
        ("@", "@b", {}, "the name of a kernel must follow the @"),
        ("nonesuch.jsonl", "@b", {}, "cannot read results nonesuch.jsonl"),
        ("@a", "@b", {"trials": 2}, "2 trials a side can never show that one of 6 quantities moved"),
        ("@a", "@b", {"algorithms": ("cubik",)}, "fake does not offer cubik"),
        ("@a", "@b", {"sysctls": ((), (("kernel.x", "1"),))}, "is not a network sysctl"),
        ("before.jsonl", "@b", {"sysctls": ((("net.ipv4.tcp_ecn", "1"),), ())}, "before.jsonl was already measured"),
        ("@a", "fake-1.11@b", {"margin": 1.0}, "--margin is for cells of one build on two kernels, but these sides"),
        ("@a", "@b", {"margin": 1.0, "grid": "none", "features": True}, "but no cells are compared"),
        ("@a", "@b", {"profile": "nonesuch"}, "nonesuch"),
        ("@a", "other@a", {}, "fake and other are different stacks; compare two builds of one, or give --across"),
        ("fake-1.11@a", "fake-tcp@a", {}, "fake-1.11 and fake-tcp are different stacks"),
    ],
)
def test_what_cannot_be_compared_is_refused(world, base, head, changes, words):
    assert words in refusal(compare.compute, base, head, *asked(world(offers=("cubic",)), **changes))


@pytest.mark.parametrize(("head", "across"), [("other@b", True), ("fake-1.11@b", False)])
def test_two_stacks_are_compared_on_purpose_and_two_versions_of_one_anyway(world, head, across):
    found = compare.compute("@a", head, *asked(world(shift={"a": 1.0, "b": 0.8}), across_stacks=across))
    assert len(found.of(Movement.MOVED)) == 2

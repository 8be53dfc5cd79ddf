"""The mutants, the runner's rules and its record, with made-up measurements except in the last tests."""

import dataclasses
import json
import pathlib
import re
import shutil
import threading

import fake_room
import pytest
from helpers import invoke, measurement, measurements, measurements_of, of_trial, refusal, zone

from conformance.catalogue import documents, mutant_record
from conformance.commands import false_alarms, mutants
from conformance.commands.result import printed
from conformance.engine import benches, runs
from conformance.kernel import store as kernels
from conformance.lab import kernel_variant, manifest
from conformance.lab.virtual import command
from conformance.model.errors import UserError
from conformance.model.judging.session import Answer
from conformance.model.judging.verdict import Status, judge
from conformance.model.judging.zone import NO_LOSS, kind_of
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell, Point
from conformance.model.studies import mutants as model
from conformance.model.studies.mutants import MutantFinding, MutantOutcome
from conformance.reporting.text import scores
from conformance.reporting.text.progress import ConsoleNotes
from conformance.results import store
from conformance.support import paths, schema

FOLDER = mutants.folder()
CORPUS = mutants.corpus()
A, B, C = Cell(10, 20, 0), Cell(10, 20, 1), Cell(10, 20, 2)
POINTS = Point((("flows", 2),)), Point((("flows", 4),))


# The corpus.


def test_there_are_enough_mutants_of_each_algorithm():
    by = {a: sum(m.algorithm == a for m in CORPUS) for a in false_alarms.REFERENCES}
    assert len(CORPUS) >= 30
    assert min(by.values()) >= 10, by


@pytest.mark.parametrize("mutant", CORPUS, ids=lambda m: m.id)
def test_each_mutant_can_be_made_and_says_where_it_happened(mutant):
    if "file" in mutant.reference:
        assert (paths.PACKAGE.parent / mutant.reference["file"]).is_file()
    assert documents.zone_of(mutant.algorithm).algorithm == mutant.algorithm
    if mutant.kernel is None:
        about = schema.load("adapter", FOLDER / mutant.stack)
        assert mutant.measured in about["algorithms"]


def parameters_of(patch):
    """Return the parameters ({module.name}) that a patch of mutants/ adds."""
    found, module = set(), None
    for line in patch.read_text().splitlines():
        if match := re.match(r"\+\+\+ b/net/ipv4/(\w+)\.c", line):
            module = match[1]
        elif match := re.match(r"\+(?:module_param(?:_named)?\(|AS_PARAMETER\(u?int, )(\w+)", line):
            found.add(f"{module}.{match[1]}")
    return found


def test_what_is_expected_of_a_mutant_is_a_cell_that_one_of_its_zones_judges():
    expected = [mutant for mutant in CORPUS if mutant.expected]
    assert {mutant.algorithm for mutant in expected} == {"cubic", "reno", "bbrv1", "bbrv2", "bbrv3"}
    for mutant in expected:
        assert documents.profile(mutant.expected.profile, mutant.expected.cell).profile == mutant.expected.profile
        assert mutant.expected.metric in METRICS


def test_a_mutant_shows_on_the_side_that_is_expected():
    below = model.ExpectedMutant(profile="identify", cell=A, metric="utilization", side="below")
    above = dataclasses.replace(below, side="above")
    assert below.shows([0.1, 0.2, 0.9], [0.3, 0.3, 0.3])
    assert not below.shows([0.3], [0.3])
    assert above.shows([0.4], [0.3])
    assert not above.shows([0.2], [0.3])


@pytest.mark.parametrize(("algorithm", "patch"), [("bbrv2", "bbrv2-6.1.patch"), ("bbrv3", "bbrv3-6.12.patch")])
def test_the_patch_on_top_of_a_public_one_has_the_parameters_of_its_mutants(algorithm, patch):
    added = parameters_of(FOLDER / patch)
    every = (*CORPUS, *mutants.corpus("clauses.json"))
    used = {name for m in every if m.algorithm == algorithm for name in m.parameters}
    assert {m.kernel for m in CORPUS if m.algorithm == algorithm} == {f"{algorithm}-mutants"}
    assert used <= added | PUBLIC_BBRV2
    assert {name for name in added if ".bug_" in name} <= used


#: parameters that the public patch of BBRv2 already has and with which mutants are made
PUBLIC_BBRV2 = {
    f"tcp_bbr2.{name}"
    for name in (
        "beta",
        "loss_thresh",
        "inflight_headroom",
        "full_loss_cnt",
        "probe_rtt_mode_ms",
        "high_gain",
        "tso_rtt_shift",
    )
}


def test_each_source_gets_the_patch_made_for_it_and_all_have_the_same_bugs():
    names = {version: mutants.patch_for(version).name for version in ((6, 12), (6, 18), (7, 2), (7, 9))}
    assert list(names.values()) == ["linux-6.12.patch"] * 2 + ["linux-7.2.patch"] * 2
    assert parameters_of(mutants.patch_for((6, 12))) == parameters_of(mutants.patch_for((7, 2)))
    assert "no patch for Linux 6.1" in refusal(mutants.patch_for, (6, 1))


#: parameters of tcp_cubic.c in Linux 6.12 and 7.2
CUBICS_OWN = {
    f"tcp_cubic.{name}"
    for name in ("beta", "bic_scale", "fast_convergence", "tcp_friendliness", "hystart", "initial_ssthresh")
}


def test_every_parameter_of_the_corpus_exists_and_every_one_of_the_patch_is_used():
    every = (*CORPUS, *mutants.corpus("clauses.json"))
    used = {
        kernel: {name for m in every if m.kernel == kernel for name in m.parameters}
        for kernel in ("default", "mutants")
    }
    added = parameters_of(mutants.patch_for((6, 12)))
    assert len(added) > 25
    assert used["default"] <= CUBICS_OWN
    assert used["mutants"] <= added | CUBICS_OWN
    bugs = {name for name in added if ".bug_" in name}
    assert bugs <= used["mutants"]


def test_controllers_of_the_adapter_are_those_it_names():
    called = {
        entry["called"] for entry in schema.load("adapter", FOLDER / "aioquic/adapter.json")["algorithms"].values()
    }
    source = (FOLDER / "aioquic" / "newreno.py").read_text()
    assert called == set(re.findall(r'^    "([a-z-]+)": \w+,$', source, re.MULTILINE))


def test_the_adapter_finds_the_one_that_it_builds_upon():
    shared = manifest.read(str(FOLDER / "aioquic")).shares
    assert all((FOLDER / "aioquic" / place).exists() for place in shared)
    assert (FOLDER / "aioquic" / shared[0] / "build").exists()
    assert f"/{shared[0]}\n" in (FOLDER / "aioquic" / "build").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "reno-x"}, "does not begin with cubic"),
        ({"suspect": "the moon"}, "/mutants/0/suspect"),
        ({"reference": {"text": "somebody told me"}}, "/mutants/0/reference"),
        ({"made": {"kernel": "default", "parameters": {"beta": "1"}}}, "/mutants/0/made"),
        ({"made": {"kernel": "default", "parameters": {}}}, "/mutants/0/made"),
    ],
)
def test_a_corpus_that_is_wrong_names_file_and_place(tmp_path, change, words):
    entry = {
        "id": "cubic-x", "algorithm": "cubic", "what": "Something is wrong.", "suspect": "beta",
        "reference": {"text": "a library had it", "url": "https://example.org"},
        "made": {"kernel": "default", "parameters": {"tcp_cubic.beta": "1"}},
    }  # fmt: skip
    path = tmp_path / "mutants.json"
    path.write_text(json.dumps({"mutants": [{**entry, **change}]}))
    with pytest.raises(UserError, match=f"mutants.json.*{words}"):
        model.from_json(schema.load("mutants", path), path)
    path.write_text(json.dumps({"mutants": [entry, entry]}))
    assert "cubic-x is listed twice" in refusal(model.from_json, schema.load("mutants", path), path)


# Kernel variants.


@pytest.fixture
def default_kernel(own_cache):
    home = kernels.folder("d" * 16)
    home.mkdir(parents=True)
    (home / "kernel.json").write_text('{"release": "6.12.1", "source": "s.tar", "patches": []}')
    kernels.link("default", "d" * 16)
    return kernels.find("default")


def test_a_variant_has_a_digest_of_its_own_and_its_kernels_binary(default_kernel):
    made = kernels.variant("a", default_kernel, {"tcp_cubic.beta": "610"})
    other = kernels.variant("b", default_kernel, {"tcp_cubic.beta": "611"})
    assert len({made.digest, other.digest, default_kernel.digest}) == 3
    assert kernels.variant("c", default_kernel, {"tcp_cubic.beta": "610"}).digest == made.digest
    kernels.keep_variant(made, default_kernel)
    kernels.link("a", made.digest)
    assert kernels.find("a") == made
    assert made.binary == default_kernel.binary
    assert "tcp_cubic.beta=610" in command(made, "/scratch")


def test_a_variant_of_a_variant_has_the_parameters_of_both(default_kernel):
    first = kernels.variant("a", default_kernel, {"tcp_cubic.beta": "610", "tcp_cubic.hystart": "0"})
    kernels.keep_variant(first, default_kernel)
    second = kernels.variant("b", first, {"tcp_cubic.beta": "700"})
    at_once = kernels.variant("c", default_kernel, {"tcp_cubic.beta": "700", "tcp_cubic.hystart": "0"})
    assert second.digest == at_once.digest
    assert dict(second.parameters) == {"tcp_cubic.beta": "700", "tcp_cubic.hystart": "0"}


def test_what_the_lab_gives_comes_after_a_variants_parameters(default_kernel):
    words = command(kernels.variant("a", default_kernel, {"syscall.cost_ns": "5"}), "/scratch")
    at = [i for i, word in enumerate(words) if word.startswith("syscall.cost_ns=")]
    assert words[at[-1]] == "syscall.cost_ns=1000"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["tcp_cubic.beta"], "has no value"),
        (["tcp_cubic.beta=1", "tcp_cubic.beta=2"], "is given twice"),
        (["beta=1"], "use MODULE.NAME=VALUE"),
        (["tcp_cubic.beta=1 init=/bin/sh"], "use MODULE.NAME=VALUE"),
    ],
)
def test_parameters_that_are_none_are_refused(words, why):
    with pytest.raises(UserError, match=why):
        kernel_variant.parse(words)


# From verdicts to outcomes.


def finding(*statuses, mutant=CORPUS[0]):
    made = zone()
    values = {Status.VIOLATES: 0.9, Status.CONFORMS: 0.5}
    verdicts = [
        dataclasses.replace(
            judge(zone(), A_CELL, measurements([values.get(status, 0.5)] * 5)), status=status, zone_id=made.id
        )
        for status in statuses
    ]
    return model.MutantFinding(mutant=mutant, verdicts=tuple(verdicts), trials=5 * len(verdicts))


A_CELL = zone().cells[0]


@pytest.mark.parametrize(
    ("statuses", "outcome"),
    [
        ((Status.CONFORMS, Status.VIOLATES), MutantOutcome.DETECTED),
        ((Status.ERROR, Status.VIOLATES), MutantOutcome.DETECTED),
        ((Status.CONFORMS, Status.INCONCLUSIVE), MutantOutcome.MISSED),
        ((Status.CONFORMS, Status.ERROR), MutantOutcome.ERROR),
        ((Status.UNSUPPORTED,), MutantOutcome.ERROR),
        ((), MutantOutcome.ERROR),
    ],
)
def test_a_mutant_is_detected_where_a_zone_violates(statuses, outcome):
    assert finding(*statuses).outcome is outcome


def test_errors_count_for_neither():
    found = [finding(Status.VIOLATES), finding(Status.VIOLATES), finding(Status.CONFORMS), finding(Status.ERROR)]
    score = model.score(found)
    assert (score.detected, score.missed, score.errors) == (2, 1, 1)
    assert score.share == 2 / 3
    assert str(score) == "detected 2 of 3 (66.7%), missed 1, 1 errors"
    assert model.score([finding(Status.ERROR)]).share is None


def test_what_told_a_mutant_before_comes_first_then_what_told_others():
    narrow, wide = zone(0.5, 0.55).intervals[A_CELL], zone(0.1, 0.9).intervals[A_CELL]
    found = zone(intervals={A: wide, B: narrow, C: wide})
    where = [("atc25", cell) for cell in (A, B, C)]
    assert model.order([found]) == [where[1], where[0], where[2]]
    assert model.order([found], most=[where[2]]) == [where[2], where[1], where[0]]
    assert model.order([found], first=[where[0]], most=[where[2]]) == [where[0], where[2], where[1]]


def test_rounds():
    assert list(model.rounds([1, 2, 3, 4, 5, 6], (1, 2))) == [[1], [2, 3], [4, 5], [6]]
    assert list(model.rounds([], (1, 2))) == []


@pytest.mark.parametrize(("k", "n", "bound"), [(0, 200, 0.01487), (1, 200, 0.02350), (0, 1, 0.95), (2, 2, 1.0)])
def test_upper_bounds_are_clopper_and_pearsons(k, n, bound):
    assert model.upper_bound(k, n) == pytest.approx(bound, abs=1e-5)


def test_names_of_mutants_that_are_none_are_refused():
    with pytest.raises(UserError, match=r"mutant .cubic-x. is not known; choose one of cubic-beta-0\.595"):
        model.choose(CORPUS, ["cubic-x"])
    assert model.choose(CORPUS, []) == list(CORPUS)


# The runner.


@pytest.fixture
def made_up(monkeypatch, tmp_path):
    """Replace guests: every trial of cell B gives the value that `values` has for the mutant, all others give 0.5."""
    values, measured = {}, []
    found = zone(intervals=dict.fromkeys((A, B, C), zone().intervals[A_CELL]))

    def measure(bench, kept, algorithm, zones, where, plan, on_trial):
        measured.extend(cell for _, cell in where)
        asked = mutants.asked(algorithm, zones, plan)
        made = {
            key: measurements_of("utilization", [values.get(bench, 0.5) if cell == B else 0.5] * plan.trials, cell=cell)
            for key, (_, cell) in zip(mutants.work(algorithm, where), where, strict=True)
        }
        return [
            Answer(algorithm=algorithm, setting=key[1], measurements=found, judged=asked.judged(key, found))
            for key, found in made.items()
        ]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(mutants, "_absent", lambda chosen: [])
    monkeypatch.setattr(mutants, "bench_of", lambda mutant, say: mutant.id)
    monkeypatch.setattr(mutants, "measure", measure)
    monkeypatch.setattr(mutants.unused, "lines", lambda plan, bench, kept, named: [f"{bench} on an old kernel"])
    monkeypatch.setattr(mutants, "_zones", lambda mutant, plan: [found])
    monkeypatch.setattr(mutants, "_ROUNDS", (1,))
    monkeypatch.setattr(mutant_record, "path", lambda: tmp_path / "detected.json")
    return values, measured


PLAN = mutants.MutantOptions(profile=None, trials=5, max_trials=20, first_seed=101, results="r.jsonl", workers=1)


def test_a_zone_of_kinds_judges_a_mutant_kind_by_kind():
    """It is asked what `pytest -m ALGORITHM` asks, of kinds whose cells were all measured."""
    found = documents.zone_of("bbrv3", "heatmap", "packets")
    asked = mutants.asked("bbrv3", [found], dataclasses.replace(PLAN, max_trials=5))
    lossless = [cell for cell in found.cells if not cell.loss_pct]

    def answer(cell):
        where, median = documents.profile("packets", cell), found.intervals[cell].basis.median
        made = [measurement(0.7 * median, seed, algorithm="bbrv3") for seed in range(101, 106)]
        made = [of_trial(one, setting=where) for one in made]
        return Answer(algorithm="bbrv3", setting=where, measurements=made, judged=asked.judged(("bbrv3", where), made))

    told = mutants.judged(asked, map(answer, lossless))
    statuses = {"no-random-loss": Status.VIOLATES, "no-random-loss-even": Status.CONFORMS}
    assert {one.place.id: one.status for one in told if one.n} == statuses
    assert not [one for one in mutants.judged(asked, map(answer, lossless[1:])) if one.n]


def test_the_trials_that_a_kind_of_cells_needs_beyond_its_first_look_count_once(tmp_path, monkeypatch):
    fake_room.install("unclear", patch=monkeypatch.setattr)
    found = documents.zone_of("bbrv3", "heatmap", "packets")
    where = [("packets", cell) for cell in found.cells if not cell.loss_pct]
    kept = store.Store(tmp_path / "r.jsonl")
    answers = mutants.measure(benches.find(), kept, "bbrv3", [found], where, PLAN, lambda progress: None)
    assert sorted(map(mutants.at, answers)) == sorted(where)
    assert {len(answer.measurements) for answer in answers} == {PLAN.max_trials}


def ran(ids, plan, record, target, console):
    """Do what the command does; return its exit status."""
    found = mutants.compute(ids, plan, record, ConsoleNotes(console))
    schema.check("mutant-score", printed(found), "mutants")
    if target:
        scores.write(found.findings, target)
    scores.show_scored(found, console)
    return found.exit_status


IDS = ("cubic-beta-0.595", "cubic-no-reduction")


def test_a_mutant_is_measured_until_it_is_detected(made_up, tmp_path, console):
    values, measured = made_up
    values[IDS[0]] = 0.7
    target = tmp_path / "score.md"
    assert ran(IDS, PLAN, False, target, console) == 1
    said = console.file.getvalue()
    assert "cubic/heatmap 10mbps-20ms-1pct: 0.700, permitted 0.400..0.600" in said
    assert "detected 1 of 2 (50.0%), missed 1" in said
    assert f"\n{IDS[1]}: {IDS[1]} on an old kernel\n" in said
    assert measured == [A, B, A, B, C]
    assert "| cubic-no-reduction | A loss reduces nothing. | missed |  | 15 |" in target.read_text()
    values[IDS[1]] = 0.2
    assert ran(IDS, PLAN, False, None, console) == 0


def test_errors_end_with_three(made_up, monkeypatch, console):
    monkeypatch.setattr(mutants, "judged", lambda *_: finding(Status.ERROR).verdicts)
    assert ran(IDS[:1], PLAN, False, None, console) == 3


def test_the_record_is_of_all_mutants_and_what_told_comes_first(made_up, monkeypatch, console):
    monkeypatch.setattr(documents, "zone_files", lambda kind, profile="atc25": [])
    values, measured = made_up
    values.update({mutant.id: 0.7 for mutant in CORPUS})
    assert "--record keeps the score of all mutants" in refusal(ran, IDS, PLAN, True, None, console)
    assert ran((), PLAN, True, None, console) == 0
    kept = {(one.mutant, one.cell): one for one in mutant_record.load()}
    assert kept[IDS[0], A].values["utilization"] == [0.5] * 5
    assert kept[IDS[0], B].values["utilization"] == [0.7] * 5
    assert len(kept) == 2 * len(CORPUS)
    # The next run begins with the cell that detected the mutant.
    measured.clear()
    assert ran(IDS, PLAN, False, None, console) == 0
    assert measured == [B, B]


def test_mutants_whose_kernel_is_not_built_are_left_out_in_one_line_and_stay_recorded(made_up, monkeypatch, console):
    monkeypatch.setattr(documents, "zone_files", lambda kind, profile="atc25": [])
    values, _ = made_up
    values.update({mutant.id: 0.7 for mutant in CORPUS})
    ran((), PLAN, True, None, console)
    recorded = {one.mutant for one in mutant_record.load()}
    monkeypatch.setattr(mutants, "_absent", lambda chosen: [m for m in chosen if m.algorithm == "bbrv2"])
    assert ran((), PLAN, True, None, console) == 0
    lacking = sum(mutant.algorithm == "bbrv2" for mutant in CORPUS)
    said = console.file.getvalue()
    assert said.count("is not built here") == 1
    assert f"not measured: {lacking} mutants because kernel bbrv2-mutants is not built here (docs/bbr-kernels" in said
    assert {one.mutant for one in mutant_record.load()} == recorded
    with pytest.raises(UserError, match="mutant bbrv2-no-probe-rtt needs the kernel bbrv2-mutants"):
        ran(("bbrv2-no-probe-rtt",), PLAN, False, None, console)


def test_a_zone_that_rejected_nobody_is_tried_on_further_mutants(made_up, monkeypatch, console):
    values, measured = made_up
    wide, narrow = zone(0.1, 0.9).intervals[A_CELL], zone().intervals[A_CELL]
    shipped = [zone(id="cubic/heatmap", intervals={A: wide}), zone(id="cubic/startup", intervals={B: narrow})]
    monkeypatch.setattr(documents, "zone_files", lambda kind, profile="atc25": shipped)
    monkeypatch.setattr(documents, "judging_files", lambda: [])
    monkeypatch.setattr(documents, "zone", lambda zone: zone)
    monkeypatch.setattr(mutants, "_zones", lambda mutant, plan: [shipped[0]])
    kernel = [mutant.id for mutant in CORPUS if mutant.algorithm == "cubic" and mutant.kernel]
    values[kernel[2]] = 0.7
    ran((), PLAN, True, None, console)
    tried = {one.mutant for one in mutant_record.load() if one.cell == B}
    assert tried == set(kernel[:3])
    assert measured[len(CORPUS) :] == [A] * len(kernel) + [B] * 3


def test_options_that_exclude_each_other(own_cache):
    result = invoke("dev", "mutants", "--false-alarms", "3", "cubic-beta-0.595")
    assert result.exit_code == 2
    assert "--false-alarms measures no mutants" in result.output


def test_a_score_in_markdown_holds_whatever_a_mutant_is_called(tmp_path):
    mutant = dataclasses.replace(CORPUS[0], what="<b>it</b> | halves\n`cwnd`")
    scores.write([MutantFinding(mutant=mutant, verdicts=(), trials=7)], tmp_path / "score.md")
    head, rule, row, *_ = (tmp_path / "score.md").read_text().splitlines()
    assert (head, rule) == ("| mutant | what is wrong | verdict | detected by | trials |", "|---|---|---|---|---:|")
    assert row.split(" | ")[1:3] == ["&lt;b>it&lt;/b> \\| halves \\`cwnd\\`", "error"]


# What `zones check` knows.


def did(mutant, at, value, n=5, **changes):
    made = measurements_of("utilization", [value] * n, cell=at)
    return dataclasses.replace(mutant_record.measured(mutant, made), **changes)


def kept_file():
    """Return where it is kept which mutants each zone rejects."""
    return mutant_record.path().with_name("rejected.json")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Return a function that records these rows as the mutants' results."""
    monkeypatch.setattr(mutant_record, "path", lambda: tmp_path / "detected.json")
    return lambda *rows: mutant_record.record(rows)


def test_a_zone_that_accepts_every_mutant_it_was_tried_on_is_refused(recorded):
    made = zone(intervals=dict.fromkeys((A, B), zone().intervals[A_CELL]))
    assert mutant_record.check(made, "z.json") == "tried on no mutants"
    recorded(did("cubic-a", A, 0.5), did("cubic-a", B, 0.5), did("cubic-b", A, 0.5), did("reno-a", A, 0.9))
    with pytest.raises(UserError, match=r"^z\.json: it accepts every mutant that .* tried on \(cubic-a, cubic-b\)"):
        mutant_record.check(made, "z.json")
    recorded(did("cubic-a", A, 0.5), did("cubic-a", B, 0.5), did("cubic-b", A, 0.5), did("cubic-c", B, 0.9))
    # cubic-b was measured in one cell only, because something else detected it, so nothing is known about it.
    assert mutant_record.check(made, "z.json") == "rejects 1 of 2 mutants"


def test_a_zone_that_counts_no_point_is_asked_to_reject_none(recorded):
    blind = dataclasses.replace(zone().intervals[A_CELL], counted=False)
    of_points, of_cells = (zone(intervals=dict.fromkeys(places, blind)) for places in (POINTS, (A, B)))
    recorded(*(did("cubic-a", A_CELL, 0.5, cell=point) for point in POINTS))
    of_points = dataclasses.replace(of_points, id="cubic/fairness-jain")
    assert mutant_record.check(of_points, "z.json") == "judges nothing"
    recorded(did("cubic-a", A, 0.1), did("cubic-a", B, 0.1))
    assert "no cell counts, so it accepts every mutant" in refusal(mutant_record.check, of_cells, "z.json")


def test_what_is_only_shown_rejects_no_mutant(recorded):
    interval = zone().intervals[A_CELL]
    made = zone(intervals={A: interval, B: dataclasses.replace(interval, counted=False)})
    recorded(did("cubic-a", A, 0.5), did("cubic-a", B, 0.9))
    assert "accepts every mutant" in refusal(mutant_record.check, made, "z.json")
    recorded(did("cubic-a", A, 0.9), did("cubic-a", B, 0.5))
    assert mutant_record.check(made, "z.json") == "rejects 1 of 1 mutants"


def test_a_zone_of_an_algorithm_without_mutants_is_tried_on_all_others(recorded):
    recorded(did("reno-a", A_CELL, 0.9), did("reno-b", A_CELL, 0.5), did("bbrv1-a", A_CELL, 0.9))
    assert mutant_record.check(zone(), "z.json") == "rejects 2 of 3 mutants, none of them of its own algorithm"
    with pytest.raises(UserError, match="it accepts every mutant of any algorithm that it was tried on"):
        mutant_record.check(zone(0.0, 1.0), "z.json")
    recorded(did("reno-a", A_CELL, 0.9), did("cubic-a", A_CELL, 0.5))
    assert "it accepts every mutant that it was tried on (cubic-a)" in refusal(mutant_record.check, zone(), "z.json")


def test_one_metric_of_a_scenario_may_show_only_what_others_mutants_do(recorded):
    """The algorithm's own mutants may be detected by another metric of the same points."""
    over_points = dataclasses.replace(zone(intervals={POINTS[0]: zone().intervals[A_CELL]}), id="cubic/fairness-jain")

    def at_point(mutant, value):
        return did(mutant, A_CELL, value, cell=POINTS[0])

    recorded(at_point("reno-a", 0.9), at_point("cubic-a", 0.5))
    assert mutant_record.check(over_points, "z.json") == "rejects 1 of 2 mutants, none of them of its own algorithm"
    recorded(at_point("reno-a", 0.9), at_point("cubic-a", 0.5), at_point("cubic-b", 0.9))
    assert mutant_record.check(over_points, "z.json") == "rejects 1 of 2 mutants"
    recorded(at_point("reno-a", 0.5), at_point("cubic-a", 0.5))
    with pytest.raises(UserError, match="it accepts every mutant of any algorithm that it was tried on"):
        mutant_record.check(over_points, "z.json")


def test_zones_are_judged_as_they_are(recorded):
    """A zone that was widened after the mutants were measured is judged by its present width."""
    recorded(did("cubic-a", A_CELL, 0.7))
    assert mutant_record.check(zone(), "z.json") == "rejects 1 of 1 mutants"
    assert "accepts every mutant" in refusal(mutant_record.check, zone(0.0, 1.0), "z.json")


def test_a_mutant_is_judged_by_what_its_packets_are_permitted(recorded):
    """As in a session (verdict.permitted_to): with small packets it gets less, and that is no fault."""
    scaled = zone(intervals={A_CELL: dataclasses.replace(zone().intervals[A_CELL], small_packets=0.5)})
    recorded(did("cubic-a", A_CELL, 0.25), did("cubic-b", A_CELL, 0.25, packet_bytes=1200.0))
    assert dict(mutant_record.judged(scaled, mutant_record.load())) == {"cubic-a": True, "cubic-b": False}


def test_a_zone_of_kinds_rejects_by_kinds(recorded):
    of_kinds = documents.zone_of("bbrv3", "heatmap", "packets")
    medians = {cell: of.basis.median for cell, of in of_kinds.intervals.items() if kind_of(cell) == NO_LOSS}

    def shares(mutant, *factors):
        return [
            did(mutant, cell, median * factor, n=8, profile_digest=of_kinds.profile_digest)
            for (cell, median), factor in zip(medians.items(), factors, strict=False)
        ]

    one, all_cells = (1, 0.8, 1, 1, 1, 1), (0.8,) * 6
    recorded(*shares("bbrv3-a", *one), *shares("bbrv3-b", *all_cells), *shares("bbrv3-c", *all_cells[:5]))
    assert set(mutant_record.judged(of_kinds, mutant_record.load())) == {("bbrv3-a", False), ("bbrv3-b", True)}
    assert mutant_record.rejected_by([of_kinds], mutant_record.load())["bbrv3-a"] == set()
    recorded(*shares("bbrv3-a", *one))
    assert "accepts every mutant" in refusal(mutant_record.check, of_kinds, "z.json")


def test_a_mutant_that_a_zone_rejected_is_not_lost_without_a_word(recorded, monkeypatch):
    recorded(did("cubic-a", A_CELL, 0.7), did("cubic-b", A_CELL, 0.9))
    monkeypatch.setattr(mutant_record, "shipped", lambda: [zone()])
    mutant_record.keep()
    assert mutant_record.check(zone(), "z.json") == "rejects 2 of 2 mutants"
    wider = zone(0.4, 0.8)
    with pytest.raises(UserError, match=r"^z\.json: it now accepts cubic-a, which it rejected before; narrow it"):
        mutant_record.check(wider, "z.json")
    # The same if it judges the cell no longer, or under another profile.
    usual = zone().intervals[A_CELL]
    blind = zone(intervals={A_CELL: dataclasses.replace(usual, counted=False), Cell(10, 80, 1): usual})
    for other in (blind, zone(profile_digest="0" * 16)):
        assert "it now accepts cubic-a, cubic-b, which" in refusal(mutant_record.check, other, "z.json")
    monkeypatch.setattr(mutant_record, "shipped", lambda: [wider])
    mutant_record.keep()
    assert mutant_record.check(wider, "z.json") == "rejects 1 of 2 mutants"
    # A mutant that no longer exists is no loss.
    recorded(did("cubic-b", A_CELL, 0.5), did("cubic-c", A_CELL, 0.9))
    assert "it now accepts cubic-b, which" in refusal(mutant_record.check, zone(), "z.json")
    recorded(did("cubic-c", A_CELL, 0.9))
    assert mutant_record.check(zone(), "z.json") == "rejects 1 of 1 mutants"
    for text in ("[]", '{"a": 5}', "{"):
        kept_file().write_text(text)
        with pytest.raises(UserError, match=r"rejected\.json: not a record of what zones reject.*zones check --record"):
            mutant_record.check(zone(), "z.json")


def test_what_zones_reject_is_recorded_only_where_all_of_them_hold(recorded, monkeypatch):
    made = zone()
    monkeypatch.setattr(mutant_record, "shipped", lambda: [made])
    monkeypatch.setattr(documents, "zone_files", lambda kind, profile="atc25": ["z.json"])
    monkeypatch.setattr(documents, "judging_files", lambda: [])
    monkeypatch.setattr("conformance.catalogue.lint.check_all", lambda named: iter([("z.json", made)]))
    recorded(did("cubic-a", A_CELL, 0.5))

    def record():
        return invoke("zones", "check", "--record")

    refused = record()
    assert refused.exit_code == 2 and "accepts every mutant" in refused.output and "recorded" not in refused.output
    assert not kept_file().exists()
    kept_file().write_text('{"cubic/heatmap": ["cubic-a"]}')
    recorded(did("cubic-a", A_CELL, 0.5), did("cubic-b", A_CELL, 0.9))
    done = record()  # although a mutant that was rejected before is accepted now
    assert done.exit_code == 0 and done.output.endswith(f"recorded: {kept_file()}\n")
    assert json.loads(kept_file().read_text()) == {made.id: ["cubic-b"]}


def test_what_was_measured_under_another_profile_or_timed_out_says_nothing_more_than_it_does(recorded):
    recorded(did("cubic-a", A_CELL, 0.9, profile_digest="0" * 16))
    assert mutant_record.check(zone(), "z.json") == "tried on no mutants"
    recorded(did("cubic-a", A_CELL, 0.9, timed_out=[True] * 5))
    assert "accepts every mutant" in refusal(mutant_record.check, zone(), "z.json")
    recorded(did("cubic-a", A_CELL, 0.1, timed_out=[True] * 5))
    assert mutant_record.check(zone(), "z.json") == "rejects 1 of 1 mutants"


def test_trials_that_failed_are_not_recorded():
    failed = [*measurements([0.9] * 4), measurement(seed=5, outcome=runs.Outcome.ERROR, message="died")]
    assert mutant_record.measured("cubic-a", failed) is None


@pytest.mark.parametrize("text", ["{", "5", "{}", "[[]]", '[{"mutant": 5}]', "[" * 100_000])
def test_a_record_that_is_none_says_how_to_mend_it(recorded, text):
    mutant_record.path().write_text(text)
    if text == "{}":
        assert mutant_record.load() == ()
        return
    with pytest.raises(UserError, match=r"detected\.json.*write it again with `conformance dev mutants --record`"):
        mutant_record.load()


@pytest.mark.slow
def test_the_record_is_of_the_mutants_there_are_and_of_every_zone_of_their_algorithms(monkeypatch, tmp_path):
    record = mutant_record.load()
    recorded = {one.mutant for one in record}
    assert recorded <= {mutant.id for mutant in CORPUS}
    buildable = {mutant.id for mutant in CORPUS if mutant.kernel in (None, "default", "mutants")}
    assert buildable <= recorded, "`make mutants-record`"
    for path in documents.zone_files("*"):
        shipped = documents.zone(path)
        said = mutant_record.check(shipped, path)
        own = shipped.algorithm in {one.algorithm for one in record}
        if said == "tried on no mutants":
            assert not shipped.of_cells, path
            continue
        if said == "judges nothing":
            assert not any(permitted.counted for permitted in shipped.intervals.values())
            continue
        others = "" if own and path.stem in documents.GRID_ZONES else "(, none of them of its own algorithm)?"
        assert re.fullmatch(f"rejects [1-9].* mutants{others}", said), f"{path}: `make mutants-record`"
    kept, copy = kept_file().read_text(), shutil.copy(mutant_record.path(), tmp_path)
    monkeypatch.setattr(mutant_record, "path", lambda: pathlib.Path(copy))
    assert mutant_record.keep().read_text() == kept, "`conformance zones check --record`"


def test_a_score_that_cannot_be_written_is_the_users_to_mend(tmp_path):
    assert "name another file with --out" in refusal(scores.write, [], tmp_path)


# Real guests.


def measured(bench, algorithm, cells):
    batches = [bench.trials(algorithm, documents.profile("atc25", cell, transfer_s=2), [1]) for cell in cells]
    return list(bench.place(algorithm).room.run(bench.adapter, batches, threading.Event()))


@pytest.mark.guest
def test_a_variant_that_the_kernel_does_not_take_is_an_error():
    with pytest.raises(UserError, match=r"kernel default has no parameter tcp_cubic\.betta"):
        kernel_variant.ready("x", "default", {"tcp_cubic.betta": "610"})
    with pytest.raises(UserError, match=r"syscall\.cost_ns at 1000 instead of 5"):
        kernel_variant.ready("x", "default", {"syscall.cost_ns": "5"})
    with pytest.raises(UserError, match=r"does not boot with tcp_cubic\.beta=1024"):
        kernel_variant.ready("x", "default", {"tcp_cubic.beta": "1024"})


@pytest.mark.guest
@pytest.mark.parametrize(
    ("mutant_id", "cells"),
    [
        ("cubic-no-friendliness", "10mbps-20ms-1pct"),
        pytest.param("cubic-slow-start-never", "10mbps-100ms-0pct", marks=pytest.mark.thorough),
    ],
)
def test_mutants_are_detected_on_the_default_kernel(tmp_path, monkeypatch, mutant_id, cells, console):
    monkeypatch.setattr(mutants, "_zones", lambda mutant, plan: only(mutant.algorithm, cells))
    (mutant,) = model.choose(CORPUS, [mutant_id])
    assert mutant.kernel == "default"
    options = dataclasses.replace(PLAN, results=tmp_path / "r.jsonl")
    (found,) = mutants.compute([mutant_id], options, False, ConsoleNotes(console)).findings
    assert found.outcome is MutantOutcome.DETECTED
    # Another zone may ask for more trials of the cell.
    assert min(verdict.n for verdict in found.telling) == 5


def only(algorithm, cells):
    """Return the algorithm's zones of the grid, reduced to these cells."""
    cells = [Cell.parse(cell) for cell in cells.split(",")]
    found = [documents.zone_of(algorithm, kind) for kind in documents.KINDS]
    return [dataclasses.replace(z, intervals={cell: z.intervals[cell] for cell in cells}) for z in found]


#: (algorithm, kernel with bugs, kernel without)
WITH_BUGS = [
    *((algorithm, "mutants", "default") for algorithm in false_alarms.REFERENCES),
    *((algorithm, f"{algorithm}-mutants", algorithm) for algorithm in ("bbrv2", "bbrv3")),
]


@pytest.mark.guest
@pytest.mark.parametrize(("algorithm", "with_bugs", "without"), WITH_BUGS)
def test_a_kernel_with_bugs_does_what_the_one_without_does_where_none_is_on(algorithm, with_bugs, without):
    if {with_bugs, without} - {kernel.name for kernel in kernels.kernels()}:
        pytest.skip(f"the kernels {with_bugs} and {without} are not both built")
    cells = [Cell(10, 20, 1), Cell(10, 60, 0)]

    def lines(kernel):
        found = measured(benches.find(benches.Choice(kernel=kernel)), algorithm, cells)
        return [json.dumps([m.outcome, m.metrics, m.evidence], sort_keys=True) for m in found]

    assert lines(with_bugs) == lines(without)


def test_a_score_by_one_profile_is_not_recorded():
    done = invoke("dev", "mutants", "--record", "--profile", "packets")
    assert (done.exit_code, "give it without --profile" in done.output) == (2, True), done.output

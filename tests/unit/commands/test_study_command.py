"""`conformance study`: what it refuses, measures and reports, with rooms that invent measurements."""

import collections
import csv
import dataclasses
import json

import fake_room
import helpers
import pytest

from conformance.catalogue import studies
from conformance.commands import study as command
from conformance.engine import benches
from conformance.kernel import store as kernels
from conformance.lab import kernel_variant
from conformance.model.groups import grouped
from conformance.model.studies.claims import ClaimVerdict
from conformance.reporting.text import study as shown
from conformance.results import store
from conformance.support import limits, paths, schema

STUDY = {
    "name": "made-up", "title": "a made-up study", "source": {"title": "nothing", "published": "never"},
    "trials": {"smoke": 5, "full": 5}, "scaled": [{"what": "all", "why": "it is made up"}],
    "scenarios": ["atc25"],
    "experiments": [
        {"scenario": "atc25", "algorithms": ["cubic"], "stacks": ["STACK"], "smoke": [{"loss_pct": [0, 4]}],
         "full": [{"loss_pct": [0, 1, 4]}]}
    ],
    "claims": [
        {"id": "C1", "says": "falls with loss", "place": "1", "published": "falls", "tolerance": "none",
         "figures": ["1"], "checks": [{"at": {"scenario": "atc25", "stack": "STACK", "algorithm": "cubic",
                                               "metric": "utilization"},
                                       "falls": {"along": "loss_pct", "values": [0, 4]}}]},
        {"id": "C2", "says": "rises with loss", "place": "1", "published": "rises", "tolerance": "none",
         "difference": "it is wrong",
         "checks": [{"at": {"scenario": "atc25", "stack": "STACK", "algorithm": "cubic", "metric": "utilization"},
                     "rises": {"along": "loss_pct", "values": [0, 4]}}]},
        {"id": "C3", "says": "is lost", "place": "1", "published": "a curve", "not_judged": "lost in print"},
    ],
    "figures": [
        {"id": "1", "title": "use over loss", "draws": "curves", "metric": "utilization", "x": "loss_pct",
         "lines": "algorithm", "published": [{"x": 4, "line": "cubic", "value": 0.1}],
         "at": {"scenario": "atc25", "stack": "STACK", "algorithm": "cubic", "loss_pct": [0, 1, 4]}}
    ],
}  # fmt: skip


def invoke(*arguments):
    return helpers.invoke("study", *arguments)


def board(*arguments):
    return helpers.invoke("dev", "study", "board", *arguments)


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """Return the file of a study of the fake stack, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    fake_room.install("good")
    path = tmp_path / "made-up.json"
    path.write_text(json.dumps(STUDY).replace("STACK", fake_room.STACK))
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "acces-networks"], "there is no study 'acces-networks'; did you mean access-networks?"),
        (["run", "nowhere.json"], "cannot read nowhere.json: No such file or directory"),
        (["run", "access-networks", "--trials", "0"], "Invalid value for '--trials'"),
    ],
)
def test_a_mistake_is_one_line(arguments, words):
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_run_measures_a_tier_and_judges_it(made_up):
    done = invoke("run", made_up, "--results", "r.jsonl", "--format", "json", "--out", "out.md")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    schema.check("study-run", found, "test")
    assert {one["id"]: one["verdict"] for one in found["claims"]} == {
        "C1": "reproduced", "C2": "differs", "C3": "not judged",
    }  # fmt: skip
    assert (found["points"], found["measured"], found["tier"]) == (3, 2, "smoke")
    assert len(store.read("r.jsonl")) == 10
    text = (made_up.parent / "out.md").read_text()
    assert "likeliest cause: it is wrong" in text
    assert "lost in print" in text


def test_what_results_call_their_kernel_is_plain_text_in_markdown(made_up):
    told = dataclasses.replace(command.show(str(made_up), []), schemes=("cubic/linux-tcp/<img src=x> @everyone",))
    text = shown.as_markdown(told)
    assert "<img" not in text and "@everyone" not in text and "&lt;img src=x>" in text


def test_show_finds_what_was_measured_and_a_second_run_measures_nothing(made_up):
    invoke("run", made_up, "--results", "r.jsonl", "--grid", "full")
    before = (made_up.parent / "r.jsonl").read_bytes()
    assert invoke("run", made_up, "--results", "r.jsonl").exit_code == 0
    assert (made_up.parent / "r.jsonl").read_bytes() == before
    found = json.loads(invoke("show", made_up, "--results", "r.jsonl", "--format", "json").stdout)
    schema.check("study-run", found, "test")
    assert (found["counts"]["reproduced"], found["counts"]["differs"], found["measured"]) == (1, 1, 3)


def test_without_results_nothing_is_judged(made_up):
    done = invoke("show", made_up)
    assert done.exit_code == 0
    assert "0 reproduced, 0 differs, 0 inconclusive, 3 not judged; 0 of 3 points measured" in done.stdout
    named = invoke("show", made_up, "--results", "none.jsonl")
    assert (named.exit_code, "cannot read results none.jsonl" in named.output) == (2, True)


@pytest.mark.parametrize(("kind", "status"), [("error", 3), ("unsupported", 4)])
def test_what_fails_is_not_judged_and_says_why(made_up, kind, status):
    fake_room.install(kind)
    done = invoke("run", made_up, "--results", "r.jsonl")
    assert done.exit_code == status
    assert ("the guest died" if kind == "error" else "not offered") in done.stdout


def test_points_whose_kernel_is_not_built_are_left_out_and_say_how_to_build_it(made_up, monkeypatch):
    asked = json.loads(made_up.read_text())
    (usual,) = asked["experiments"]
    usual["full"] = [{"loss_pct": 1}]
    asked["experiments"].append({**usual, "kernel": "fixed", "smoke": [{"loss_pct": 2}], "full": []})
    check = asked["claims"][0]["checks"][0]
    asked["claims"][0]["checks"].append({**check, "falls": {"along": "loss_pct", "values": [0, 2]}})
    made_up.write_text(json.dumps(asked))
    found, chosen = benches.find, []

    def find(choice):
        chosen.append(choice.kernel)
        if choice.kernel:
            kernels.find(choice.kernel)
        return found(choice)

    monkeypatch.setattr(benches, "find", find)
    monkeypatch.setattr(kernels, "kernels", list)
    done = invoke("run", made_up, "--results", "r.jsonl", "--format", "json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert chosen == [None, "fixed"]
    assert told["measured"] == 2
    claim = told["claims"][0]
    assert (claim["verdict"], claim["judged"], claim["of"]) == ("reproduced", 1, 2)
    assert "run `conformance kernel build fixed --source linux-source-7.2 --patch " in claim["why"]
    assert "fixed-7.2.patch`" in claim["why"]
    assert "\n" not in claim["why"]


@pytest.mark.parametrize(
    ("held", "made", "measured", "why"),
    [
        (None, ["gentle"], 2, None),
        ("1" * 16, [], 2, None),
        ("2" * 16, [], 0, "kernel gentle is not default with the study's parameters; make it with "
         "`conformance kernel variant gentle --of default --parameter tcp_cubic.beta=900`"),
    ],
)  # fmt: skip
def test_a_run_makes_the_variants_that_a_study_names(made_up, monkeypatch, held, made, measured, why):
    """A variant that exists stays as it is; a name that means another kernel here belongs to the user."""
    asked = json.loads(made_up.read_text())
    asked["kernels"] = {"gentle": {"of": "default", "parameters": {"tcp_cubic.beta": "900"}}}
    asked["experiments"] = [{**asked["experiments"][0], "kernel": "gentle", "smoke": [{"loss_pct": [0, 4]}]}]
    asked["experiments"][0]["full"] = [{"loss_pct": [0, 1, 4]}]
    made_up.write_text(json.dumps(asked))
    gentle = dataclasses.replace(kernels.missing("gentle"), digest="1" * 16)
    there = [] if held is None else [dataclasses.replace(gentle, digest=held)]
    called = []
    monkeypatch.setattr(kernel_variant, "ready", lambda name, of, parameters: gentle)
    monkeypatch.setattr(kernel_variant, "make", lambda name, of, parameters: called.append(name))
    monkeypatch.setattr(kernels, "kernels", lambda: there)
    found = benches.find
    monkeypatch.setattr(benches, "find", lambda choice: found(dataclasses.replace(choice, kernel=None)))
    done = invoke("run", made_up, "--results", "r.jsonl", "--format", "json")
    told = json.loads(done.stdout)
    assert (called, told["measured"]) == (made, measured)
    assert ("made the kernel gentle: default with tcp_cubic.beta=900" in done.stderr) == bool(made)
    if why:
        assert told["claims"][0]["why"] == why


def test_an_experiment_with_a_client_is_measured_with_it(made_up, monkeypatch):
    asked = json.loads(made_up.read_text())
    asked["experiments"].append({**asked["experiments"][0], "client": "own", "smoke": [{"loss_pct": 0}], "full": []})
    made_up.write_text(json.dumps(asked))
    find, chosen = benches.find, []
    monkeypatch.setattr(benches, "find", lambda choice: chosen.append(choice.client) or find(choice))
    done = invoke("run", made_up, "--results", "r.jsonl", "--format", "json")
    assert done.exit_code == 0, done.output
    assert chosen == ["common", "own"]
    assert json.loads(done.stdout)["measured"] == 3


def test_an_experiment_may_ask_for_more_trials(made_up):
    asked = json.loads(made_up.read_text())
    asked["experiments"].append({**asked["experiments"][0], "trials": 8, "smoke": [], "full": [{"loss_pct": 2}]})
    made_up.write_text(json.dumps(asked))
    assert invoke("run", made_up, "--results", "r.jsonl", "--grid", "full").exit_code == 0
    trials = collections.Counter(one.setting.cell.loss_pct for one in store.read("r.jsonl"))
    assert trials == {0: 5, 1: 5, 2: 8, 4: 5}
    assert invoke("run", made_up, "--results", "s.jsonl", "--grid", "full", "--trials", "5").exit_code == 0
    assert len(store.read("s.jsonl")) == 20


def test_a_network_that_memory_does_not_hold_is_not_measured(monkeypatch):
    study = studies.find("bbr2-mininet")
    monkeypatch.setattr(limits, "free_memory_mb", lambda: 300)
    found = command._too_large(study, study.points["smoke"][:1])
    assert set(found.values()) == {"its guest needs 512 MB, but only 300 MB are free"}


def test_the_list_keeps_its_schema():
    found = json.loads(invoke("show", "--format", "json").stdout)
    schema.check("study-list", found, "test")
    assert {one["name"] for one in found["studies"]} >= {"access-networks", "atc25-splitting", "bbr2-mininet"}


def test_findings_that_decide_come_first(made_up):
    invoke("run", made_up, "--results", "r.jsonl")
    told = command.show(str(made_up), ["r.jsonl"])
    (wrong,) = (judged for claim, judged in told.judgment.claims if claim.id == "C2")
    (words,) = shown.findings(wrong)
    assert words.endswith("rises: does not hold")
    assert "scaled: all: it is made up" in helpers.shown(shown.show_told, told)


def test_a_claim_that_is_judged_in_part_says_so(made_up):
    told = command.show(str(made_up), [])
    (claim, judged), *_ = told.judgment.claims
    part = dataclasses.replace(judged.findings[0], why=None, holds=True)
    some = dataclasses.replace(judged, findings=(part, judged.findings[0]))
    judgment = dataclasses.replace(told.judgment, claims=((claim, some),))
    assert "at 1 of 2 places" in helpers.shown(shown.show_told, dataclasses.replace(told, judgment=judgment))


def test_no_claim_that_was_found_in_what_was_published_is_in_no_study():
    with paths.data("studies", "claims.csv").open(encoding="utf-8", newline="") as file:
        listed = grouped((row["study"], row["claim"]) for row in csv.DictReader(file))
    for name, ids in listed.items():
        own = {claim.id for claim in studies.find(name).claims}
        assert not set(ids) - own, f"studies/{name}.json lacks {sorted(set(ids) - own)}"
    assert set(listed) == set(studies.files())
    assert sum(map(len, listed.values())) == 186


def test_the_board_counts_the_claims_of_all_studies_and_tells_each(tmp_path):
    results = tmp_path / "results.jsonl"
    results.write_text("")
    found = board(results, "--format", "json", "--out", tmp_path / "board.md")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    schema.check("study-board", told, "test")
    names = [one["study"] for one in told["studies"]]
    assert names == list(studies.files())
    # Nothing was measured, so every claim is listed, and only those with known references of zones are judged.
    by_zones = {one["study"] for one in told["studies"] if one["referenced"]}
    assert by_zones == {"atc25-splitting"}
    assert sum(one["claims"] for one in told["studies"]) >= 186
    for one in told["studies"]:
        assert one["measured"] == 0
        assert (one["counts"]["not judged"] == one["claims"]) == (one["study"] not in by_zones)
        assert {tier: (of["measured"], of["core_minutes"]) for tier, of in one["tiers"].items()} == {
            "smoke": (0, 0), "full": (0, 0),
        }  # fmt: skip
    text = (tmp_path / "board.md").read_text()
    every = [claim for name in names for claim in studies.find(name).claims]
    assert all(f"| {claim.id} | " in text for claim in every)
    shown = board(results)
    assert "tng" in shown.output and "not judged" in shown.output
    assert "tng: smoke tier 0.0 core-minutes (0 of " in shown.output


def test_a_board_of_results_that_are_not_there_is_one_line(tmp_path):
    found = board(tmp_path / "none.jsonl")
    assert found.exit_code == 2
    assert "does not exist" in found.output


@pytest.mark.slow
@pytest.mark.thorough
def test_findings_have_the_counts_of_what_is_published():
    root = paths.PACKAGE.parent
    page = (root / "docs" / "findings-studies.md").read_text(encoding="utf-8")
    found = command.board(sorted((root / "reports" / "published").rglob("*.jsonl.xz")))
    total = collections.Counter()
    for told in found.studies:
        total.update(told.judgment.counts)
        counts = " | ".join(map(str, told.judgment.counts.values()))
        assert f"| `{told.study.name}` | {len(told.study.claims)} | {counts} | {told.measured} of {told.points}" in page
    judged = total.total() - total[ClaimVerdict.NOT_JUDGED]
    assert (
        f"In all, {judged} of {total.total()} claims are judged: {total[ClaimVerdict.REPRODUCED]} are reproduced, "
        f"{total[ClaimVerdict.DIFFERS]} differ, and {total[ClaimVerdict.INCONCLUSIVE]} are inconclusive."
    ) in " ".join(page.split())

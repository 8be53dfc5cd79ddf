"""Result lines that are kept: pages show the same from them, and earlier lines of a stack are not lost."""

import dataclasses
import pathlib
import re

import pytest
from helpers import as_read, measurements, measurements_of, of_trial, results_file, scheme, stored

from conformance.catalogue import studies
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.studies import outcome, study_results
from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps, published
from conformance.reporting.html import cell_page
from conformance.reporting.tools import export
from conformance.results import store
from conformance.results.source import Source
from conformance.support import paths

CELLS = [Cell(10, delay_ms, 1) for delay_ms in (20, 40, 60, 80)]


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "published"


def written(path, made):
    return Source([stored(path, made)])


def test_lean_lines_say_the_same_and_one_trial_a_cell_has_a_trace(tmp_path, folder):
    source = Source([results_file(tmp_path / "results.jsonl")])
    packed = published.write(source, folder)
    again = Source(packed)
    ran = [
        s for s in heatmaps.all_series(source.measurements) if not all(r.unsupported for r in s.lost.results.values())
    ]
    assert export.csv_bytes(heatmaps.all_series(again.measurements)) == export.csv_bytes(ran)
    kept = 0
    for series in ran:
        for cell, result in series.utilization.results.items():
            drawn = {m.trial.key for m in result.measurements if "trace" in again.whole(m).evidence}
            front = cell_page.front(series, cell)
            had = front and "trace" in source.whole(front).evidence
            assert drawn == ({front.trial.key} if had else set())
            kept += len(drawn)
    assert kept


def test_the_same_results_make_the_same_bytes(tmp_path, folder):
    source = Source([results_file(tmp_path / "results.jsonl")])
    first = [path.read_bytes() for path in published.write(source, folder)]
    assert [path.read_bytes() for path in published.write(source, folder)] == first


def test_algorithms_that_were_not_measured_now_are_kept(tmp_path, folder):
    published.write(written(tmp_path / "a.jsonl", measurements([0.4] * 5, algorithm="reno")), folder)
    unsupported = measurements([None] * 5, algorithm="reno", outcome=Outcome.UNSUPPORTED, message="no such kernel")
    (path,) = published.write(
        written(tmp_path / "b.jsonl", [*measurements([0.5] * 5, algorithm="cubic"), *unsupported]), folder
    )
    kept = {(m.trial.scheme.algorithm, m.utilization) for m in store.read(path)}
    assert kept == {("reno", 0.4), ("cubic", 0.5)}


def test_a_study_s_lines_are_judged_alike_and_points_that_were_not_measured_now_are_kept(tmp_path, folder):
    study = studies.find("atc25-splitting")
    one, other = Cell(10, 20, 1), Cell(10, 20, 2)
    first = measurements([0.4, 0.41, 0.42, 0.43, 0.44], algorithm="cubic", cell=one)
    stray = measurements([0.4] * 5, algorithm="cubic", cell=Cell(7, 20, 1))
    path = published.write_study(study, [*first, *stray], folder)
    kept = store.read(path)
    assert {m.trial.setting.cell for m in kept} == {one}
    found, before = (study_results.of(study, lines).measured for lines in (kept, first))
    assert outcome.judge(study, found) == outcome.judge(study, before)
    assert published.write_study(study, measurements([0.2] * 5, algorithm="cubic", cell=other), folder) == path
    both = store.read(path)
    assert sorted((m.trial.setting.cell.loss_pct, m.utilization) for m in both) == [
        *((1, value) for value in (0.4, 0.41, 0.42, 0.43, 0.44)), *[(2, 0.2)] * 5,
    ]  # fmt: skip
    again = path.read_bytes()
    assert published.write_study(study, both, folder).read_bytes() == again
    with pytest.raises(UserError, match="these results have no measured points of atc25-splitting"):
        published.write_study(study, stray, folder)


def test_a_study_s_file_holds_one_build_of_an_algorithm(folder):
    study = studies.find("atc25-splitting")

    def of(digest, *cells, algorithm="cubic"):
        kinds = {"algorithm": algorithm, "kernel_digest": digest}
        return [m for cell in cells for m in measurements([0.4] * 5, cell=cell, **kinds)]

    one, other = Cell(10, 20, 1), Cell(10, 20, 2)
    path = published.write_study(study, of("1" * 16, one, other), folder)
    before = path.read_bytes()
    with pytest.raises(UserError, match=r"holds atc25, cubic, 10mbps-20ms-2pct, .*and not in these results"):
        published.write_study(study, of("2" * 16, one), folder)
    assert path.read_bytes() == before
    published.write_study(study, of("2" * 16, one, algorithm="bbrv1"), folder)  # another algorithm's kernel may differ
    published.write_study(study, of("2" * 16, one, other), folder)  # all kernels may differ together
    found = study_results.of(study, store.read(path)).measured
    assert {m.trial.scheme.kernel_digest for own in found.values() for m in own} == {"2" * 16} and len(found) == 3


def test_rates_of_each_second_are_rounded_in_a_study_s_lines_and_nothing_else_of_a_flow(folder):
    lines = store.read(paths.PACKAGE.parent / "reports" / "published" / "studies" / "access-networks.jsonl.xz")
    one = next(m for m in lines if m.flows and m.links)
    flows = [{**flow, "goodput_mbps": 12.345678, "goodput_series_mbps": [12.345678, 0.0]} for flow in one.flows]
    links = [{**link, "rate_mbps": 1234.5678, "out_series_mbps": [9.876543]} for link in one.links]
    whole = dataclasses.replace(one, flows=tuple(flows), links=tuple(links))
    (kept,) = store.read(published.write_study(studies.find("access-networks"), [whole], folder))
    assert kept.flows == tuple({**flow, "goodput_series_mbps": [12.35, 0.0]} for flow in flows)
    assert kept.links == tuple({**link, "out_series_mbps": [9.877]} for link in links)


def test_the_example_workflow_pins_its_actions_asks_for_little_and_builds_what_make_builds():
    root = paths.PACKAGE.parent
    workflow = pytest.importorskip("yaml").safe_load((root / "examples" / "publish-pages.yml").read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert len(used) == 3 and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", one) for one in used)
    assert workflow["permissions"] == {}
    assert workflow["jobs"]["build"]["permissions"] == {"contents": "read"}
    assert workflow["jobs"]["deploy"]["permissions"] == {"pages": "write", "id-token": "write"}
    makefile = (root / "Makefile").read_text("utf-8")
    for target in [step["run"].split()[1] for step in steps if step.get("run", "").startswith("make ")]:
        assert re.search(rf"^{target}:", makefile, re.M)


def of_scenario(algorithm="cubic", shared=12.345678):
    """Return a published measurement of a scenario's point, with another algorithm and goodput."""
    lines = store.read(paths.PACKAGE.parent / "reports" / "published" / "scenarios" / "linux-tcp.jsonl.xz")
    one = next(m for m in lines if m.trial.setting.profile == "coexistence")
    flows = [{**flow, "goodput_mbps": shared, "goodput_series_mbps": [shared]} for flow in one.flows]
    trial = dataclasses.replace(one.trial, scheme=dataclasses.replace(one.trial.scheme, algorithm=algorithm))
    return dataclasses.replace(one, trial=trial, flows=tuple(flows), evidence={"qdiscs": []})


def test_flows_of_scenarios_are_kept_in_a_folder_of_their_own_without_evidence(tmp_path, folder):
    (path,) = published.write_scenarios(written(tmp_path / "a.jsonl", [of_scenario()]), folder)
    assert path == folder / "scenarios" / "linux-tcp.jsonl.xz"
    (kept,) = store.read(path)
    assert (kept.flows[0]["goodput_mbps"], kept.flows[0]["goodput_series_mbps"]) == (12.345678, [12.35])
    assert kept.evidence == {}
    # Lines of other algorithms stay, those of the same algorithm are replaced.
    more = written(tmp_path / "b.jsonl", [of_scenario("bbrv1"), of_scenario(shared=1.0)])
    published.write_scenarios(more, folder)
    found = {(m.trial.scheme.algorithm, m.flows[0]["goodput_mbps"]) for m in store.read(path)}
    assert found == {("cubic", 1.0), ("bbrv1", 12.345678)}
    published.write_scenarios(written(tmp_path / "c.jsonl", [of_scenario("reno")]), folder)
    assert len(store.read(path)) == 3


def test_what_is_published_for_a_study_is_no_part_of_a_grid():
    """Lines for a study have no evidence, so their losses are not known, and they have the seeds of references."""
    own = measurements_of("lost_pct", [2.0] * 5)
    of_a_study = [of_trial(m, seed=100 + m.trial.seed) for m in measurements([0.1] * 5)]
    (beside,) = heatmaps.all_series([*own, *of_a_study])
    assert beside == heatmaps.all_series(own)[0]
    (alone,) = heatmaps.all_series(of_a_study)
    assert alone.utilization.count() and not alone.lost.count()  # not an error: nothing failed


def test_lists_of_what_does_not_conform_begin_with_the_worst(tmp_path):
    made = [m for at, value in enumerate((0.9, 0.05, 0.3)) for m in measurements([value] * 5, cell=CELLS[at])]
    made += [as_read(m, outcome=Outcome.ERROR, metrics={}) for m in measurements([0.5], cell=CELLS[3])]
    (series,) = heatmaps.all_series(made)
    ordered = sorted(series.utilization.results.values(), key=heatmaps.worst_first)
    told = [(result.status, result.value) for result in ordered]
    assert told == [("violates", 0.05), ("violates", 0.9), ("violates", 0.3), ("error", None)]


def test_no_name_of_a_stack_leads_out_of_the_folder(tmp_path, folder):
    (made,) = measurements([0.5], cell=CELLS[0])
    names = ["../../evil", str(tmp_path / "absolute"), "..", "plain-1.0"]
    lines = [of_trial(made, scheme=scheme(stack=n)) for n in names]
    packed = published.write(written(tmp_path / "r.jsonl", lines), folder)
    assert len(packed) == len(names)
    assert all(path.parent == folder for path in packed)
    assert folder / "plain-1.0.jsonl.xz" in packed
    assert {m.trial.scheme.stack for m in Source(packed).measurements} == set(names)

"""Result lines for keeping: what pages show of them is the same, and what is kept of a stack is not lost."""

import pathlib
import re

import pytest
from helpers import measurements, results_file

from conformance.model.trial import Outcome
from conformance.reporting import heatmaps, published
from conformance.reporting.html import cell_page
from conformance.reporting.tools import export
from conformance.results import store
from conformance.results.source import Source
from conformance.support import paths


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "published"


def written(path, made):
    kept = store.Store(path)
    for measurement in made:
        kept.add(measurement)
    return Source([path])


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

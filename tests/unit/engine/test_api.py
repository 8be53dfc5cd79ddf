"""The package's interface: what it exports, that it costs guests nothing, and the example that uses all of it."""

import pathlib
import runpy
import subprocess
import sys

import fake_room
import pytest
from helpers import CELL, measurements, refusal, zone

import conformance
from conformance.engine import benches
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status
from conformance.support import paths

EXAMPLE = paths.PACKAGE.parent / "examples" / "judge_a_stack.py"


def test_every_name_is_there_and_documented():
    for name in conformance.__all__:
        assert getattr(conformance, name) is not None
        assert name in conformance.__doc__ or name == "__version__"
    assert set(conformance.__all__) <= set(dir(conformance))
    with pytest.raises(AttributeError, match="has no attribute 'nonesuch'"):
        conformance.nonesuch  # noqa: B018


def test_importing_the_package_imports_nothing_of_ours():
    program = "import sys, conformance; print([m for m in sys.modules if m.startswith('conformance.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_example_measures_and_judges(monkeypatch, tmp_path, capsys):
    monkeypatch.delitem(vars(conformance), "find_bench", raising=False)
    fake_room.install("good")
    monkeypatch.chdir(tmp_path)
    example = runpy.run_path(str(EXAMPLE))
    assert example["main"](fake_room.STACK) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "cubic/heatmap conforms"
    assert len(said) == 4 and all("conforms inside the zone" in line for line in said[:3])
    assert example["main"]("missing") == 2
    assert capsys.readouterr().err == "judge_a_stack: stack 'missing' is not known; choose another\n"
    vars(conformance).pop("find_bench", None)


def test_a_zone_is_asked_about_cells_by_their_ids():
    """Ids were no cells, so no question was asked."""
    asked = conformance.cell_questions(zone(), [CELL.id])
    assert asked == conformance.cell_questions(zone(), [CELL]) and len(asked) == 1
    with pytest.raises(UserError, match="zone cubic/heatmap has no cell 10mbps-7ms-0pct"):
        conformance.cell_questions(zone(), ["10mbps-7ms-0pct"])
    with pytest.raises(UserError):
        conformance.cell_questions(zone(), ["smoke"])


def test_a_bench_is_found_by_the_stack_s_name():
    assert "stack 'missing' is not known" in refusal(benches.find, "missing")


def test_zones_by_id_and_by_file(tmp_path):
    shipped = conformance.load_zone("cubic/heatmap")
    assert conformance.load_zone(paths.data("zones", "cubic", "heatmap.json")) == shipped
    copy = tmp_path / "mine"
    copy.write_bytes(paths.data("zones", "cubic", "heatmap.json").read_bytes())
    assert conformance.load_zone(copy) == conformance.load_zone(str(copy)) == shipped
    assert "there is no zone 'cubic'" in refusal(conformance.load_zone, "cubic")
    assert "cannot read" in refusal(conformance.load_zone, pathlib.Path("nowhere.json"))


def test_measurements_are_judged_by_the_cells_that_a_zone_has():
    found = conformance.judge(zone(), [*measurements([0.5] * 5), *measurements([0.9] * 5, cell=conformance_cell())])
    assert (found.status, set(found.verdicts)) == (Status.CONFORMS, {CELL})
    with pytest.raises(UserError, match="no measurement is of a cell of zone cubic/heatmap"):
        conformance.judge(zone(), measurements([0.5], cell=conformance_cell()))


def conformance_cell():
    """Return a cell that the zone of the helpers lacks."""
    from conformance.model.networks.place import Cell

    return Cell(10, 40, 1)

"""`bench --figures`: what it prints, and its document. Rooms are fakes, and no measured time is asserted."""

import json
import re
import types

import fake_room
import pytest
from helpers import invoke, shown

from conformance.commands import bench as command
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.lab import building, manifest
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.networks.place import Cell
from conformance.reporting.text import dev
from conformance.support import schema


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs `bench` with options, on three cells of each grid, and returns what it prints."""
    fake_room.install("good")
    monkeypatch.setattr(command, "grid", types.SimpleNamespace(cells=lambda name: grid.cells(name)[:3]))
    sessions = []

    def session(name, marks, choice):
        sessions.append((marks, choice.stack))
        return command.BenchFigure(name=name, seconds=1.5)

    monkeypatch.setattr(command, "_call", lambda choice: command.BenchFigure(name="a call", seconds=3e-6))
    monkeypatch.setattr(command, "_pytest", session)

    def call(*options):
        done = invoke("dev", "bench", *options)
        assert done.exit_code == 0, done.output
        return done.stdout, sessions

    return call


def test_figures_have_a_document(run):
    text, sessions = run("--figures", "--format", "json")
    data = json.loads(text)
    schema.check("bench-figures", data, "bench")
    names = [figure["name"] for figure in data["figures"]]
    assert names[1:3] == ["start of a guest", "calibration of a cell"]
    assert [(figure["before_s"], figure["target_s"]) for figure in data["figures"]] == [
        (None, None), (0.7, 0.3), (None, None), (None, None), (0.11, 0.065), (None, None), (None, 16), (None, 16),
        (0.46, 0.5), (0.39, 0.24), (1.66, 1.0), (3.3, 2.0), (None, None), (None, 6), (None, 60),
        (141, 90), (365, 220), (178, 110),
    ]  # fmt: skip
    assert names[-3:-1] == ["pytest -m cubic", "CUBIC, 150 cells x 20 trials"]
    assert all("WHOLE=--whole" in figure["trouble"] and figure["seconds"] is None for figure in data["figures"][-3:])
    assert sessions == [("cubic and smoke", "quinn")]


def test_whole_commands_are_measured_where_that_is_asked_for(run):
    text, sessions = run("--whole")
    assert sessions[1:] == [("cubic", "linux-tcp"), ("bbr_draft", "ngtcp2-1.11")]
    assert re.search(r"CUBIC, 150 cells x .* 365 .* 220 ", text) and "not measured" not in text


def test_grids_have_as_many_cells_as_figures_say():
    assert (len(grid.cells("full")), len(grid.cells("10mbps"))) == (command.GRID_CELLS, 30)


def test_what_is_not_measured_is_a_row_with_its_aim(run):
    text, _ = run("--figures")
    for name, aim in (("pytest -m cubic", 90), ("CUBIC, 150 cells", 220)):
        assert re.search(rf"{name}.*not measured; .* {aim} ", text), text


def test_the_first_estimate_stands_beside_what_was_left_indeed(run):
    figures = json.loads(run("--figures", "--format", "json")[0])["figures"]
    told = [figure["name"] for figure in figures if figure["estimate_s"] is not None]
    assert told == [f"CUBIC, 30 cells x 5 trials, calibrations {how}" for how in ("made", "remembered")]
    assert all((figure["left_s"] is None) == (figure["estimate_s"] is None) for figure in figures)
    text = shown(dev.show_figures, command.Figures(figures=(FIGURE,), cores=2), width=80)
    assert re.search(r"a session +│ +30.00 +│ +50 +│ +40 +│ +17.0, 19.5 +│", text)


def test_a_stack_that_is_not_built_is_a_row_that_says_so(run, monkeypatch):
    found = benches.find

    def find(choice, remembers=True):
        if choice.stack == "picoquic":
            raise UserError("stack picoquic is not built", "build it")
        return found(choice)

    monkeypatch.setattr(benches, "find", find)
    (row,) = [f for f in json.loads(run("--figures", "--format", "json")[0])["figures"] if "picoquic" in f["name"]]
    assert (row["seconds"], row["trouble"]) == (None, "stack picoquic is not built")


def test_a_bench_that_forgets_makes_every_calibration():
    rooms = (benches.find(remembers=remembers).place("cubic").room for remembers in (True, False))
    assert [room._remembers for room in rooms] == [True, False]


FIGURE = command.BenchFigure(name="a session", seconds=30.0, before_s=50.0, target_s=40, estimate_s=17.0, left_s=19.5)
COST = command.Cost(wall_s=123.4, start_s=1, virtual_s=10, utilization=0.978, calls_a_packet=12.3)


def rendered(rows, width=80):
    return shown(dev.show_costs, command.Benchmark(rows=tuple(rows), by_stack=True, cores=2), width=width)


def test_no_word_and_no_number_of_the_table_of_stacks_is_broken_at_80_columns():
    cells = [(name, cell) for name in manifest.names() for cell in (Cell(10, 20, 0), Cell(50, 20, 0))]
    rows = [command.CellCost(stack=name, algorithm="cubic", cell=cell, cost=COST) for name, cell in cells]
    text = rendered(rows)
    assert max(map(len, text.splitlines())) <= 80
    told = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    numbers = ["0.978", "123.40", "0", "12.3"]
    assert [[word.strip() for word in line] for line in told] == [
        [name, "cubic", f"{cell.bandwidth_mbps:g}", *numbers] for name, cell in cells
    ]


@pytest.mark.parametrize("width", [40, 60])
def test_where_a_terminal_is_narrow_the_name_of_a_stack_stays_whole(width):
    text = rendered(
        [command.CellCost(stack="cloudflare-quiche-0.24", algorithm="cubic", cell=Cell(10, 20, 0), cost=COST)], width
    )
    assert "│ cloudflare-quiche-0.24 │" in text


def test_stacks_that_could_not_be_asked_are_one_line_and_a_cell_that_failed_is_one(monkeypatch):
    def find(choice, remembers=True):
        if choice.stack == "msquic":
            raise UserError("building msquic needs cmake", "install it")
        raise building.NotBuilt(f"stack {choice.stack} is not built", "build it")

    monkeypatch.setattr(benches, "find", find)
    found = command.compute_stacks(benches.Choice(), 2)
    schema.check("bench", printed(found), "bench")
    failed = command.CellCost(stack="quinn", algorithm="cubic", cell=Cell(10, 20, 0), trouble="error: no rate")
    lines = rendered((*found.rows, failed)).splitlines()
    assert lines[0] == "cubic on quinn at 10mbps-20ms-0pct: error: no rate"
    names = [name for name in manifest.names() if name not in ("h3-client", "interop", "msquic")]
    assert lines[1:] == [f"not measured: {', '.join(names)} (not built); msquic (building msquic needs cmake)"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--stacks", "--algorithm", "bbrv1"), "--algorithm would have no effect: --stacks does not use it"),
        (("--stacks", "--stack", "quinn"), "--stack would have no effect: --stacks does not use it"),
        (("--whole", "--algorithm", "reno"), "--algorithm would have no effect: --figures does not use it"),
        (("--figures", "--stacks"), "give one of them"),
    ],
)
def test_an_option_that_would_have_no_effect_is_refused(options, words):
    done = invoke("dev", "bench", *options)
    assert (done.exit_code, words in done.output) == (2, True), done.output

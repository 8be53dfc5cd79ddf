"""`conformance matrix` and `bench --stacks`, with a room that behaves as each test says."""

import pathlib
import re

import fake_room
import pytest
import rich.console
from helpers import as_read, counted, measurement, scheme
from test_comparisons import Room

from conformance.commands import bench as benchmark, matrix
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.lab import adapter, manifest
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import overview
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import schema

#: a cell in which no deviation of ngtcp2's Reno is known
CELL = "10mbps-40ms-1pct"
#: a stack with an algorithm that no zone judges
C4 = manifest.Manifest(
    path=pathlib.Path("adapter.json"), name="c4", title="c4", program="c4", transport="udp",
    algorithms={"c4": {"called": "c4", "evidence": "it says so"}},
)  # fmt: skip


class Half(Room):
    """A room in which trials have half of the reference's utilization, except those with the seeds in `spared`."""

    def __init__(self, spared):
        super().__init__("default", {}, Outcome.OK, {})
        self._spared = spared

    def made(self, trial):
        usual = super().made(trial)
        half = {**usual.metrics, "utilization": usual.utilization / 2}
        return usual if trial.seed in self._spared else as_read(usual, metrics=half)


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """Return shown(like=..., outcome=...), which gives the text of ngtcp2's matrix, and its Markdown."""

    class Bench(benches.Bench):
        def scheme(self, algorithm):
            return scheme(algorithm, stack="ngtcp2", kernel_digest="default")

    def show(like=None, outcome=Outcome.OK, grid=None, room=None, most=20):
        def bench(choice):
            adapter = fake_room.Adapter("ngtcp2", manifest.read("linux-tcp"))
            made_up = room or Room("default", like or {}, outcome, {})
            return fake_room.bench_of(made_up, adapter, Bench, choice=choice)

        monkeypatch.setattr(benches, "find", bench)
        return table(tmp_path, grid, most)

    return show


def table(tmp_path, grid=None, most=20):
    console = rich.console.Console(record=True, width=250, markup=False)
    means = benches.Means(results=tmp_path / "r.jsonl", workers=1, notes=ConsoleNotes(console))
    found = matrix.compute(["ngtcp2"], benches.Choice(), means, grid=grid, trials=5, most_trials=most)
    assert found.exit_status == 0
    schema.check("matrix", printed(found), "matrix")
    overview.show(found, console)
    return overview.markdown(found)


@pytest.mark.slow
def test_every_algorithm_has_a_row_with_its_verdict(shown):
    text = shown()
    *rows, _, rate = text.splitlines()[2:]
    assert [line.split("|")[2].strip() for line in rows] == ["bbrv1", "bbrv2", "cubic", "reno"]
    assert rate == "False alarms in at most 1% of the runs of a row (Holm over its cells)."
    assert text.count("| conforms | 12 conforms |") == 4


@pytest.mark.slow
def test_what_is_outside_is_named_with_its_side(shown):
    text = shown(like={"cubic": "bbrv1"})
    (row,) = [line for line in text.splitlines() if "| cubic |" in line]
    assert "| violates |" in row
    assert "10mbps-100ms-4pct +" in row
    assert " more |" in row


@pytest.mark.slow
def test_a_grid_takes_the_place_of_the_smoke_cells(shown):
    rows = re.findall(r"\| conforms \| (\d+) conforms, (\d+) not judged \|", shown(grid="10mbps"))
    assert [int(judged) + int(not_judged) for judged, not_judged in rows] == [60] * 4


@pytest.mark.parametrize(
    ("most", "spared", "verdict"),
    [
        (5, {1001, 1002}, "inconclusive"),
        (20, {1001, 1002}, "violates"),
        (20, {1001, 1002, *range(11001, 11021)}, "inconclusive"),
    ],
)
def test_an_unclear_cell_gets_more_trials_and_a_violation_is_repeated(shown, most, spared, verdict):
    text = shown(grid=CELL, room=Half(spared), most=most)
    assert f"| {verdict} |" in next(line for line in text.splitlines() if "| reno |" in line)


def test_an_error_says_why(shown):
    assert "| error | 12 error: as asked" in shown(outcome=Outcome.ERROR)


def test_a_stack_that_is_not_built_says_how_to_build_it(monkeypatch, tmp_path):
    def bench(choice):
        raise UserError("stack ngtcp2 is not built", "run `conformance adapter build ngtcp2`")

    monkeypatch.setattr(benches, "find", bench)
    assert table(tmp_path).count(r"not built; run \`conformance adapter build ngtcp2\`") == 4


def test_an_algorithm_without_a_zone_is_only_measured():
    asked = matrix._plan(C4, "atc25", None, (5, 5), 1001)
    assert (asked.questions, [setting.cell for _, setting in asked.work]) == ((), [Cell(10, 20, 0)])
    asked = matrix._plan(C4, "atc25", [Cell(10, 1, 0), Cell(10, 5, 0)], (5, 5), 1001)
    assert (asked.questions, [setting.cell for _, setting in asked.work]) == ((), [Cell(10, 1, 0), Cell(10, 5, 0)])


def test_the_costs_of_a_stack_that_counts_its_calls():
    made = measurement()
    made.host["system_calls"] = 3000
    made.metrics["virtual_s"] = 20.0
    made = as_read(made, evidence={"interfaces": counted(1_500_000, 0)})
    cost = benchmark._cost([made, made])
    assert (cost.calls_a_packet, cost.wall_s, cost.start_s) == (3.0, 0.1, 0.0)


def test_manifests_and_adapters_call_an_algorithm_the_same():
    about = manifest.read("linux-tcp")
    assert about.called("bbrv2") == "bbr2 or bbr"
    assert manifest.read("ngtcp2").called("bbrv1") == "bbr"
    assert benches.Choice().client == adapter.COMMON

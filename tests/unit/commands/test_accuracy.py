"""Split paths, predicted and measured."""

import io

import fake_room
import pytest
from helpers import as_read, invoke, trial
from hypothesis import given, strategies as st
from rich.console import Console

from conformance.catalogue import documents
from conformance.commands import split_accuracy, split_measure
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.model.networks.place import Cell, end_to_end
from conformance.model.split import accuracy
from conformance.model.split.split_zone import PathCheck
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting import split_charts
from conformance.reporting.text import split
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import schema

lists = st.lists(st.floats(-2, 2), min_size=1, max_size=40)


def test_every_panel_divides_one_path():
    lossless, lossy = accuracy.panels()
    for panel, loss in ((lossless, 0), (lossy, 4)):
        assert len(panel.paths) == 25
        for segments in panel.paths.values():
            whole = end_to_end(segments)
            assert whole.bandwidth_mbps == 10
            assert whole.one_way_delay_ms in (80, 81)
            assert sum(cell.loss_pct for cell in segments) == loss
    assert lossless.paths["1+80", "30+10"] == (Cell(30, 1, 0), Cell(10, 80, 0))
    assert lossy.paths["80+1", "0+4"] == (Cell(10, 80, 0), Cell(10, 1, 4))


@pytest.mark.parametrize(("n", "at"), [(1, 0), (2, 1), (5, 2), (20, 10), (40, 20)])
def test_p50_is_the_published_one(n, at):
    """It is sorted[int(n * 50 / 100)], of 20 values the 11th smallest, as in the ATC'25 study."""
    assert accuracy.p50([float(v) for v in reversed(range(n))]) == at
    assert accuracy.p50([]) is None


def test_an_error_is_relative_to_what_was_measured_and_missing_is_missing():
    assert accuracy.relative_error(1.5, 1.2) == pytest.approx(0.25)
    assert accuracy.relative_error(None, 1.2) is None
    assert accuracy.relative_error(1.5, None) is None


@pytest.mark.slow
@given(lists, st.integers(0, 5))
def test_summaries_hold_together(errors, missing):
    found = accuracy.summary([*errors, *[None] * missing])
    assert (found.paths, found.missing) == (len(errors), missing)
    assert abs(found.bias) <= found.mean_absolute + 1e-12
    assert found.mean_absolute <= abs(found.worst) + 1e-12
    assert found.worst in errors


def test_no_errors_known_is_no_accuracy():
    assert accuracy.summary([None, None]) is None


def bench(choice=None):
    """Return a bench of linux-tcp whose measurements run() replaces."""
    return fake_room.bench_of(None, fake_room.Adapter("linux-tcp", offers=("cubic",)))


def measured(goodputs, outcome=Outcome.OK, message=None, **metrics):
    known = [{"goodput_mbps": g, **metrics} if outcome is Outcome.OK else metrics for g in goodputs]
    return [as_read(Measurement(trial=trial(), outcome=outcome, message=message, metrics=m)) for m in known]


def run(monkeypatch, tmp_path, results, proxy="splitter"):
    """Run the command with results(setting) as trials; return (exit status, output, what was to be measured)."""
    work = []

    def measure(bench, wanted, seeds, *_):
        work.extend(wanted)
        return [(key, results(key[1])) for key in wanted]

    monkeypatch.setattr(benches, "find", bench)
    monkeypatch.setattr(split_accuracy, "measure", measure)
    console = Console(width=200, file=io.StringIO())
    found = split_accuracy.compute(
        ["cubic"], benches.Choice(), benches.Means(results="", notes=ConsoleNotes(console)), proxy=proxy,
        queue_sized_by="path", trials=20, profile=None,
    )  # fmt: skip
    schema.check("split-accuracy", printed(found), "split-accuracy")
    assert list(split_charts.write(found.panels, tmp_path))
    split.show_accuracy(found, console)
    return found.exit_status, console.file.getvalue(), work


def overall(text):
    """Return the columns of the summary's last row, from the number of paths on."""
    row = next(line for line in text.splitlines() if "│ all " in line)
    return [column.strip() for column in row.split("│")[3:8]]


@pytest.mark.slow
def test_the_command_compares_paths_with_their_segments(monkeypatch, tmp_path):
    """Segments alone reach 0.6 of their rate and paths 0.5 of theirs, so predictions are 20 % too high."""

    def results(setting):
        return measured([setting.cell.bandwidth_mbps * (0.5 if setting.segments else 0.6)] * 20)

    status, text, work = run(monkeypatch, tmp_path, results)
    assert status == 0
    paths = [setting for _, setting in work if setting.segments]
    assert len(paths) == 50
    assert all(setting.network.splitters for setting in paths)
    assert len(work) - len(paths) == 35
    assert "cubic/linux-tcp/6.12.0" in text
    assert overall(text) == ["50", "0", "20.0%", "+20.0%", "+20.0%"]
    for kind in ("svg", "png"):
        assert (tmp_path / f"split-accuracy-cubic-linux-tcp-6.12.0.{kind}").stat().st_size > 1000


@pytest.mark.slow
def test_without_a_proxy_a_path_is_predicted_by_what_it_comes_to(monkeypatch, tmp_path):
    def results(setting):
        return measured([10 / (1 + setting.cell.loss_pct)] * 20)

    status, text, work = run(monkeypatch, tmp_path, results, proxy="none")
    cells = {setting.cell for _, setting in work if not setting.segments}
    assert cells == {end_to_end(segments) for panel in accuracy.panels() for segments in panel.paths.values()}
    # Here, both measured and predicted values depend only on loss.
    assert overall(text)[:4] == ["50", "0", "0.0%", "+0.0%"]
    assert status == 0


@pytest.mark.slow
def test_errors_leave_holes_and_not_zeros(monkeypatch, tmp_path):
    hole = (Cell(10, 1, 4), Cell(10, 80, 0))

    def results(setting):
        return measured([1], Outcome.ERROR, "the proxy died") if setting.segments == hole else measured([5] * 20)

    status, text, _ = run(monkeypatch, tmp_path, results)
    assert status == 3
    assert "error: cubic, 10mbps-1ms-4pct+10mbps-80ms-0pct: the proxy died" in text
    assert " none " in text
    assert overall(text) == ["50", "1", "0.0%", "+0.0%", "+0.0%"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dev", "split", "accuracy", "cubic", "--proxy", "pepsal"], "pepsal is not on PATH"),
        (["split", "measure", "cubic", "10mbps-1ms-0pct"], "is not of the form 10mbps-20ms-0pct+50mbps-60ms-1pct"),
        (["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--to-client", "; rm"], "kernel name"),
        (
            ["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--proxy", "none", "--to-client", "bbr"],
            "no proxy",
        ),
        (
            ["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--back-pressure-bytes", "1"],
            "whole number",
        ),
    ],
)
def test_mistakes_are_one_line_and_status_2(monkeypatch, arguments, words):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(benches, "find", bench)
    done = invoke(*arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_paths_those_of_the_zones_are_measured(monkeypatch):
    monkeypatch.setattr(benches, "find", bench)
    monkeypatch.setattr(
        split_measure, "measure", lambda b, work, *_: [(key, measured([5] * 3, utilization=0.5)) for key in work]
    )
    console = Console(width=200, file=io.StringIO())
    found = split_measure.compute(
        "cubic", [], benches.Choice(), benches.Means(results="", notes=ConsoleNotes(console)), proxy="splitter",
        proxy_options={}, queue_sized_by="path", overrides={}, trials=3, profile=None,
    )  # fmt: skip
    split.show_paths_measured(found, console)
    named = [row.split("│")[1].strip() for row in console.file.getvalue().splitlines() if "pct" in row]
    assert named == [check.path.id for check in documents.split_part("cubic/split") if isinstance(check, PathCheck)]


def test_measure_shows_each_path(monkeypatch):
    paths = ["10mbps-1ms-4pct+10mbps-80ms-0pct", "10mbps-80ms-0pct+20mbps-1ms-4pct"]

    def results(setting):
        if setting.segments[0].loss_pct:
            return measured([2, 3, 1], utilization=0.2)
        return measured([2, 3, 1], Outcome.TIMEOUT, "slow", utilization=0.01)

    monkeypatch.setattr(benches, "find", bench)
    monkeypatch.setattr(split_measure, "measure", lambda b, work, *_: [(key, results(key[1])) for key in work])
    console = Console(width=200, file=io.StringIO())
    found = split_measure.compute(
        "cubic", paths, benches.Choice(), benches.Means(results="", notes=ConsoleNotes(console)), proxy="none",
        proxy_options={}, queue_sized_by="segment", overrides={}, trials=3, profile=None,
    )  # fmt: skip
    split.show_paths_measured(found, console)
    schema.check("split-measure", printed(found), "split-measure")
    text = console.file.getvalue()
    assert found.exit_status == 0
    rows = [[column.strip() for column in row.split("│")[1:6]] for row in text.splitlines() if "pct" in row]
    assert rows == [
        [paths[0], "2.000", "2.000", "2.000", "0.200"], [paths[1], "< 0.100", "< 0.100", "0.100", "< 0.010"],
    ]  # fmt: skip

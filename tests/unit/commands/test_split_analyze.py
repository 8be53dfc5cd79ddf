"""`conformance split analyze`: what it refuses, what it counts, what it shows."""

import collections
import json

import helpers
import pytest
from helpers import changed, invoke, known_rates, measurements, of_trial, refusal, stored

from conformance.commands import fidelity, split_analyze
from conformance.commands.result import printed
from conformance.model.errors import UserError
from conformance.model.judging import grid
from conformance.model.judging.seeds import FRESH
from conformance.model.networks.place import Cell
from conformance.model.split import split_rates
from conformance.model.trials import grouping
from conformance.reporting.text import split as drawing
from conformance.support import schema

CELL = Cell(10, 20, 1)


def with_setting(measurements, **changes):
    return [of_trial(m, setting=changed(m.trial.setting, **changes)) for m in measurements]


def like_cubic(cells, algorithm="cubic"):
    """Return measurements limited by loss and delay: utilization is 0.9, and less if both are large."""
    made = []
    for cell in cells:
        level = min(0.9, 40 / cell.one_way_delay_ms / (10 * cell.loss_pct**0.5)) if cell.loss_pct else 0.9
        made += measurements([level] * 5, cell=cell, algorithm=algorithm)
    return made


@pytest.fixture
def results(tmp_path):
    """Return a function (name, measurements) that writes a results file and returns its path."""

    def write(name, measured):
        return stored(tmp_path / name, measured)

    return write


def analyze(*paths, target=None, **changes):
    options = {
        "chosen": split_analyze.Selection(), "grid": "10mbps", "path": None, "interpolated": False, "timeouts": "bound",
        "timeout_s": None,
    }  # fmt: skip
    options.update(changes)
    found = split_analyze.compute(paths, **options)
    schema.check("split-analyze", json.loads(json.dumps(printed(found), allow_nan=False)), "split-analyze")
    if target:
        drawing.draw(found.predictions, found.transfer_s, target)
    return helpers.shown(drawing.show, found, width=100)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda ms: with_setting(ms, transfer_s=30), "transfers of 10 s .* and of 30 s"),
        (lambda ms: with_setting(ms, profile="packets"), "mixed: profiles atc25 and packets"),
        (lambda ms: with_setting(ms, queue="fq_codel"), "profile atc25 with queue 'red' and 'fq_codel'"),
        (lambda ms: measurements([0.5], cell=CELL, kernel_digest="8" * 16), "kernels default .*6{16}.* and .*8{16}"),
        (lambda ms: measurements([0.5], cell=CELL, stack_digest="8" * 16), "mixed: stacks v1 .*5{16}.* and v1 .*8{16}"),
        (lambda ms: measurements([0.5], cell=CELL, lab_digest="8" * 16), "lab digests 7{16} and 8{16}"),
    ],
)
def test_unlike_runs_are_refused_by_what_differs(other, words):
    own = measurements([0.5], cell=CELL)
    with pytest.raises(UserError, match=words):
        grouping.by_scheme([*own, *other(own)])


def test_lengths_are_not_mixed_among_schemes_either_but_kernels_are_schemes():
    cubic = measurements([0.5], cell=CELL)
    bbr = measurements([0.5], cell=CELL, algorithm="bbrv3", kernel_digest="8" * 16, kernel_release="6.13")
    assert list(grouping.by_scheme([*cubic, *bbr])) == ["cubic/linux-tcp/6.12.0", "bbrv3/linux-tcp/6.13"]
    assert "30 s" in refusal(grouping.by_scheme, [*cubic, *with_setting(bbr, transfer_s=30)])


def test_counts_by_class_and_filter(results):
    path = results("r.jsonl", like_cubic(grid.cells("10mbps")))
    shown = analyze(path)
    lines = {line[:20].strip(): line[20:].split() for line in shown.splitlines()}
    assert lines["all paths"] == ["20", "20", "66", "60", "21", "128", "315"]
    rates = split_rates.Rates.medians(split_analyze.load([path])["cubic/linux-tcp/6.12.0"])
    made = [split_rates.predict(path, rates) for path in split_analyze.split_paths.paths(grid.cells("10mbps"))]
    expected = [c.passed for c in split_rates.count(made, split_rates.Filter(gain=3)).values()]
    assert sum(expected) > 0
    assert lines["gain > 3x"][:7] == [*map(str, expected), str(sum(expected))]
    assert "unknown: a cell" not in shown


def test_what_was_not_measured_is_unknown(results):
    cells = [cell for cell in grid.cells("10mbps") if cell != Cell(10, 100, 4)]
    shown = analyze(results("r.jsonl", like_cubic(cells)))
    (line,) = (line for line in shown.splitlines() if line.startswith("gain > 3x "))
    assert int(line.split()[-1]) > 0
    assert "unknown: a cell it needs was not measured" in shown


def test_trials_that_repeat_a_violation_are_left_out_as_in_a_report(results):
    first = measurements([0.5] * 5, cell=CELL)
    repeats = [of_trial(m, seed=m.trial.seed + FRESH) for m in measurements([0.7] * 8, cell=CELL)]
    loaded = split_analyze.load([results("repeated", [*first, *repeats])])
    assert loaded == split_analyze.load([results("first", first)])


def test_two_segment_results_are_no_cells(results):
    ours = like_cubic([CELL])
    path = results("r.jsonl", [*ours, *with_setting(ours, segments=(Cell(10, 10, 1), Cell(10, 10, 0)))])
    assert len(split_analyze.load([path])["cubic/linux-tcp/6.12.0"][CELL]) == 5


@pytest.mark.slow
def test_one_path_of_several_schemes_as_bars_and_figure(results, tmp_path):
    cells = grid.cells("10mbps")
    path = results("r.jsonl", [*like_cubic(cells), *like_cubic(cells, "reno")])
    for suffix in (".svg", ".png"):
        target = tmp_path / "new" / f"bars{suffix}"
        shown = analyze(path, path="100ms-0pct-10mbps,1ms-4pct-10mbps", target=target)
        assert target.stat().st_size > 1000
    assert shown.count("split") == 2
    assert "class I near" in shown
    assert "cubic/linux-tcp/6.12.0  split      ████████████████████████████████████     0.900" in shown


def test_off_the_grid_only_when_asked_and_with_its_error(results):
    path = results("r.jsonl", like_cubic(grid.cells("10mbps")))
    assert "unknown" in analyze(path, path="30ms-1pct-10mbps,30ms-1pct-10mbps")
    shown = analyze(path, path="30ms-1pct-10mbps,30ms-1pct-10mbps", interpolated=True)
    assert "unknown" not in shown
    assert "one_way_delay_ms" in shown
    # If delays are added exactly, the path has 101 ms, which is outside the measured cells.
    assert "unknown" in analyze(path, path="100ms-1pct-10mbps,1ms-1.5pct-10mbps", interpolated=True)


@pytest.mark.slow
def test_our_model_says_of_the_published_cells_what_was_published():
    """In figure 4 of the study, CUBIC's large gains that use the path are of class I, and BBRv1 has none above 1.5."""
    rates = collections.defaultdict(dict)
    for row, cell, utilization in fidelity.published_rows():
        if row["dataset"] == "figure4" and row["implementation"] == "linux-tcp":
            rates[row["algorithm"]][cell] = utilization * cell.bandwidth_mbps
    among = split_analyze.split_paths.paths(grid.cells("10mbps"))
    for algorithm, filter_, classes in (
        ("cubic", split_rates.Filter(3, 0.5), {"I near", "I far"}),
        ("bbrv1", split_rates.Filter(1.5), set()),
    ):
        known = known_rates(rates[algorithm])
        found = split_rates.count([split_rates.predict(path, known) for path in among], filter_)
        assert {str(c) for c, n in found.items() if n.passed} == classes
        assert not any(n.unknown for n in found.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--path", "1ms-4pct-20mbps"], "path '20mbps-1ms-4pct' is not of the form"),
        (["--path", "1ms,2ms"], "cell '1ms' is not of the form"),
        (["--grid", "15mbps"], "grid '15mbps' is not known"),
        (["--grid", "10mbps-20ms-0pct"], "has no path of two segments"),
        (["--out", "bars.pdf"], "use a name that ends in .svg or .png"),
        (["--algorithm", "vegas"], "available: cubic/linux-tcp/6.12.0 under atc25"),
        (["--transfer-s", "30"], "no matching results"),
    ],
)
def test_a_users_mistake_is_one_line(results, arguments, words):
    path = results("r.jsonl", like_cubic([CELL]))
    shown = invoke("split", "analyze", path, *arguments)
    assert shown.exit_code == 2
    assert words in shown.stderr
    assert "Traceback" not in shown.output + shown.stderr


def test_a_misspelt_metric_is_answered_with_the_one_that_was_meant():
    asked = ["zones", "derive", "cubic", "r.jsonl", "--version-text", "v", "--out", "o", "--metric"]
    for name, words in (("jain_indx", "there is no 'jain_indx'; did you mean jain_index?"), ("x", "is not one of")):
        shown = invoke(*asked, name)
        assert shown.exit_code == 2 and words in shown.stderr

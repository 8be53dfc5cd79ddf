"""What is said about results that do not conform: the cause, how many trials, how far outside."""

import io

import pytest
from helpers import measurements, measurements_of

from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting import heatmaps
from conformance.reporting.html import colours, heatmap_table, traces
from conformance.reporting.text import terminal
from conformance.support.console import Console


def shown(made):
    console = Console(file=io.StringIO(), width=200)
    terminal.show(heatmaps.all_series(made), console)
    return " ".join(console.file.getvalue().split())


def test_too_few_trials_are_said_to_be_too_few():
    assert "inconclusive at 10mbps-20ms-1pct: 0.360, permitted" in shown(measurements([0.36]))
    assert "(1 trial; at least 5 are needed" in shown(measurements([0.36]))
    assert "(4 trials; at least 5 are needed" in shown(measurements([0.36] * 4))
    assert "are needed" not in shown(measurements([0.36] * 5))


@pytest.mark.parametrize(
    ("outcome", "message"),
    [(Outcome.ERROR, "the client printed nothing"), (Outcome.UNSUPPORTED, "it has no such algorithm")],
)
def test_what_failed_or_is_not_offered_is_told_once_with_its_cause(outcome, message):
    text = shown(measurements([None] * 5, outcome=outcome, message=message))
    assert text.count(f"{outcome} at 10mbps-20ms-1pct: {message}") == 1
    assert "none, permitted" not in text


def test_cells_with_more_trials_than_others_are_counted():
    few, many = measurements([0.36] * 5), measurements([0.2] * 20, cell=Cell(10, 40, 1))
    assert "median utilization of 5 to 20 trials" in shown([*few, *many])
    assert "median utilization of 5 trials" in shown(few)


def far(values):
    (series,) = heatmaps.all_series(measurements_of("utilization", values))
    (result,) = series.utilization.results.values()
    return heatmap_table.how_far(result), result.permitted


def test_how_far_outside_is_of_the_bound_that_is_crossed():
    _, permitted = far([0.35] * 5)
    assert far([permitted.low] * 5)[0] == far([permitted.high] * 5)[0] == ""
    assert far([permitted.low * 0.75] * 5)[0] == "25 % below"
    assert far([permitted.high * 1.1] * 5)[0] == "10 % above"
    assert far([permitted.high * 2.2] * 5)[0] == "2.2 times"


@pytest.mark.parametrize("scale", [1.0, 0.01])
def test_a_bound_has_the_same_colour_in_every_cell(scale):
    low, reference, high = (scale * edge for edge in (0.2, 0.3, 0.6))
    step = [
        colours.distance_step(value, reference, low, high)
        for value in (0, low, reference, high, reference + 2 * (high - reference), scale)
    ]
    assert step == ["d0", "d5", "d10", "d15", "d20", "d20"]
    assert colours.distance_step(None, reference, low, high) == "none"


def test_a_slow_transfer_is_not_drawn_on_the_scale_of_a_fast_link():
    def goodput(share):
        times = [float(t) for t in range(100)]
        trace = {"t_s": times, "bytes_acked": [round(t * share * 10e6 / 8) for t in times]}
        return traces.panels({"median": trace}, 99.0, 10)[0]

    assert [line.style for line in goodput(0.9).lines] == ["link", "median"]
    slow = goodput(0.05)
    assert [line.style for line in slow.lines] == ["median"]
    assert (slow.top, slow.hint) == ("0.5", "the link's rate is 10 Mbit/s")


def test_groups_of_flows_that_stand_side_by_side_have_one_scale():
    flows = [{"group": group, "goodput_series_mbps": [rate, rate]} for group, rate in (("test", 2.0), ("rival", 8.0))]
    (first, second), end = traces.of_flows(flows)
    assert (first.top, second.top, end) == ("8", "8", 2.0)
    assert first.lines[0].pieces == ("250,75 750,75",)

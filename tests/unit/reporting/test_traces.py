"""Traces as drawings: numbers in result lines become points, whatever the lines hold."""

import math

import pytest
from helpers import EVIL, trace

from conformance.reporting.html import traces


def drawn(of, bandwidth_mbps=10, **others):
    everything = {"median": of, **others}
    return {p.title: p for p in traces.panels(everything, traces.end_s(list(everything.values())), bandwidth_mbps)}


def points(line):
    return [tuple(int(n) for n in pair.split(",")) for piece in line.pieces for pair in piece.split(" ")]


def test_points_are_the_columns_values():
    found = drawn({"t_s": [0.0, 5.0, 10.0], "queue_bytes": [0, 20_000, 10_000]})["Bottleneck queue"]
    assert found.top == "20"
    assert points(found.lines[0]) == [(0, 100), (500, 0), (1000, 50)]
    assert "from 0 to 20 kB, 10 at the end" in found.words


def test_times_that_no_clock_shows_are_drawn_without_harm():
    backwards = {"t_s": [0, -5], "bytes_acked": [0, 1]}
    assert traces.end_s([backwards]) == 1
    assert drawn(backwards)["Goodput"].missing
    assert drawn({"t_s": [0, 0, 0], "bytes_acked": [0, 1, 2]})["Goodput"].missing


def test_goodput_is_bytes_over_time():
    found = drawn(trace(size=12_500_000, seconds=20.0))["Goodput"]
    link, goodput = found.lines
    assert link.style == "link" and {y for _, y in points(link)} == {0}
    # 5 Mbit/s on a link of 10 Mbit/s are drawn at half of the height throughout.
    assert {y for _, y in points(goodput)} <= {49, 50, 51}


def test_without_the_kernels_word_goodput_is_not_claimed():
    found = drawn(trace(tcp=False))
    assert "Goodput" not in found
    assert "Throughput, with headers and retransmissions" in found
    assert "only Linux TCP reports" in found["Round-trip time"].missing
    assert "only Linux TCP reports" in found["Congestion window"].missing


def test_lines_from_before_a_column_existed_say_so():
    assert "not recorded" in drawn(trace(drops=False))["Losses so far"].missing
    assert "not recorded" in drawn(trace(drops=False, tcp=False))["Goodput"].missing


def test_losses_are_of_the_trial_in_front_in_all_and_by_the_queue():
    found = drawn(trace(), lowest=trace(points=10))["Losses so far"]
    assert [line.style for line in found.lines] == ["all", "queue"]
    assert found.top == "90"
    assert points(found.lines[0])[-1] == (1000, 0)
    assert points(found.lines[1])[-1] == (1000, 89)


def test_the_trial_in_front_is_drawn_last():
    found = drawn(trace(), lowest=trace(seconds=30.0))["Bottleneck queue"]
    assert [line.style for line in found.lines] == ["lowest", "median"]
    assert points(found.lines[1])[-1][0] == 667  # it ended before the other one


def test_gaps_are_gaps():
    found = drawn({"t_s": [0, 1, 2, 3, 4], "queue_bytes": [1000, None, 1000, 1000, None]})["Bottleneck queue"]
    assert [len(piece.split(" ")) for piece in found.lines[0].pieces] == [2, 2]


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"t_s": []},
        {"t_s": [0.0], "queue_bytes": [5]},
        {"t_s": "no list", "queue_bytes": {"a": 1}},
        {"t_s": [0, 1], "queue_bytes": [1, 2, 3, 4]},
        {"t_s": [0, 1, 2], "queue_bytes": [EVIL, math.nan, True], "cwnd_segments": [math.inf, 1, 2]},
        {"t_s": [EVIL, 1], "queue_bytes": [1, 2]},
        {"t_s": [1, 1, 1], "bytes_acked": [5, 4, 3], "dropped_packets": [1], "queue_dropped_packets": [1]},
    ],
)
def test_whatever_a_file_holds_only_numbers_are_drawn(broken):
    for panel in drawn(broken).values():
        assert panel.missing or all(math.isfinite(n) for line in panel.lines for at in points(line) for n in at)
        assert "<" not in panel.words + panel.top

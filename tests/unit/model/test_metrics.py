"""The table of metrics, and how values are rounded so that their order remains visible."""

import dataclasses
import itertools
import json

import pytest
from helpers import as_read, measurement, measurements, measurements_of, of_trial
from hypothesis import given, strategies as st

from conformance.catalogue import bases, documents
from conformance.model.errors import UserError
from conformance.model.metrics import table as metrics
from conformance.model.metrics.table import METRICS
from conformance.model.networks.place import Cell
from conformance.model.rounding import digits_to_tell
from conformance.support import paths


def test_every_row_is_found_by_its_own_name_and_has_columns_of_its_own():
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    assert len({metric.column for metric in metrics.tabled()}) == len(metrics.tabled())
    assert metrics.tabled()[:2] == [metrics.UTILIZATION, metrics.LOST_PCT] == list(METRICS.values())[:2]


def test_the_schema_of_zones_leaves_metrics_to_the_table():
    schema = json.loads((paths.PACKAGE / "schemas" / "zone.json").read_text())
    assert "enum" not in schema["properties"]["metric"]


def test_an_unknown_metric_is_refused_with_those_there_are():
    with pytest.raises(
        UserError, match="'speed' is not one of the metrics; choose one of utilization, lost_pct, queue"
    ):
        metrics.named("speed")
    assert metrics.named("lost_pct") is metrics.LOST_PCT


@pytest.mark.parametrize("name", [metric.name for metric in metrics.tabled()])
def test_each_is_read_from_a_measurement_or_not_seen(name):
    (seen,) = measurements_of(name, [0.25])
    assert METRICS[name].value(seen) == pytest.approx(0.25)
    nothing = as_read(measurement(), metrics={}, evidence={})
    assert METRICS[name].value(nothing) is None


def looked(times_s, dropped, completion_s=60.0):
    trace = {"t_s": times_s, "queue_dropped_packets": dropped}
    return as_read(measurement(), metrics={"completion_s": completion_s}, evidence={"trace": trace})


def test_loss_events_are_counted_from_the_second_to_the_last():
    """There is one look a second. The first event, in which the queue drops for a while, is slow start's."""
    dropped = [0, 3, 9, 9, *itertools.chain.from_iterable([n, n + 1, n + 1, n + 1] for n in range(9, 15))]
    events = looked([float(t) for t in range(len(dropped))], dropped)
    assert METRICS["loss_events_per_min"].value(events) == pytest.approx(60 / 4)


def test_an_event_that_two_looks_see_part_of_is_one():
    """There is an event every four looks; one look sees the second event begin, and the next sees it end."""
    once, twice = [1, 0, 0, 0], [1, 1, 0, 0]
    dropped = [0, *itertools.accumulate([*once, *twice, *once, *once, *once, *once])]
    events = looked([float(t) for t in range(len(dropped))], dropped)
    assert METRICS["loss_events_per_min"].value(events) == pytest.approx(60 / 4)


def test_few_events_are_counted_over_the_transfer():
    """Three events in start-up would otherwise count as three a second."""
    few = looked([0.0, 0.1, 0.5, 0.6, 1.0, 1.1, 120.0], [0, 1, 1, 2, 2, 3, 3], completion_s=120.0)
    assert METRICS["loss_events_per_min"].value(few) == pytest.approx(1.0)
    assert METRICS["loss_events_per_min"].value(looked([0.0, 0.1], [0, 0])) == 0.0


@given(st.lists(st.sampled_from([None, 0, 0, 0, 1, 2]), max_size=60), st.integers(1, 100))
def test_what_is_kept_of_a_trace_has_the_same_loss_events(grown, rtts):
    """Looks are a second or less apart; None stands for a look that failed."""
    total = itertools.accumulate(n or 0 for n in grown)
    dropped = [None if n is None else so_far for n, so_far in zip(grown, total, strict=True)]
    whole = looked([at * rtts / 100 for at in range(len(grown))], dropped)
    kept = next((link["queue_drops"] for link in whole.links if "queue_drops" in link), None)
    metric = METRICS["loss_events_per_min"]
    if kept is None:
        assert metric.value(whole) is None
        return
    of_queue = {"t_s": [t_s for t_s, _ in kept], "queue_dropped_packets": [dropped for _, dropped in kept]}
    assert metric.value(as_read(whole, evidence={"queue_drops": of_queue})) == metric.value(whole)
    all_looks = [[at * rtts / 100, n] for at, n in enumerate(dropped) if n is not None]
    links = [{**link, "queue_drops": all_looks} if "queue_drops" in link else link for link in whole.links]
    assert metric.value(dataclasses.replace(whole, links=links)) == metric.value(whole)


def test_a_queue_that_nobody_looked_at_tells_no_loss_events():
    assert METRICS["loss_events_per_min"].value(looked([0.0, 1.0, 2.0], [None, None, None])) is None
    assert METRICS["loss_events_per_min"].value(measurement()) is None


@pytest.mark.parametrize(
    ("name", "words"), [("utilization", "0.46"), ("lost_pct", "0.5 %"), ("transfer_rtts", "0.5 round trips")]
)
def test_values_are_shown_with_their_unit(name, words):
    assert METRICS[name].text(0.456) == words
    assert METRICS[name].text(None) == "none"


def test_an_interval_ends_where_no_value_can_be():
    assert metrics.UTILIZATION.clamped(-0.1, 1.2) == (0.0, 1.0)
    assert METRICS["queue_mean_bdp"].clamped(-0.1, 1.2) == (0.0, 1.2)
    assert metrics.LOST_PCT.label == "lost, %"


def test_a_value_outside_is_seen_to_be_outside():
    """A measured 0.06 beside a permitted 0.06 to 0.10 would contradict "below the zone"."""
    assert digits_to_tell([0.0564], 0.058, 0.095, 2) == 3
    assert digits_to_tell([0.0336, 0.0331, 0.0339], 0.034, 0.060, 3) == 4
    assert digits_to_tell([0.0581], 0.058, 0.095, 2) == 2, "inside: equal when rounded is no contradiction"
    assert digits_to_tell([0.5], 0.058, 0.095, 2) == 2
    assert digits_to_tell([0.058 - 1e-12], 0.058, 0.095, 2) == 8, "no matter of rounding"
    assert digits_to_tell([], 0.058, 0.095, 2) == 2


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=4), st.integers(0, 10**6), st.integers(0, 10**6))
def test_rounded_values_lie_on_the_side_of_the_bounds_where_they_are(values, one, other):
    low, high = sorted((one / 10**6, other / 10**6))
    values = [value / 10**6 for value in values]
    digits = digits_to_tell(values, low, high, 2)
    assert 2 <= digits <= 6
    for value in values:
        shown, least, most = (float(f"{v:.{digits}f}") for v in (value, low, high))
        assert (shown < least) == (value < low)
        assert (shown > most) == (value > high)


def queue(dev="to_client", **counts):
    return {"kind": "fq_codel", "dev": dev, "handle": "10:", "root": True, "packets": 1000, **counts}


@pytest.mark.parametrize(
    ("queues", "marked"),
    [
        ([queue(ecn_mark=30), queue("to_server", ecn_mark=500)], 3.0),
        ([{**queue(), "kind": "cake", "tins": [{"ecn_mark": 5}]}], 0.5),
        ([queue(ecn_mark=0, ce_mark=0)], 0.0),
        ([queue(ecn_mark=0, ce_mark=4, options={"ecn": False, "ce_threshold": 242})], 0.4),
        ([queue(ecn_mark=3, ce_mark=4, options={"ecn": True, "ce_threshold": 242})], None),
        ([{**queue(), "kind": "bfifo"}], 0.0),
        ([], None),
    ],
)
def test_marks_of_a_lone_transfer_are_read_from_its_bottleneck(queues, marked):
    seen = as_read(measurement(), evidence={"qdiscs": queues})
    assert METRICS["marked_pct"].value(seen) == marked


@pytest.mark.parametrize(("client_mbps", "server_mbps", "marked_pct"), [(10, 20, 0.0), (20, 10, 3.7), (10, 10, 3.7)])
def test_the_bottleneck_of_two_links_is_the_slower_one(client_mbps, server_mbps, marked_pct):
    path = documents.path("atc25", (Cell(client_mbps, 20, 0), Cell(server_mbps, 5, 0)))
    evidence = {"qdiscs": [queue(ecn_mark=0), queue("down_to_router", ecn_mark=37)]}
    seen = as_read(of_trial(measurement(), setting=path), evidence=evidence)
    assert METRICS["marked_pct"].value(seen) == pytest.approx(marked_pct)


def test_a_path_without_delay_has_no_round_trips_to_count_in():
    (m,) = measurements([0.5], cell=Cell(10, 0, 1))
    m = as_read(m, metrics={**m.metrics, "queue_mean_bytes": 1000, "handshake_s": 0.1, "completion_s": 1})
    assert METRICS["transfer_rtts"].value(m) is None and METRICS["queue_mean_bdp"].value(m) is None
    assert bases.played_bases("reno", documents.profile("packets", Cell(10, 0, 1))) is None

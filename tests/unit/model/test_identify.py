"""Identification is right or inconclusive, and never rests on half of the evidence."""

import dataclasses

import pytest
from helpers import as_read, invoke, measurements, zone

from conformance.model.networks.place import Cell
from conformance.model.studies import identify
from conformance.model.trials.trial import Outcome

CELLS = [Cell(10, d, 0) for d in range(1, 11)]


def zones(algorithm, low, high):
    return [zone(low, high, cell, id=f"{algorithm}/identify-utilization", algorithm=algorithm) for cell in CELLS]


ZONES = [*zones("cubic", 0.4, 0.6), *zones("reno", 0.1, 0.3), *zones("bbrv1", 0.8, 1.0)]


def seen(*values):
    return {cell: measurements([value] * 3, cell=cell) for cell, value in zip(CELLS, values, strict=False)}


def test_all_inside_one_zone_is_that_algorithm():
    scores = identify.scores(ZONES, seen(*[0.5] * 10))
    assert [(s.algorithm, s.share) for s in scores] == [("cubic", 1.0), ("bbrv1", 0.0), ("reno", 0.0)]
    assert identify.conclusion(scores) == "cubic"
    tenth, fifth = (identify.scores(ZONES, seen(*[0.5] * inside, *[0.7] * (10 - inside))) for inside in (9, 8))
    assert (identify.conclusion(tenth), identify.conclusion(fifth)) == ("cubic", None)
    both = [*ZONES, *zones("vegas", 0.45, 0.7)]
    assert identify.conclusion(identify.scores(both, seen(*[0.5] * 10))) is None


def test_a_sender_with_small_packets_may_have_less_where_a_document_says_so():
    small = [
        dataclasses.replace(one, intervals={cell: dataclasses.replace(of, small_packets=0.8)})
        for one in ZONES
        for cell, of in one.intervals.items()
    ]
    counted = {"server": {}, "client": {"eth0": {"rx_bytes": 0, "rx_packets": 12_500_000 / 1200}}}
    made = {
        cell: [as_read(m, evidence={**m.evidence, "interfaces": counted}) for m in own]
        for cell, own in seen(*[0.34] * 10).items()
    }
    assert identify.conclusion(identify.scores(small, made)) == "cubic"
    assert identify.conclusion(identify.scores(small, seen(*[0.34] * 10))) is None


def test_equals_are_all_nearest_and_the_one_it_is_called_comes_first():
    tied = [*zones("cubic", 0.4, 0.6), *zones("reno", 0.4, 0.6), *zones("bbrv1", 0.4, 0.6), *zones("vegas", 0.8, 1)]
    for called, names in (("reno", ["reno", "bbrv1", "cubic"]), ("bbr", ["bbrv1", "cubic", "reno"])):
        scores = identify.scores(tied, seen(*[0.5] * 7, *[0.7] * 3), called)
        assert [score.algorithm for score in identify.nearest(scores)] == names


@pytest.mark.parametrize(("inside", "names"), [(8, ["cubic"]), (7, ["cubic", "reno"])])
def test_a_lead_of_less_than_two_features_makes_nobody_the_nearest(inside, names):
    # Six medians are inside both zones, and one or two more are inside that of CUBIC alone.
    both = [*zones("cubic", 0.4, 0.6), *zones("reno", 0.4, 0.55)]
    found = seen(*[0.5] * 6, *[0.58] * (inside - 6), *[0.7] * (10 - inside))
    assert [score.algorithm for score in identify.nearest(identify.scores(both, found))] == names


def test_misses_say_what_was_measured_and_permitted():
    (miss,) = identify.scores(zones("cubic", 0.4, 0.6), seen(*[0.5] * 9, 0.7))[0].misses
    assert (miss.cell, miss.value, miss.low, miss.high) == (CELLS[9], 0.7, 0.4, 0.6)


def test_too_little_seen_concludes_nothing():
    found = seen(*[0.5] * 10)
    for cell in CELLS[:3]:
        del found[cell]
    scores = identify.scores(ZONES, found)
    assert (scores[0].algorithm, scores[0].visible, scores[0].features, scores[0].share) == ("cubic", 7, 10, 1.0)
    assert identify.conclusion(scores) is None
    assert identify.conclusion(identify.scores(ZONES, {})) is None


def test_a_timeout_is_a_miss_where_even_its_bound_is_too_low_and_else_not_seen():
    found = {cell: measurements([0.35] * 3, cell=cell, outcome=Outcome.TIMEOUT) for cell in CELLS}
    by_name = {score.algorithm: score for score in identify.scores(ZONES, found)}
    assert (by_name["cubic"].visible, len(by_name["cubic"].misses)) == (10, 10)
    assert (by_name["reno"].visible, len(by_name["reno"].misses)) == (0, 0)
    assert identify.conclusion(list(by_name.values())) is None


@pytest.mark.parametrize(
    ("called", "found", "contradicted"),
    [
        ("cubic", "cubic", False),
        ("cubic", "reno", True),
        ("bbr", "bbrv3", False),
        ("bbr", "cubic", True),
        ("bbrv3", "bbrv1", True),
        ("bbrv4", "bbrv1", True),
        ("prague", "cubic", False),  # no zone, so nothing is claimed that could be denied
    ],
)
def test_names_and_versions(called, found, contradicted):
    assert identify.contradicts(called, found, ["cubic", "reno", "bbrv1", "bbrv3"]) is contradicted


@pytest.mark.slow
def test_run_judges_by_every_zone_of_the_settings(tmp_path, monkeypatch):
    import fake_room

    monkeypatch.chdir(tmp_path)
    for kind, status, words in (("good", 0, "1 conforms"), ("bad", 1, "1 violates")):
        fake_room.install(kind)
        for options, zones in (
            (("--grid", "10mbps-20ms-4pct"), ("heatmap", "loss")),
            (("--grid", "10mbps-50ms-0pct", "--profile", "identify"), ("identify-utilization", "identify-queue")),
            (("--grid", "10mbps-50ms-0pct", "--profile", "startup"), ("startup",)),
        ):
            done = invoke("run", "cubic", *options, "--results", f"{kind}.jsonl")
            assert done.exit_code == status, done.output
            for name in zones:
                assert f"zone cubic/{name}: {words}" in " ".join(done.output.split())
            assert done.output.count("zone cubic/") == len(zones)


@pytest.mark.parametrize(
    ("features", "visible", "misses", "name"),
    [
        (1, 1, (0, 1), None),
        (7, 7, (0, 7), None),
        (8, 8, (0, 8), "cubic"),
        (12, 12, (0, 2), "cubic"),
        (12, 12, (1, 2), None),
        (8, 8, (0, 1), None),
        (20, 20, (1, 4), "cubic"),  # a lead of just enough, whatever its fractions add up to
        (20, 20, (1, 3), None),
        (10, 6, (0, 1), None),  # a lead of more than fifteen points, but of less than two features
    ],
)
def test_few_features_or_a_lead_of_fewer_than_two_name_nobody(features, visible, misses, name):
    miss = identify.Miss(zone_id="cubic/heatmap", metric="utilization", cell=CELLS[0], value=0.0, low=0.4, high=0.6)
    best, other = (
        identify.IdentifyScore(algorithm=algorithm, visible=looks, features=features, misses=(miss,) * count)
        for algorithm, looks, count in zip(("cubic", "reno"), (features, visible), misses, strict=True)
    )
    assert visible == features or best.share - other.share > identify.LEAD
    assert identify.conclusion([best, other]) == name

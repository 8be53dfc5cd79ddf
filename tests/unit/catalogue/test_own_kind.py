"""Goodput of others beside their own kind: found in trials, kept in zones of harm; harm is relative to it."""

import dataclasses
import json

import helpers
import pytest

from conformance.catalogue import baseline, derive, documents, own_kind, scenarios
from conformance.model.errors import UserError
from conformance.model.judging import zone as zones
from conformance.model.metrics import group_metrics

SCENARIO = scenarios.find("coexistence")
BESIDE_CUBIC = SCENARIO.setting(SCENARIO.parse("buffer_bdp=2"))
#: a setting that no shipped zone has, so a trial's others count as having an equal share there, whatever the harm
ELSEWHERE = SCENARIO.setting(SCENARIO.parse("buffer_bdp=3"))


def trials(algorithm, mbps, setting=ELSEWHERE, n=20, rival="cubic", name=None, **scheme):
    """Return trials in which the other flow has `mbps` while both run."""
    made = []
    for seed in range(1, n + 1):
        trial = helpers.trial_at(setting, seed, dataclasses.replace(helpers.scheme(algorithm), **scheme))
        m = helpers.shared_measurement(trial)
        flows = [flow if flow["judged"] else flow | {"goodput_series_mbps": [mbps] * 10} for flow in m.flows]
        names = {"test": {"name": name or algorithm}, "other": {"name": rival}}
        made.append(dataclasses.replace(m, flows=tuple(flows), evidence={"congestion_control": names}))
    return made


def derived(*measurements, algorithm="reno", **changes):
    return derive.derive(
        [m for some in measurements for m in some], algorithm, "A", "harm_pct", "coexistence", "coexistence-harm",
        **changes,
    )  # fmt: skip


@pytest.mark.slow
def test_harm_is_against_what_the_others_kind_has_in_the_same_network():
    document = derived(trials("cubic", 4.0), trials("reno", 3.0))
    (entry,) = document["points"]
    assert entry["own_kind"] == {
        "scheme": helpers.scheme("cubic").id, "kernel_digest": helpers.scheme("cubic").kernel_digest,
        "trials": 20, "mbps": 4.0,
    }  # fmt: skip
    assert set(entry["bases"][0]["values"]) == {25.0}
    zone = zones.from_json(document, "test")
    assert zone.value(trials("reno", 2.0)[0]) == 50
    assert zone.value(trials("reno", 2.0, setting=BESIDE_CUBIC)[0]) is None  # another point than the zone's
    assert json.loads(json.dumps(zone.own_kind[zone.places[0]].to_json())) == entry["own_kind"]


def test_flows_are_of_one_kind_by_the_kernels_name():
    """Linux calls BBRv1 bbr."""
    of_bbr = trials("bbrv1", 5.0, rival="bbr", name="bbr")
    (entry,) = derived(of_bbr, trials("reno", 3.0, rival="bbr"))["points"]
    assert entry["own_kind"]["mbps"] == 5.0


@pytest.mark.parametrize(
    "others",
    [
        [],
        trials("cubic", 4.0, n=4),  # too few
        trials("cubic", 4.0, setting=BESIDE_CUBIC),  # in another network
        trials("cubic", 4.0, kernel_digest="1" * 16),  # on another kernel
        trials("bbrv1", 4.0, name="bbr"),  # not of one kind
        helpers.measurements([0.5] * 20, algorithm="cubic"),  # of one flow
        [dataclasses.replace(m, evidence={"congestion_control": {"test": None}}) for m in trials("cubic", 4.0)],
    ],
)
def test_without_the_others_kind_there_is_no_zone_of_harm(others):
    with pytest.raises(UserError, match="the goodput of the other flows beside their own kind is not known") as error:
        derived(others, trials("reno", 3.0))
    assert "--algorithm cubic" in str(error.value)


def test_a_zone_of_harm_without_it_is_refused():
    document = derived(trials("cubic", 4.0), trials("reno", 3.0))
    del document["points"][0]["own_kind"]
    with pytest.raises(UserError, match=r"/points/0: own_kind is missing in point .*derive the zone again"):
        zones.from_json(document, "test")


def test_zones_that_ship_say_it_of_each_of_their_points():
    zone = documents.zone_of("cubic", "coexistence-harm")
    assert set(zone.own_kind) == set(zone.places)
    beside = own_kind.known(BESIDE_CUBIC, "cubic")
    assert beside is not None and 0 < beside.mbps < 10
    (one,) = trials("cubic", beside.mbps / 2, setting=BESIDE_CUBIC, n=1)
    assert own_kind.value(one, "harm_pct") == pytest.approx(50) == zone.value(one)
    assert own_kind.value(one, "share") == one.value("share")
    assert own_kind.known(ELSEWHERE) is None and own_kind.value(trials("cubic", 1.0)[0], "harm_pct") is None


@pytest.mark.slow
def test_points_that_only_another_implementation_ran_are_left_out():
    own, there = [*trials("cubic", 4.0), *trials("reno", 3.0)], trials("reno", 3.2, stack="other")
    elsewhere = trials("reno", 3.2, setting=BESIDE_CUBIC, stack="other")
    assert derived(own, beside=[[*there, *elsewhere]]) == derived(own, beside=[there])
    with pytest.raises(UserError, match="trials of another implementation are at no point of reno's reference"):
        derived(own, beside=[elsewhere])


def test_a_baseline_is_against_what_zones_that_ship_say():
    beside = own_kind.known(BESIDE_CUBIC, "cubic")
    document = derived(trials("cubic", 0.9 * beside.mbps, setting=BESIDE_CUBIC), algorithm="cubic", baseline=True)
    (entry,) = document["points"]
    assert entry["own_kind"] == beside.to_json()
    assert entry["bases"][0]["values"] == pytest.approx([10] * 20, abs=1e-3)


def test_points_of_no_zone_have_no_baseline_of_harm():
    together = SCENARIO.setting(SCENARIO.parse("test_at_s=0,other_at_s=0"))
    made = dict(baseline.zones_of(trials("cubic", 4.0, setting=together), "atc25"))
    assert "coexistence-share" in made and "coexistence-harm" not in made


def test_a_baseline_in_a_point_of_no_zone_is_to_be_measured_again():
    with pytest.raises(UserError, match=r"no zone has this point .*: measure the baseline again"):
        derived(trials("cubic", 4.0, setting=ELSEWHERE), algorithm="cubic", baseline=True)


def test_what_others_have_is_the_mean_while_all_run():
    assert group_metrics.others_mbps(trials("reno", 3.0)[0]) == 3.0

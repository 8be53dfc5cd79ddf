"""`conformance dev zones margins --record` keeps entries that the results do not cover."""

import dataclasses
import json

import helpers
import pytest

from conformance.catalogue import kept_margins, scenarios
from conformance.commands import zones
from conformance.commands.result import printed
from conformance.model.networks.place import Point
from conformance.model.trials.trial import Measurement, Outcome
from conformance.results import store
from conformance.support import paths


@pytest.fixture
def results(tmp_path):
    """Write trials of two honest stacks with two flows, which are less fair than the reference's; return their path."""
    kept = store.Store(tmp_path / "results.jsonl")
    setting = scenarios.setting("fairness", Point((("flows", 2),)))
    for stack in ("quinn", "s2n-quic"):
        scheme = helpers.scheme("cubic", stack=stack)
        for seed in range(1, 6):
            trial = helpers.trial_at(setting, seed, scheme)
            kept.add(helpers.shared_measurement(trial, {"jain_index": 0.5}))
    return kept.path


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Copy zones/margins.json and add a kind that the zone no longer has; return (its zones, the copy's path)."""
    document = json.loads(kept_margins.path().read_text())
    document["zones"]["cubic/fairness-jain"]["flows=99"] = document["zones"]["cubic/fairness-jain"]["flows=2"]
    copy = tmp_path / "margins.json"
    copy.write_text(json.dumps(document))
    monkeypatch.setattr(kept_margins, "path", lambda: copy)
    return document["zones"], copy


def test_points_that_were_not_measured_keep_their_margin(results, kept):
    before, copy = kept
    found = zones.margins([results], record=True)
    assert found.path == copy
    after = json.loads(copy.read_text())["zones"]
    jain = after["cubic/fairness-jain"]
    assert jain["flows=2"]["relative"] > before["cubic/fairness-jain"]["flows=2"]["relative"]
    assert jain["flows=2"]["implementations"] == ["quinn", "s2n-quic"]
    assert {kind: jain[kind] for kind in ("flows=4", "flows=8")} == {
        kind: before["cubic/fairness-jain"][kind] for kind in ("flows=4", "flows=8")
    }
    assert "flows=99" not in jain
    assert after["cubic/heatmap-packets"] == before["cubic/heatmap-packets"]


def test_without_record_nothing_is_kept(results, kept):
    before, copy = kept
    assert zones.margins([results]).path is None
    assert json.loads(copy.read_text())["zones"] == before


def test_a_trial_in_two_files_counts_once(results, kept, tmp_path):
    more = helpers.stored(tmp_path / "copy.jsonl", store.read(results)[:3])
    assert printed(zones.margins([results, more])) == printed(zones.margins([results]))


def test_where_a_trial_failed_no_margin_follows_from_the_others(results, kept):
    setting = scenarios.setting("fairness", Point((("flows", 2),)))
    failed = helpers.trial_at(setting, 6, helpers.scheme("cubic", stack="quinn"))
    store.Store(results).add(Measurement(trial=failed, outcome=Outcome.FAILED))
    assert "contain none of the stacks" in helpers.refusal(zones.margins, [results])


def test_trials_of_two_builds_are_not_pooled(results, kept, tmp_path):
    more = store.Store(tmp_path / "later.jsonl")
    for m in store.read(results):
        scheme = dataclasses.replace(m.trial.scheme, stack_digest="9" * 16)
        more.add(helpers.of_trial(m, scheme=scheme))
    assert "results of quinn's cubic are from runs that differ" in helpers.refusal(zones.margins, [results, more.path])


@pytest.mark.slow
def test_of_the_published_lines_only_those_that_the_page_names_ask_for_other_margins():
    """Margins stay when lines are published anew: docs/findings-zones.md says where they would be others, and why."""
    kept = kept_margins.load()
    names = {name for by_stack in kept.honest.values() for name in by_stack}
    lines = paths.data("reports", "published")
    found = zones.margins(lines / f"{name}.jsonl.xz" for name in sorted({*names, *kept.transport.stacks}))
    asked = {
        (zone, spread.kind): (kept.zones[zone][spread.kind].relative, spread.relative)
        for zone, of_zone in found.zones.items()
        for spread in of_zone.values()
    }
    assert {at: pair for at, pair in asked.items() if pair[0] != pytest.approx(pair[1])} == {
        ("reno/loss-packets", "10mbps-20ms-0pct"): (0.12, 0.27),
        ("reno/loss-packets", "10mbps-100ms-0pct"): (0.61, 0.76),
    }
    of_zone = kept.transport.zones["bbrv3/heatmap-packets"]
    assert {kind: round(of.factor, 3) for kind, of in found.transport.items()} == {
        kind: of.factor for kind, of in of_zone.items()
    }

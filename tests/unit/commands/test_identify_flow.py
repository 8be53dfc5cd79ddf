"""`identify ALGORITHM POINT` names an algorithm by enough features that can be read there, and never by fewer."""

import dataclasses
import json

import numpy
import pytest
import rich.console
import senders
from helpers import shown

from conformance.commands import identify, tracing
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.model.diagnosis import feature_table, flow, ranking
from conformance.model.errors import UserError
from conformance.model.studies.identify import LEAST_FEATURES
from conformance.reporting.text import studies
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import paths

FEATURES = {feature.id: feature for feature in feature_table.FEATURES}
#: {algorithm: readings of Linux's own}, as they were recorded
REFERENCES = {
    about["name"]: {
        FEATURES[name]: ranking.Reading(**numbers, sightings=()) for name, numbers in about["readings"].items()
    }
    for about in json.loads((paths.PACKAGE.parent / "mutants" / "why.json").read_text())
    if "-" not in about["name"]
}
STEADY = "10mbps-40ms-0pct"


def constant(mbps, seconds, loss=0.0, burst=1, seed=1):
    """Return the Flow of a sender that sends bursts at one rate, whatever is lost, through a queue of one BDP."""
    chance, full, one_way_s, link = numpy.random.default_rng(seed), 1514, 0.04, 1.25e6
    packets = numpy.arange(int(mbps * 1e6 / 8 / full * seconds))
    sent_s = packets // burst * burst * full * 8 / (mbps * 1e6) + packets % burst * 1e-6
    out_s, free_s = numpy.full(len(sent_s), numpy.nan), 0.0
    for at, second in enumerate(sent_s):
        waits_s = max(free_s - second, 0)
        if chance.random() >= loss and waits_s <= 2 * one_way_s:
            free_s = second + waits_s + full / link
            out_s[at] = free_s + one_way_s
    known_s = out_s[~numpy.isnan(out_s)] + one_way_s
    return flow.of_arrays(
        sent_s, numpy.full(len(sent_s), full), out_s, known_s, numpy.full(len(known_s), 66),
        forward_s=one_way_s, back_s=one_way_s, bytes_per_s=link, header_bytes=66,
    )  # fmt: skip


@pytest.fixture
def named(monkeypatch):
    """Return a function that identifies a stack by its readings, beside what was recorded of Linux's algorithms."""

    def identified(called, ours, point=STEADY):
        def traced_all(schemes, plans, *_, under, **__):
            return {
                role: tracing.Traced(scheme=bench.scheme(algorithm), flows=flows, problems=[], under=under[role])
                for role, (bench, algorithm) in schemes.items()
                for flows in [{role: {}} if role in ("", *REFERENCES) else {}]
            }

        monkeypatch.setattr(tracing, "traced_all", traced_all)
        monkeypatch.setattr(tracing, "why_not", lambda bench, algorithm: None)
        monkeypatch.setattr(ranking, "readings", lambda flows: {"": ours, **REFERENCES}[next(iter(flows))])
        means = benches.Means(results="", workers=1, notes=ConsoleNotes(rich.console.Console(record=True)))
        return identify.of_flow(
            called, benches.Choice(), means, point=point, profile="identify", flow=None, trials=1, first_seed=1
        )

    return identified


def read(cell, flow):
    return ranking.readings({cell: {1: flow}})


@pytest.mark.parametrize("algorithm", REFERENCES)
def test_whoever_behaves_as_a_recorded_reference_is_named(named, algorithm):
    found = named("cubic", REFERENCES[algorithm])
    assert found.conclusion == algorithm
    assert found.exit_status is (ExitStatus.DONE if algorithm == "cubic" else ExitStatus.VIOLATES)
    assert found.scores[0].visible == found.scores[0].features >= LEAST_FEATURES


def test_a_name_of_which_nothing_is_known_is_not_as_it_behaves(named, monkeypatch):
    """A COPA that behaves like CUBIC ended with 0, and an honest BBRv3 whose kernel is not built with 1."""
    found = dataclasses.replace(named("cubic", REFERENCES["cubic"]), called="copa")
    assert (found.conclusion, found.unchecked, found.exit_status) == ("cubic", True, ExitStatus.UNKNOWN)
    monkeypatch.delitem(REFERENCES, "bbrv3")
    found = named("bbrv3", REFERENCES["bbrv1"])
    assert found.conclusion == "bbrv1" and "bbrv3" in found.not_compared
    assert not found.contradicted and found.exit_status is ExitStatus.UNKNOWN
    text = shown(studies.show_identified, found)
    assert "so that the name is not checked" in text and "epoch_s-clean 0.323, permitted 8.357..8.357" in text


def test_a_simulated_reno_is_named(named):
    found = read("clean", senders.flow(senders.Sender(packets=25000, ssthresh=1e9), one_way_s=0.04, queue_packets=66))
    assert named("reno", found).conclusion == "reno"


@pytest.mark.parametrize("loss_pct", [0.3, 3, 6])
def test_points_whose_traces_show_too_little_are_refused(named, loss_pct):
    with pytest.raises(UserError, match=r"naming an algorithm takes 8; choose a point without random loss"):
        named("cubic", {}, f"10mbps-20ms-{loss_pct}pct")


@pytest.mark.parametrize(
    ("cell", "sender"), [("heavy", (5, 5, 0.06)), ("many", (3, 0.4, 0.03)), ("few", (9, 20, 0.003, 10))]
)
def test_senders_at_a_constant_rate_are_nobody_by_a_few_features_with_loss(monkeypatch, cell, sender):
    """They had all features of BBRv2 that both traces showed: one to three."""
    ours, scores = read(cell, constant(*sender)), []
    for algorithm, theirs in REFERENCES.items():
        monkeypatch.setattr(ranking, "readings", lambda flows, theirs=theirs: theirs)
        reference = tracing.Traced(scheme=benches.find(benches.Choice()).scheme("cubic"), flows={}, problems=[])
        setting = tracing.settings()[cell]
        scores.append(identify._alike(algorithm, cell, setting, ours, reference))
    scores.sort(key=lambda score: -score.share)
    assert scores[0].share == 1
    assert identify.identify_model.conclusion(scores) is None


@pytest.mark.parametrize("seconds", [0.4, 3, 20])
@pytest.mark.parametrize("mbps", [3, 9, 11])
def test_senders_at_a_constant_rate_are_nobody_without_loss(named, mbps, seconds):
    assert named("cubic", read("clean", constant(mbps, seconds))).conclusion is None


def test_what_a_short_trace_does_not_show_counts_as_not_seen(named):
    kept = [FEATURES[f"{name}-clean"] for name in ("initial_window", "start_up_growth", "start_up_time", "queue_mean")]
    found = named("cubic", {feature: REFERENCES["cubic"][feature] for feature in kept})
    assert {score.visible for score in found.scores} == {4}
    assert {score.algorithm: score.features for score in found.scores} == {
        "bbrv1": 15, "bbrv2": 15, "bbrv3": 15, "cubic": 12, "reno": 12
    }  # fmt: skip
    assert found.conclusion is None


def test_only_cells_without_random_loss_can_name_an_algorithm():
    most = {
        cell: max(len(feature_table.readable(cell, algorithm)) for algorithm in REFERENCES)
        for cell in feature_table.CELLS
    }
    assert [cell for cell, features in most.items() if features >= LEAST_FEATURES] == ["clean"]
    seen = {
        algorithm: sum(feature in read for feature in feature_table.readable("clean", algorithm))
        for algorithm, read in REFERENCES.items()
    }
    assert (min(seen.values()), max(seen.values()), most["few"]) == (12, 15, 6)

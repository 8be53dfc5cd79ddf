"""`cross`, `drift`, `identify` and `identify-check`: from arguments to exit statuses, with a made-up room."""

import dataclasses
import functools
import random

import pytest
import rich.console
from helpers import measurements_of, scheme

from conformance.catalogue import documents
from conformance.commands import cross, drift, identify
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model.trial import Outcome


class Room:
    """Every algorithm behaves as its own zones' references do, or as `like` says another's do."""

    def __init__(self, kernel, like, outcome, shift):
        self.kernel, self.like, self.outcome, self.shift = kernel, like, outcome, shift

    def run(self, adapter, batches, cancelled):
        for trial in (trial for trials in batches for trial in trials):
            algorithm = self.like.get(trial.scheme.algorithm, trial.scheme.algorithm)
            made = dataclasses.replace(made_like(algorithm, trial.setting), trial=trial)
            if self.outcome is not Outcome.OK:
                made = dataclasses.replace(made, outcome=self.outcome, message="as asked", metrics={}, evidence={})
            elif self.kernel in self.shift:
                rng = random.Random(trial.seed)
                value = made.utilization * self.shift[self.kernel] * rng.uniform(0.99, 1.01)
                made = dataclasses.replace(made, metrics={**made.metrics, "utilization": value})
            yield made


@functools.cache
def zones():
    return (*documents.all_zones("heatmap"), *documents.all_zones("loss"), *documents.all_zones("identify-*"))


@functools.cache
def made_like(algorithm, setting):
    """A measurement with the reference's median of every metric that a zone of this algorithm is about."""
    merged = None
    for zone in zones():
        if zone.algorithm == algorithm and zone.profile == setting.profile and setting.cell in zone.intervals:
            median = zone.intervals[setting.cell].basis["median"]
            (m,) = measurements_of(zone.metric, [median], cell=setting.cell)
            if merged is None:
                merged = dataclasses.replace(m, metrics=dict(m.metrics))
                merged.metrics["utilization"] = 0.5
            merged.metrics.update({k: v for k, v in m.metrics.items() if k != "utilization" or zone.metric == k})
            merged = dataclasses.replace(merged, evidence={**merged.evidence, **m.evidence})
    return merged


@pytest.fixture
def world(monkeypatch, tmp_path):
    """world(like=..., outcome=..., shift=...) says what the room does; returns the arguments all commands share."""

    class Adapter:
        name = "fake"
        manifest = manifest.read("linux-tcp")

        def why_not(self, algorithm):
            return None

    class Bench(benches.Bench):
        def scheme(self, algorithm):
            return scheme(algorithm, stack="fake", kernel_digest=self.place(algorithm).room.kernel)

    def make(like=None, outcome=Outcome.OK, shift=None):
        def bench(choice):
            place = benches.Place(kernel=None, room=Room(choice.kernel or "default", like or {}, outcome, shift or {}))
            return Bench(
                choice=choice, adapter=Adapter(), lab="virtual", place=lambda algorithm: place, lab_digest="7" * 16
            )

        monkeypatch.setattr(benches, "find", bench)
        console = rich.console.Console(record=True, width=250, markup=False)
        return {
            "choice": benches.Choice(stack="fake"),
            "results": tmp_path / "r.jsonl",
            "workers": 1,
            "console": console,
        }

    return make


BBR = ("bbrv1", "bbrv2", "bbrv3")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({}, 0, "conforms"),
        ({"like": {"bbrv3": "bbrv1"}}, 1, "violates"),
        ({"outcome": Outcome.ERROR}, 3, "error: as asked (5 of 5 trials)"),
        ({"outcome": Outcome.UNSUPPORTED}, 4, "unsupported: as asked"),
    ],
)
def test_cross(world, changes, status, words):
    shared = world(**changes)
    assert cross.run(BBR, trials=5, first_seed=1, **shared) == status
    assert words in shared["console"].export_text()


@pytest.mark.parametrize(
    ("changes", "cca", "status", "words"),
    [
        ({}, "cubic", 0, "behaves like cubic"),
        ({"like": {"cubic": "reno"}}, "cubic", 1, "behaves like reno, not like the cubic it is called"),
        ({"like": {"bbr": "bbrv2"}}, "bbr", 0, "behaves like bbrv2"),
        ({"outcome": Outcome.ERROR}, "cubic", 3, "error: as asked"),
        ({"outcome": Outcome.UNSUPPORTED}, "cubic", 4, "unsupported: as asked"),
    ],
)
def test_identify(world, changes, cca, status, words):
    shared = world(**changes)
    assert identify.run(cca, trials=1, first_seed=1, **shared) == status
    assert words in shared["console"].export_text()


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, 0), ({"like": {"cubic": "reno"}}, 1), ({"outcome": Outcome.ERROR}, 3), ({"outcome": Outcome.UNSUPPORTED}, 4)],
)
def test_identify_check(world, changes, status):
    assert identify.check(trials=2, first_seed=1, **world(**changes)) == status


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"shift": {"a": 1.0, "b": 1.0}}, 0, "0 of 5 cells moved"),
        ({"shift": {"a": 1.0, "b": 0.8}}, 1, "5 of 5 cells moved"),
        ({"outcome": Outcome.ERROR}, 3, "left out 10mbps-20ms-0pct: error: as asked"),
        ({"outcome": Outcome.TIMEOUT}, 4, "left out"),
    ],
)
def test_drift(world, tmp_path, changes, status, words):
    shared = world(**changes)
    cells = ",".join(f"10mbps-20ms-{loss}pct" for loss in range(5))
    found = drift.run(
        "cubic", drift.variants(("a", "b"), ()), grid=cells, trials=10, profile="atc25", matters=0.01,
        target=tmp_path / "new" / "drift.md", **shared,
    )  # fmt: skip
    assert found == status
    assert words in shared["console"].export_text()
    assert "cells moved" in (tmp_path / "new" / "drift.md").read_text()

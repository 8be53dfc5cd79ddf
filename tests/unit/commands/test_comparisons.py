"""`cross`, `drift`, `identify` and `identify-check`: from arguments to exit statuses, with a made-up room."""

import dataclasses
import functools
import io
import random

import pytest
import rich.console
from helpers import measurements_of, scheme

from conformance.catalogue import documents
from conformance.commands import cross, drift, identify
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.model.trial import Outcome
from conformance.reporting.text import cross as crossed
from conformance.reporting.text import studies
from conformance.support import schema


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

        def __init__(self, offers):
            self._offers = offers
            self.manifest = dataclasses.replace(
                manifest.read("linux-tcp"), kernel_algorithms={name: name for name in offers}
            )

        def why_not(self, algorithm):
            return None if not self._offers or algorithm in self._offers else f"fake does not offer {algorithm}"

    class Bench(benches.Bench):
        def scheme(self, algorithm):
            return scheme(algorithm, stack="fake", kernel_digest=self.place(algorithm).room.kernel)

    def make(like=None, outcome=Outcome.OK, shift=None, offers=()):
        def bench(choice):
            place = benches.Place(kernel=None, room=Room(choice.kernel or "default", like or {}, outcome, shift or {}))
            return Bench(
                choice=choice,
                adapter=Adapter(offers),
                lab="virtual",
                place=lambda algorithm: place,
                lab_digest="7" * 16,
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


def shown(renderer, found):
    console = rich.console.Console(record=True, width=250, markup=False)
    renderer(found, console)
    return console.export_text()


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
    found = cross.compute(BBR, trials=5, first_seed=1, **shared)
    assert found.exit_status == status
    schema.check("cross", found.to_json(), "cross")
    crossed.show(found, shared["console"])
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
    found = identify.compute(cca, trials=1, first_seed=1, **shared)
    assert found.exit_status == status
    assert words in shown(studies.show_identified, found)
    schema.check("identify", found.to_json(), "identify")


@pytest.mark.parametrize(
    ("changes", "status"),
    [({}, 0), ({"like": {"cubic": "reno"}}, 1), ({"outcome": Outcome.ERROR}, 3), ({"outcome": Outcome.UNSUPPORTED}, 4)],
)
def test_identify_check(world, changes, status):
    found = identify.compute_check(trials=2, first_seed=1, **world(**changes))
    assert found.exit_status == status
    assert shown(studies.show_checked, found)
    schema.check("identify-check", found.to_json(), "identify-check")


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"shift": {"a": 1.0, "b": 1.0}}, 0, "0 of 5 cells moved"),
        ({"shift": {"a": 1.0, "b": 0.8}}, 1, "5 of 5 cells moved"),
        ({"outcome": Outcome.ERROR}, 3, "left out 10mbps-20ms-0pct: error: as asked"),
        ({"outcome": Outcome.TIMEOUT}, 4, "left out"),
    ],
)
def test_drift(world, changes, status, words):
    printed = io.StringIO()
    shared = {**world(**changes), "console": rich.console.Console(file=printed)}
    cells = ",".join(f"10mbps-20ms-{loss}pct" for loss in range(5))
    found = drift.compute(
        "cubic", drift.variants(("a", "b"), ()), grid=cells, trials=10, profile="atc25", matters=0.01, **shared
    )
    assert found.exit_status == status
    assert words in shown(studies.show_drifted, found)
    # Both sides share a results file: that one kernel's results are not the other's is what the command is for.
    assert "stored results" not in printed.getvalue()
    assert "cells moved" in studies.drift_markdown(found)
    schema.check("drift", found.to_json(), "drift")


def test_the_markdown_of_a_drift_names_sides_and_cells(world):
    cell = "10mbps-20ms-0pct"
    found = drift.compute(
        "cubic", drift.variants(("6.1", "default"), ()), grid=cell, trials=10, profile="atc25", matters=0.01,
        **world(shift={"6.1": 1.0, "default": 0.5}),
    )  # fmt: skip
    text = studies.drift_markdown(found)
    assert "1 of 1 cells moved" in text and "A: kernel 6.1" in text
    assert "| cell | A | B | B - A | p |\n|---|---:|---:|---:|---:|\n| 10mbps-20ms-0pct | " in text


@pytest.mark.parametrize("command", ["identify", "drift"])
def test_a_name_that_the_stack_does_not_offer_is_refused_before_anything_is_written(world, command):
    shared = world(offers=("cubic", "reno"))
    with pytest.raises(UserError, match=r"fake does not offer cubik; did you mean cubic\? it offers cubic, reno"):
        if command == "identify":
            identify.compute("cubik", trials=1, first_seed=1, **shared)
        else:
            drift.compute(
                "cubik", drift.variants(("a", "b"), ()), grid="10mbps-20ms-0pct", trials=10, profile="atc25",
                matters=0.01, **shared,
            )  # fmt: skip
    assert not shared["results"].exists()

"""Goldens of what is said about results: gate.json, the site's front page and tables, made of frozen result lines.

The lines (results.jsonl.gz) were measured once: a smoke tier of Linux TCP's CUBIC, and three cells of ngtcp2's Reno.
Nothing is measured here, so a difference comes from judging or from rendering.
"""

import gzip
import json
import pathlib

import fake_room
import pytest
from helpers import invoke, shown
from test_lists import same_as_golden

from conformance.catalogue import documents
from conformance.engine import benches
from conformance.lab import manifest
from conformance.model.networks.proxy import Proxy
from conformance.reporting import heatmaps
from conformance.reporting.text import terminal
from conformance.reporting.tools import export
from conformance.results import store

FROZEN = pathlib.Path(__file__).with_name("results.jsonl.gz")
#: the frozen cells of CUBIC whose networks no zone of another profile has
CUBIC = (
    "10mbps-60ms-3pct,10mbps-60ms-4pct,10mbps-80ms-3pct,10mbps-80ms-4pct,10mbps-100ms-2pct,10mbps-100ms-3pct,"
    "10mbps-100ms-4pct,30mbps-1ms-0pct,30mbps-1ms-4pct,30mbps-40ms-0pct,50mbps-1ms-4pct"
)


class Silent(fake_room.Room):
    """A room in which nothing may be measured."""

    def run(self, adapter, batches, cancelled):
        raise AssertionError(f"{next(iter(batches))[0].setting.cell.id} is not among the frozen results")


@pytest.fixture
def frozen(tmp_path, monkeypatch):
    """Write the frozen lines to a results file and return its path; benches.find() gives their benches."""
    path = tmp_path / "frozen.jsonl"
    path.write_bytes(gzip.decompress(FROZEN.read_bytes()))
    firsts = {}
    for measurement in store.read(path):
        scheme = measurement.trial.scheme
        firsts.setdefault((scheme.stack, scheme.algorithm), measurement.trial)

    class Bench(benches.Bench):
        def scheme(self, algorithm):
            return firsts[self.adapter.name, algorithm].scheme

    def bench(choice):
        trial = next(trial for (stack, _), trial in firsts.items() if stack == choice.stack)
        adapter = fake_room.Adapter(choice.stack, manifest.read(choice.stack))
        return fake_room.bench_of(Silent("silent"), adapter, Bench, trial.lab_digest, choice)

    monkeypatch.setattr(benches, "find", bench)
    monkeypatch.chdir(tmp_path)
    return path


def run(*arguments):
    return invoke(*arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "status"),
    [
        ("gate-linux-tcp", ["cubic", "--grid", CUBIC, "--max-trials", "5"], 0),
        ("gate-ngtcp2", ["reno", "--grid", "10mbps-20ms-1pct,10mbps-20ms-0pct", "--stack", "ngtcp2", "--no-why"], 1),
    ],
)
def test_gate(frozen, name, arguments, status):
    # The frozen lines have the seeds that were usual at the time, and no repeats of violations.
    done = run("gate", *arguments, "--first-seed", "1", "--no-confirm", "--results", str(frozen), "--out", "out")
    assert done.exit_code == status, done.output
    same_as_golden(f"{name}.json", pathlib.Path("out", "gate.json").read_text())
    same_as_golden(f"{name}.txt", done.output)


def test_the_front_page_of_the_site(frozen):
    assert run("report", str(frozen), "--out", "site").exit_code == 0
    same_as_golden("site-index.html", pathlib.Path("site", "index.html").read_text())


def test_tables_in_a_terminal(frozen):
    same_as_golden("terminal.txt", shown(terminal.show, heatmaps.all_series(store.read(frozen)), width=120))


def test_exports(frozen):
    series = heatmaps.all_series(store.read(frozen))
    same_as_golden("cells.csv", export.csv_bytes(series).decode().replace("\r\n", "\n"))
    same_as_golden("summary.json", export.summary_json(series, ()).decode())


def test_the_table_of_a_zone():
    assert documents.zone_of("cubic").id == "cubic/heatmap"
    done = run("zones", "show", "cubic/startup")
    assert done.exit_code == 0
    same_as_golden("zone-cubic-startup.txt", done.output)


def test_the_digests_of_the_profiles():
    """Results and zones under a profile are found by its digest, so a changed digest orphans all of them."""
    cell = next(iter(documents.zone_of("cubic").intervals))
    names = sorted(path.stem for path in documents.paths.data("zones", "profiles").glob("*.json"))
    digests = {name: documents.profile(name, cell).profile_digest for name in names}
    segments = (cell, cell)
    digests["atc25, a path"] = documents.path("atc25", segments).profile_digest
    digests["atc25, a split path"] = documents.path("atc25", segments, Proxy()).profile_digest
    same_as_golden("profile-digests.json", json.dumps(digests, indent=1, sort_keys=True) + "\n")

"""Documents mutated at random, given to all their readers: these may raise only a UserError, of one line.

Values are replaced, left out, repeated and moved to another name. Documents of schemas that the suite only writes
(gate, summary, why) have no reader here.
"""

import copy
import dataclasses
import gzip
import json
import pathlib

import pytest
from helpers import JSON, counted, measurement, places, replaced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.catalogue import clauses, documents, expectations, lint, mutant_record, scenarios, studies
from conformance.commands import mutants
from conformance.commands.export import called
from conformance.lab import manifest
from conformance.model.errors import UserError, located
from conformance.model.setting import Cell, Proxy, Setting
from conformance.reporting import heatmaps, points
from conformance.reporting.text import overview
from conformance.reporting.tools import export
from conformance.results import features, merge, source, store
from conformance.support import paths, schema

ZONES = paths.data("zones")
GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "results.jsonl.gz"


def _inner(document, steps):
    for step in steps:
        document = document[step]
    return document


@st.composite
def mutated(draw, document):
    """Draw a copy of a document with one to three mutations."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        left = list(places(document)) if isinstance(document, dict | list) else []
        if not left:
            break
        *within, last = draw(st.sampled_from(left))
        inner = _inner(document, within)
        kind = draw(st.sampled_from(("replace", "remove", "rename", "repeat")))
        if kind == "replace":
            document = replaced(document, (*within, last), draw(JSON))
        elif kind == "remove":
            del inner[last]
        elif kind == "rename" and isinstance(inner, dict):
            inner[draw(st.text(max_size=8))] = inner.pop(last)
        elif isinstance(inner, list):
            inner.append(copy.deepcopy(inner[last]))
    return document


def _read_results(path):
    """Read result lines as reports and exports do, and as `merge` does."""
    found = source.Source([path])
    series = heatmaps.all_series(found.measurements)
    export.csv_bytes(series)
    export.summary_json(series, found.files)
    overview.render(overview.rows(series, called))
    merge.merge([path], path.with_name("merged.jsonl"))


def _read_split_results(path):
    """Read lines of a split path together with one of a cell, because a report needs a cell."""
    beside = path.with_name("cell.jsonl")
    beside.write_text(json.dumps(LINE) + "\n")
    found = source.Source([beside, path])
    heatmaps.all_series(found.measurements)
    points.rows(found.measurements)
    merge.merge([path], path.with_name("merged.jsonl"))


def _read_features(path):
    features.read(path)
    features.stale(path)


def _read_scenario(path):
    """Read a scenario as `scenario show` and `run` do, including each point of its smoke grid."""
    scenario = scenarios.read(path)
    with located(path):
        for point in scenario.grid("smoke"):
            assert Setting.from_json(json.loads(json.dumps(scenario.setting(point).to_json())))


def _read_zone(path):
    documents.any_zone(path)
    lint.check(path)


def _read_expected(path):
    manifest_path = path.parent / "adapter.json"
    if not manifest_path.exists():
        manifest_path.write_text(json.dumps(ADAPTER))
        _write_programs(path.parent)
    expectations.load(str(path.parent / "adapter.json"))


def _read_adapter(path):
    if not (path.parent / ADAPTER["program"]).exists():
        _write_programs(path.parent)
    manifest.read(str(path))


def _write_programs(folder):
    folder.chmod(0o755)
    for name in (ADAPTER["program"], ADAPTER["build"]["program"]):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    for share in ADAPTER["shares"]:
        (folder / share).mkdir(parents=True, exist_ok=True)


def _read_mutants(path):
    mutants.mutants.from_json(schema.load("mutants", path), path)


def _json(*parts):
    return json.loads(paths.data(*parts).read_text())


LINE = dataclasses.replace(
    measurement(), evidence={"interfaces": counted(2000, 1990), "trace": {"t_s": [0.0], "queue_bytes": [1]}}
).to_json()
REAL = json.loads(gzip.decompress(GOLDEN.read_bytes()).splitlines()[0])
ADAPTER = _json("adapters", "quic-go", "adapter.json")
MUTANTS = json.loads(mutant_record.path().with_name("mutants.json").read_text())
MUTANTS["mutants"] = MUTANTS["mutants"][:6]
EXPECTED = {
    "version": 1,
    "expected": [
        {"zone": "cubic/heatmap-packets", "cells": ["10mbps-20ms-1pct"], "verdict": "violates", "reason": "it is so"},
        {"zone": "cubic/split-packets", "cells": "all", "verdict": "unsupported", "reason": "x", "link": "https://x"},
    ],
}
PATH = (Cell(10, 20, 0), Cell(10, 5, 1))
SPLIT = dataclasses.replace(
    measurement(),
    trial=dataclasses.replace(measurement().trial, setting=documents.path("atc25", PATH, Proxy(to_client="cubic"))),
)
FEATURES = features.TrialFeatures(trial=measurement().trial, cell="few", sampled={"kept": [0.7, 0.71]})


def _study():
    """Return a shipped study, reduced to its first scenario."""
    study = _json("studies", "access-networks.json")
    named = study["scenarios"][0]["name"]
    of_it = [one for one in study["experiments"] if one["scenario"] == named]
    judged = [one for one in study["claims"] if "checks" in one and named in json.dumps(one["checks"])]
    drawn = [one for one in study["figures"] if one["at"]["scenario"] == named]
    cut = {"scenarios": study["scenarios"][:1], "experiments": of_it, "claims": judged[:2], "figures": drawn[:1]}
    return {**study, **cut}


CASES = {
    "measurement": ("results.jsonl", LINE, _read_results),
    "measurement, recorded": ("results.jsonl", REAL, _read_results),
    "zone": ("startup.json", _json("zones", "cubic", "startup.json"), _read_zone),
    "split-zone": ("split-packets.json", _json("zones", "reno", "split-packets.json"), _read_zone),
    "profile": ("atc25.json", _json("zones", "profiles", "atc25.json"), lambda path: schema.load("profile", path)),
    "expected": ("expected.json", EXPECTED, _read_expected),
    "adapter": ("adapter.json", ADAPTER, _read_adapter),
    "mutants": ("mutants.json", MUTANTS, _read_mutants),
    "measurement, split": ("split.jsonl", SPLIT.to_json(), _read_split_results),
    "features": ("r.features.jsonl", json.loads(features.dumps(FEATURES)), _read_features),
    "scenario": ("s.json", _json("scenarios", "after-start-up.json"), _read_scenario),
    "scenario, bonded": ("s.json", _json("scenarios", "bond-options.json"), _read_scenario),
    "study": ("study.json", _study(), studies.read),
    "clauses": ("clauses.json", _json("clauses", "rfc5681.json"), clauses.read),
}


@pytest.mark.parametrize("case", CASES)
def test_documents_are_read_as_they_are(tmp_path, case):
    name, document, reads = CASES[case]
    (tmp_path / name).write_text(json.dumps(document) + "\n")
    reads(tmp_path / name)


@pytest.mark.parametrize("case", CASES)
def test_a_mutated_document_is_read_or_refused_in_one_line(tmp_path_factory, case):
    name, document, reads = CASES[case]
    folder = tmp_path_factory.mktemp("mutated")
    path = folder / name
    outcomes = set()

    @settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
    @given(mutated(document))
    def check(data):
        path.write_text(json.dumps(data) + "\n")
        try:
            reads(path)
            outcomes.add("read")
        except UserError as error:
            assert "\n" not in str(error)
            assert str(path) in str(error)
            outcomes.add("refused")

    check()
    assert "refused" in outcomes


@pytest.mark.parametrize("side", ["server", "client"])
@pytest.mark.parametrize("lacking", ["rx_bytes", "tx_bytes"])
def test_counters_that_lack_a_direction_are_refused_with_file_and_line(tmp_path, side, lacking):
    """This holds after sound lines, too, although only the first line of a kind is checked against the whole schema."""
    path = tmp_path / "results.jsonl"
    broken = copy.deepcopy(LINE)
    del broken["evidence"]["interfaces"][side]["eth0"][lacking]
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(broken) + "\n")
    with pytest.raises(UserError, match=rf"results\.jsonl:2: .*{lacking}"):
        store.read(path)


def test_counters_of_one_side_alone_are_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    broken = copy.deepcopy(LINE)
    del broken["evidence"]["interfaces"]["client"]
    path.write_text(json.dumps(LINE) + "\n" + json.dumps(broken) + "\n")
    with pytest.raises(UserError, match=r"results\.jsonl:2: .*client"):
        store.read(path)

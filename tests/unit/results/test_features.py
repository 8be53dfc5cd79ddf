"""Features kept beside results files: found again, and never mixed with features that other code has read."""

import json
import re

import pytest
from helpers import measurements, refusal

from conformance.model.errors import UserError
from conformance.results import features
from conformance.results.features import Features, TrialFeatures
from conformance.support import paths


def made(**changes):
    (m,) = measurements([0.5], **changes)
    return TrialFeatures(trial=m.trial, cell="few", sampled={"kept": [0.7, 0.71]})


@pytest.mark.parametrize(
    ("results", "name"),
    [
        ("before.jsonl", "before.features.jsonl"),
        ("before.jsonl.xz", "before.features.jsonl"),
        ("a.jsonl.gz", "a.features.jsonl"),
        ("odd.txt", "odd.txt.features.jsonl"),
    ],
)
def test_where_they_are(tmp_path, results, name):
    assert features.beside(tmp_path / results) == tmp_path / name


def test_the_reader_is_all_code_that_reads_features():
    folder = paths.PACKAGE / "model" / "diagnosis"
    for name in features._READERS:
        imported = re.findall(r"^from conformance.model.diagnosis.(\w+) import", (folder / name).read_text(), re.M)
        assert {f"{module}.py" for module in imported} <= {*features._READERS}, name


def test_what_is_added_is_found_again(tmp_path):
    results = tmp_path / "new" / "r.jsonl"
    one = made()
    Features(results).add(one)
    assert Features(results).find(one.trial) == one
    assert features.read(features.beside(results)) == [one]
    assert Features(tmp_path / "others.jsonl").find(one.trial) is None


@pytest.mark.parametrize(("field", "value"), [("scheme", {"algorithm": []}), ("setting", {"cell": {}}), ("seed", "1")])
def test_a_trial_that_is_none_is_refused_with_file_and_line(tmp_path, field, value):
    line = json.loads(features.dumps(made()))
    trial = line["trial"]
    trial[field] = {**trial[field], **value} if isinstance(value, dict) else value
    path = tmp_path / "r.features.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with pytest.raises(UserError, match=rf"r\.features\.jsonl:1: /trial: /{field}"):
        features.read(path)


def test_a_line_that_was_cut_short_is_passed_over_and_the_next_stands_on_its_own(tmp_path):
    results = tmp_path / "r.jsonl"
    one, other = made(), made(stack="other")
    Features(results).add(one)
    path = features.beside(results)
    path.write_bytes(path.read_bytes() + features.dumps(other)[:40])
    kept = Features(results)
    assert kept.find(other.trial) is None
    kept.add(other)
    assert path.read_bytes().count(b"\n") == 3 and features.read(path) == [one, other]


def test_what_other_code_read_is_not_used(tmp_path):
    results = tmp_path / "r.jsonl"
    one = made()
    path = features.beside(results)
    path.write_text(json.dumps({**json.loads(features.dumps(one)), "reader": "0" * 16}) + "\n")
    assert features.read(path) == [] and features.stale(path)
    Features(results).add(one)
    assert features.read(path) == [one] and not features.stale(path)


@pytest.mark.parametrize("line", ['{"trial"', "[]", '{"schema": "features/1"}'])
def test_what_is_no_line_of_features_is_named(tmp_path, line):
    path = features.beside(tmp_path / "r.jsonl")
    path.write_text(line + "\n")
    assert "r.features.jsonl:1" in refusal(features.read, path)


def test_those_of_a_run_are_copied_beside_its_results(tmp_path):
    one, other = made(), made(stack="other")
    kept = Features(tmp_path / "r.jsonl")
    kept.add(one)
    kept.add(other)
    path = features.copy(tmp_path / "r.jsonl", tmp_path / "out" / "results.jsonl", {one.trial.scheme})
    assert features.read(path) == [one]

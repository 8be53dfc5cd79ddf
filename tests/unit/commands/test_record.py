"""`dev record`: it measures what the history lacks only, and says in a line why a release was not measured."""

import json
import types

import pytest
from helpers import invoke

from conformance.catalogue import history
from conformance.commands import gate, record
from conformance.lab import registry
from conformance.model.errors import UserError
from conformance.model.judging.verdict import Status
from conformance.support import schema


@pytest.fixture
def built(tmp_path, monkeypatch):
    """Return a list of what was built; releases up to 1.7.0 conform to the one clause that is judged."""

    def judged(options, notes):
        asked.append(options.choice.source)
        bad = options.choice.source != ("aioquic=1.7.0",)
        verdict = types.SimpleNamespace(zone_id="CL001", status=Status.VIOLATES if bad else Status.CONFORMS)
        finding = types.SimpleNamespace(verdict=verdict, confirmed=verdict)
        return types.SimpleNamespace(judged=[], clauses=types.SimpleNamespace(findings=[finding]))

    def package(name, version):
        if version == "1.8.0":
            raise UserError("pip: no answer")
        (tmp_path / version).mkdir(exist_ok=True)
        return tmp_path / version

    asked = []
    monkeypatch.setattr(history, "path", lambda: tmp_path / "history.json")
    monkeypatch.setattr(registry, "package", package)
    monkeypatch.setattr(record.adapter, "build", lambda stack, given: None)
    monkeypatch.setattr(gate, "compute", judged)
    return asked


def called(*arguments):
    done = invoke("dev", "record", *arguments, "--format", "json")
    document = json.loads(done.stdout)
    schema.check("record", document, "what record prints")
    return document


def test_a_release_is_measured_once_and_what_changed_is_said(built, monkeypatch):
    first = called("aioquic", "--source", "aioquic=1.7.0", "--algorithm", "cubic")
    assert first["releases"] == [
        {"stack": "aioquic", "algorithm": "cubic", "version": "1.7.0", "since": None, "changes": []}
    ]
    monkeypatch.setattr(registry, "newest_package", lambda name: "1.7.2")
    (added,) = called("--algorithm", "cubic")["releases"]
    assert (added["version"], added["since"]) == ("1.7.2", "1.7.0")
    assert added["changes"] == [{"asked": "CL001", "before": "conforms", "now": "violates"}]
    again = called("--algorithm", "cubic")
    assert again["releases"] == [] and again["known"] == ["aioquic 1.7.2"]
    # The adapter's lock file has 1.7.2, so its ordinary build is measured.
    assert built == [("aioquic=1.7.0",), ()]


def test_what_cannot_be_measured_is_a_line_and_the_rest_goes_on(built, monkeypatch):
    called("aioquic", "--source", "aioquic=1.7.0", "--algorithm", "cubic")
    monkeypatch.setattr(registry, "newest_package", lambda name: "1.8.0")
    document = called("picoquic", "aioquic")
    assert document["exit_status"] == 4 and document["not_measured"]["aioquic"] == "pip: no answer"
    assert "--source PART=VERSION" in document["not_measured"]["picoquic"]


def test_a_tree_is_measured_under_the_version_that_its_build_says(built, tmp_path, monkeypatch):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "go.mod").write_text("module github.com/quic-go/quic-go\n")
    source = f"quic-go={tmp_path / 'tree'}"
    scheme = types.SimpleNamespace(version="0.66.0+quic-go@abcdef")
    monkeypatch.setattr(record.benches, "find", lambda choice: types.SimpleNamespace(scheme=lambda algorithm: scheme))
    (added,) = called("quic-go", "--source", source, "--algorithm", "reno")["releases"]
    assert (added["version"], added["since"]) == ("0.66.0+quic-go@abcdef", None)
    assert built == [(source,)]
    # No registry releases it, so nothing follows it from then on.
    assert [release.part for release in history.load()] == [""] and history.parts() == {}
    assert called()["releases"] == [] and built == [(source,)]

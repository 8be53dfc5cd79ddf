"""`--format json`: every command prints a document of the schema that it names."""

import dataclasses
import json

import fake_room
import pytest
from click.testing import CliRunner
from helpers import CELL, counted, measurement, measurements, results_file, scheme

from conformance.cli import main
from conformance.cli import results as results_commands
from conformance.commands import adapter_check, doctor, export, inventory, trace
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.engine import benches
from conformance.kernel.store import Kernel
from conformance.model.emulation.contract import Clause
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.results import store
from conformance.support import schema


def document(*arguments, status=ExitStatus.DONE):
    """Run a command; return its output, which must be its document and nothing else."""
    done = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert done.exit_code == status, done.output
    data = json.loads(done.stdout)
    name = data["schema"].removesuffix("/1")
    schema.check(name, data, name)
    assert data["exit_status"] == status
    return data


def test_adapters():
    found = document("adapter", "list")
    named = {about["name"]: about for about in found["adapters"]}
    assert [closed["name"] for closed in found["not_public"]] == ["bequant"]
    assert named["linux-tcp"]["transport"] == "tcp"
    assert named["quinn"]["algorithms"]["cubic"] == "cubic"


def test_kernels(monkeypatch, tmp_path):
    found = Kernel(
        name="x", release="6.12.1", digest="0" * 16, source="linux.tar.xz", binary=tmp_path / "linux",
        patches=("a.patch",), parameters=(("tcp_cubic.beta", "512"),),
    )  # fmt: skip
    monkeypatch.setattr(inventory.store, "kernels", lambda: [found])
    (kernel,) = document("kernel", "list")["kernels"]
    assert kernel["patches"] == ["a.patch"] and kernel["parameters"] == {"tcp_cubic.beta": "512"}


def test_fidelity(tmp_path):
    results = store.Store(tmp_path / "r.jsonl")
    for m in measurements([0.2, 0.4], cell=CELL):
        results.add(m)
    found = document("dev", "fidelity", str(results.path))
    assert [line["bandwidth_mbps"] for line in found["lines"]] == [10, None]
    assert {limit["name"] for limit in found["limits"]} == {"rms"}


@pytest.fixture
def results(tmp_path):
    results_file(tmp_path / "r.jsonl")
    return str(tmp_path / "r.jsonl")


def test_exports(results, tmp_path):
    found = document("export", "csv", results, "--out", str(tmp_path / "cells.csv"))
    assert found["form"] == "csv" and (tmp_path / "cells.csv").stat().st_size == found["bytes"]
    refused = CliRunner().invoke(main, ["export", "csv", results, "--out", "-", "--format", "json"])
    assert refused.exit_code == ExitStatus.MISUSE and "name a file with --out" in refused.stderr


def test_merges(tmp_path):
    shards = []
    for name, cell in (("a", CELL), ("b", Cell(10, 1, 0))):
        shard = store.Store(tmp_path / name)
        for m in measurements([0.2, 0.4], cell=cell):
            shard.add(m)
        shards.append(str(shard.path))
    found = document("merge", *shards, "--out", str(tmp_path / "all.jsonl"))
    assert (found["trials"], found["left_out"]) == (4, [])


def test_every_form_of_export_can_be_asked_for():
    assert set(results_commands.FORMS) == set(export.FORMS)


@pytest.fixture
def bench_of_made_up_trials(monkeypatch):
    monkeypatch.setattr(benches, "find", benches.find)
    fake_room.install()

    def good(trial, kind):
        (m,) = measurements([0.5], cell=trial.setting.cell)
        metrics = {**m.metrics, "virtual_s": 10.0}
        evidence = {"interfaces": counted(1_500_000, 1_400_000)}
        host = {"wall_s": 0.5, "system_calls": 5000}
        return dataclasses.replace(m, trial=trial, metrics=metrics, evidence=evidence, host=host)

    monkeypatch.setattr(fake_room, "made", good)


def test_benchmarks(bench_of_made_up_trials):
    found = document("dev", "bench", "--trials", "2")
    assert len(found["rows"]) == 27 and found["grid_s"] > 0
    assert found["rows"][0]["cost"]["calls_a_packet"] == 5
    by_stack = document("dev", "bench", "--stacks", "--trials", "2")
    assert by_stack["grid_s"] is None and {row["stack"] for row in by_stack["rows"]} == {"fake"}
    shown = CliRunner().invoke(main, ["dev", "bench", "--trials", "2"]).output
    assert "cubic on fake: cost of a trial on one core" in shown and "150 cells x 20 trials" in shown


def test_what_a_run_needs(monkeypatch):
    found = [doctor.Check(True, "Linux"), doctor.Check(False, "tc: not found", "apt-get install iproute2")]
    monkeypatch.setattr(doctor, "checks", lambda kernel: iter(found))
    (first, second) = document("doctor", status=ExitStatus.MISUSE)["checks"]
    assert (first["mend"], second["mend"]) == (None, "apt-get install iproute2")


def test_a_broken_clause_and_an_adapter_of_which_nothing_is_known():
    kept = {"a transfer works": True, "it ends": False, "status 127": None}
    clauses = tuple(Clause(name=name, kept=value, what="seen") for name, value in kept.items())
    for found, status in (
        (adapter_check.CheckedAdapter(scheme=scheme(), clauses=clauses), ExitStatus.VIOLATES),
        (adapter_check.CheckedAdapter(scheme=scheme(), fault="the guest died"), ExitStatus.ERROR),
    ):
        schema.check("adapter-check", printed(found), "adapter-check")
        assert found.exit_status is status


def test_a_trace(tmp_path):
    (tmp_path / "keys.log").write_text("secret")
    (tmp_path / "emulator-to_client.pcap").touch()
    for outcome, status in ((Outcome.OK, ExitStatus.DONE), (Outcome.ERROR, ExitStatus.ERROR)):
        found = trace.Traced(
            measurement=measurement(outcome=outcome),
            flow="test/0",
            captured={"emulator-to_client": (7, 1)},
            target=tmp_path,
        )
        schema.check("trace", printed(found), "trace")
        assert found.exit_status is status
        assert printed(found)["files"] == [{"file": "keys.log", "bytes": 6}]


@pytest.mark.parametrize("arguments", [("dev", "fidelity", "nowhere.jsonl"), ("zones", "show", "nowhere")])
def test_a_mistake_is_one_line_on_standard_error_and_no_document(arguments):
    done = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert done.exit_code == ExitStatus.MISUSE
    assert done.stdout == "" and done.stderr.count("\n") == 1

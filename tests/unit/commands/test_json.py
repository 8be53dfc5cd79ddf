"""`--format json`: every command has it, and prints a document that satisfies its schema, and nothing else."""

import json
import re

import fake_room
import helpers
import pytest

from conformance.catalogue import documents
from conformance.cli import main
from conformance.commands import adapter_check, doctor, inventory, trace
from conformance.commands.result import printed
from conformance.commands.status import ExitStatus
from conformance.kernel.store import Kernel
from conformance.model.emulation.contract import ContractClause
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.results import source, store
from conformance.support import paths, schema

CELLS = "10mbps-20ms-1pct,10mbps-40ms-1pct"


def commands(command, words):
    """Yield (words, command) of every command that can be run."""
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, [*words, name])
    if not hasattr(command, "commands"):
        yield " ".join(words), command


@pytest.mark.parametrize(("words", "command"), list(commands(main, [])), ids=lambda value: str(value))
def test_every_command_has_it(words, command):
    (option,) = [p for p in command.params if "--format" in p.opts]
    assert list(option.type.choices) == ["text", "json"]


def test_the_first_door_has_few_commands():
    """What serves those who maintain the suite is behind `conformance dev` (docs/command.md)."""
    first = [words for words, _ in commands(main, []) if not words.startswith("dev ")]
    assert len(first) <= 35, first


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function that runs a command with `--format json` in an empty folder, and checks its document."""
    monkeypatch.chdir(tmp_path)
    fake_room.install("good")

    def call(*arguments, status=0):
        done = helpers.invoke(*arguments, "--format", "json")
        assert done.exit_code == status, done.output
        data = json.loads(done.stdout)
        schema.check(data["schema"].partition("/")[0], data, " ".join(map(str, arguments)))
        assert data["exit_status"] == status
        return data

    return call


def test_gate(run):
    data = run("gate", "cubic", "--grid", CELLS)
    assert [zone["zone"] for zone in data["zones"]] == ["cubic/heatmap", "cubic/loss"]
    fake_room.install("bad")
    assert run("gate", "cubic", "--grid", CELLS, "--no-why", "--results", "bad.jsonl", status=1)["status"] == "fails"


def test_compare(run, tmp_path):
    """An unknown profile gets the two metrics that every report shows; the chart and the comment are also written."""
    for name, value in (("before", 0.5), ("after", 0.7)):
        made = helpers.measurements([value] * 8, stack_digest=value and f"{value}".ljust(16, "0"))
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(map(store.dumps, made)))
    data = run("compare", "before.jsonl", "after.jsonl", "--out", "out", status=1)
    moved = data["compared"][0]
    assert (moved["name"], moved["before"], moved["after"], moved["change"]) == ("utilization", 0.5, 0.7, "moved")
    assert data["count"]["moved"] == 1 and data["lacking"]
    assert json.loads((tmp_path / "out" / "compare.json").read_text()) == data
    assert (tmp_path / "out" / "compare.svg").read_text().startswith("<svg")
    assert "### Congestion control: 1 moved" in (tmp_path / "out" / "compare.md").read_text()
    back = run("compare", "after.jsonl", "before.jsonl", status=1)["compared"][0]
    assert back["difference"] == -moved["difference"]
    assert run("compare", "after.jsonl", "after.jsonl", status=0)["count"]["moved"] == 0


def test_run(run):
    data = run("run", "cubic", "--grid", CELLS, "--trials", "5")
    (scheme,) = data["schemes"]
    assert scheme["metrics"]["utilization"]["count"] == {"conforms": 2}
    assert data["not_judged"] is None


def test_what_commands_make(run, tmp_path, front_page):
    helpers.results_file(tmp_path / "r.jsonl")
    (site,) = run("report", "r.jsonl", "--out", "site")["made"]
    assert site["path"] == str(tmp_path / "site" / "index.html")
    figures = run("plot", "heatmap", "r.jsonl", "--as", "svg")["made"]
    assert figures and all((tmp_path / figure["path"]).read_text().startswith("<svg") for figure in figures)
    published = run("publish", "r.jsonl", "--out", "kept")["made"]
    read = source.Source([item["path"] for item in published]).measurements
    # Results of an algorithm that no kernel here has are not kept, because they say nothing about the stack.
    known = [m for m in source.Source(["r.jsonl"]).measurements if m.trial.scheme.algorithm != "prague"]
    assert sorted(m.trial.key for m in read) == sorted(m.trial.key for m in known)
    (adapter,) = run("adapter", "new", "mine", "--lang", "python")["made"]
    assert schema.load("adapter", tmp_path / "mine" / "adapter.json")["name"] == adapter["name"] == "mine"


def test_zones(run, tmp_path):
    shipped = documents.zone_path("cubic/startup")
    assert run("dev", "zones", "fmt", "--check", shipped)["made"] == []
    other = tmp_path / "startup.json"
    other.write_text(json.dumps(json.loads(shipped.read_text())))
    (unlike,) = run("dev", "zones", "fmt", "--check", other, status=1)["made"]
    assert unlike["path"] == str(other)
    pairs = run("dev", "zones", "apart", "cubic", "bbrv1")["pairs"]
    assert {tuple(pair["algorithms"]) for pair in pairs} == {("cubic", "bbrv1")}
    assert all(len(pair["cells"]) <= pair["cells_of_both"] for pair in pairs) and any(pair["cells"] for pair in pairs)


def test_known_deviations(run):
    data = run("expect", "show", "quic-go")
    assert data["entries"] and {"zone", "cells", "verdict", "side", "reason", "link"} == set(data["entries"][0])


def test_kernels(run, monkeypatch, tmp_path):
    found = Kernel(
        name="x", release="6.12.1", digest="0" * 16, source="linux.tar.xz", binary=tmp_path / "linux",
        patches=("a.patch",), parameters=(("tcp_cubic.beta", "512"),),
    )  # fmt: skip
    monkeypatch.setattr(inventory.store, "kernels", lambda: [found])
    (kernel,) = run("kernel", "list")["kernels"]
    assert kernel["patches"] == ["a.patch"] and kernel["parameters"] == {"tcp_cubic.beta": "512"}


def test_exports(run, tmp_path):
    results = str(helpers.results_file(tmp_path / "r.jsonl"))
    found = run("export", "csv", results, "--out", tmp_path / "cells.csv")
    assert found["form"] == "csv" and (tmp_path / "cells.csv").stat().st_size == found["bytes"]
    refused = helpers.invoke("export", "csv", results, "--out", "-", "--format", "json")
    assert refused.exit_code == ExitStatus.MISUSE and "name a file with --out" in refused.stderr


def test_merges(run, tmp_path):
    shards = []
    for name, cell in (("a", helpers.CELL), ("b", Cell(10, 1, 0))):
        shards.append(str(helpers.stored(tmp_path / name, helpers.measurements([0.2, 0.4], cell=cell))))
    found = run("merge", *shards, "--out", tmp_path / "all.jsonl")
    assert (found["trials"], found["left_out"]) == (4, [])


def test_benchmarks(run, monkeypatch):
    def good(trial, kind):
        (m,) = helpers.measurements([0.5], cell=trial.setting.cell)
        metrics = {**m.metrics, "virtual_s": 10.0}
        evidence = {"interfaces": helpers.counted(1_500_000, 1_400_000)}
        host = {"wall_s": 0.5, "system_calls": 5000}
        return helpers.as_read(m, trial=trial, metrics=metrics, evidence=evidence, host=host)

    monkeypatch.setattr(fake_room, "made", good)
    found = run("dev", "bench", "--trials", "2")
    assert len(found["rows"]) == 27 and found["grid_s"] > 0
    assert found["rows"][0]["cost"]["calls_a_packet"] == 5
    by_stack = run("dev", "bench", "--stacks", "--trials", "2")
    assert by_stack["grid_s"] is None and {row["stack"] for row in by_stack["rows"]} == {"fake"}
    shown = helpers.invoke("dev", "bench", "--trials", "2").output
    assert "cubic on fake: cost of a trial on one core" in shown and "150 cells x 20 trials" in shown


def test_what_a_run_needs(run, monkeypatch):
    found = [doctor.Check(True, "Linux"), doctor.Check(False, "tc: not found", "apt-get install iproute2")]
    monkeypatch.setattr(doctor, "checks", lambda kernel: iter(found))
    (first, second) = run("doctor", status=ExitStatus.MISUSE)["checks"]
    assert (first["mend"], second["mend"]) == (None, "apt-get install iproute2")


def test_a_broken_clause_and_an_adapter_of_which_nothing_is_known():
    kept = {"a transfer works": True, "it ends": False, "status 127": None}
    clauses = tuple(ContractClause(name=name, kept=value, what="seen") for name, value in kept.items())
    for found, status in (
        (adapter_check.CheckedAdapter(scheme=helpers.scheme(), clauses=clauses), ExitStatus.VIOLATES),
        (adapter_check.CheckedAdapter(scheme=helpers.scheme(), fault="the guest died"), ExitStatus.ERROR),
    ):
        schema.check("adapter-check", printed(found), "adapter-check")
        assert found.exit_status is status


def test_a_trace(tmp_path):
    (tmp_path / "keys.log").write_text("secret")
    (tmp_path / "emulator-to_client.pcap").touch()
    for outcome, status in ((Outcome.OK, ExitStatus.DONE), (Outcome.ERROR, ExitStatus.ERROR)):
        found = trace.KeptTrace(
            measurement=helpers.measurement(outcome=outcome),
            flow="test/0",
            captured={"emulator-to_client": (7, 1)},
            target=tmp_path,
        )
        schema.check("trace", printed(found), "trace")
        assert found.exit_status is status
        assert printed(found)["files"] == [{"file": "keys.log", "bytes": 6}]


def test_errors_stay_one_line_on_standard_error(run):
    done = helpers.invoke("dev", "zones", "apart", "cubic", "--format", "json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "conformance: there is nothing to tell cubic apart from; name at least two algorithms\n"


def test_every_schema_is_printed_or_read_somewhere():
    """Nothing is checked by a schema that no code names."""
    sources = "".join(path.read_text() for path in paths.PACKAGE.rglob("*.py"))
    for path in (paths.PACKAGE / "schemas").glob("*.json"):
        assert re.search(rf'"{path.stem}(/\d+)?"', sources), path.name

"""`--format json`: what every command prints is a document of the schema that it names."""

import json

import pytest
from click.testing import CliRunner
from helpers import CELL, measurements

from conformance.cli import main
from conformance.commands import inventory
from conformance.commands.status import ExitStatus
from conformance.kernel.store import Kernel
from conformance.results import store
from conformance.support import schema


def document(*arguments, status=ExitStatus.DONE):
    """What a command prints, which is its document and nothing else."""
    done = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert done.exit_code == status, done.output
    data = json.loads(done.stdout)
    name = data["schema"].removesuffix("/1")
    schema.check(name, data, name)
    assert data["exit_status"] == status
    return data


def test_adapters():
    named = {about["name"]: about for about in document("adapter", "list")["adapters"]}
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
    found = document("fidelity", str(results.path))
    assert [line["bandwidth_mbps"] for line in found["lines"]] == [10, None]
    assert {limit["name"] for limit in found["limits"]} == {"rms"}


@pytest.mark.parametrize("arguments", [("fidelity", "nowhere.jsonl"), ("zones", "show", "nowhere")])
def test_a_mistake_is_one_line_on_standard_error_and_no_document(arguments):
    done = CliRunner().invoke(main, [*arguments, "--format", "json"])
    assert done.exit_code == ExitStatus.MISUSE
    assert done.stdout == "" and done.stderr.count("\n") == 1

"""Generations of BBR on real guests. Those whose kernels the user has not built are skipped."""

import threading

import pytest
import rich.console
from helpers import line, setting
from test_guest import go

from conformance.catalogue import documents
from conformance.commands import identify
from conformance.engine import benches
from conformance.kernel import store as kernels
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome
from conformance.reporting.text import studies
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import paths

pytestmark = pytest.mark.guest

RELABELLED = str(paths.PACKAGE.parent / "tests" / "stacks" / "relabelled" / "adapter.json")
BUILT = {kernel.name for kernel in kernels.kernels()}


def measure(algorithm, kernel=None, **overrides):
    bench = benches.find(benches.Choice(kernel=kernel))
    batch = bench.trials(algorithm, documents.profile("atc25", Cell(10, 20, 1), **overrides), [1])
    (found,) = bench.place(algorithm).room.run(bench.adapter, [batch], threading.Event())
    return found


def test_two_runs_of_the_drafts_stack_are_equal(bench_of):
    bench = bench_of("document")
    first, again = (go(bench, [setting(Cell(10, 40, 1), transfer_s=5)], algorithm="bbrv3") for _ in range(2))
    assert list(map(line, first)) == list(map(line, again))
    assert first[0].outcome is Outcome.OK, first[0].message


@pytest.mark.parametrize(
    ("algorithm", "version", "name"), [("bbrv1", 1, "bbr"), ("bbrv2", 2, "bbr2"), ("bbrv3", 3, "bbr")]
)
def test_each_result_says_which_bbr_it_was(algorithm, version, name):
    if algorithm != "bbrv1" and algorithm not in BUILT:
        pytest.skip(f"no kernel {algorithm} is built")
    found = measure(algorithm)
    assert found.outcome is Outcome.OK, found.message
    about = found.evidence["congestion_control"]
    assert about["name"] == name
    assert about["bbr"]["exported_version"] == version
    assert version in about["bbr"]["versions_with_the_gains_seen"]


def test_a_kernel_with_another_bbr_is_unsupported_and_says_so():
    found = measure("bbrv3", kernel="default", transfer_s=1)
    assert found.outcome is Outcome.UNSUPPORTED
    assert found.message == "bbrv3 was asked for, but this kernel's bbr is BBR version 1"


def identified(cca, tmp_path, stack="linux-tcp"):
    console = rich.console.Console(record=True, width=200, markup=False)
    means = benches.Means(results=tmp_path / "r.jsonl", notes=ConsoleNotes(console))
    found = identify.compute(cca, benches.Choice(stack=stack), means, trials=1, first_seed=500)
    studies.show_identified(found, console)
    return found.exit_status, console.export_text()


def test_version_1_under_the_name_of_version_3_is_caught(tmp_path):
    status, text = identified("bbrv3", tmp_path, stack=RELABELLED)
    assert status == 1, text
    assert "behaves like bbrv1, although it is called bbrv3" in text
    assert "the kernel reports: bbr, version 1" in text


@pytest.mark.thorough
def test_bbr_without_a_version_is_named_with_one(tmp_path):
    status, text = identified("bbr", tmp_path)
    assert status == 0, text
    assert "behaves like bbrv1" in text

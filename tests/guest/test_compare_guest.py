"""Comparisons with real trials: of kernels that differ in beta, of kernels that differ only in their digest.

Also of two builds of a QUIC stack that differ in beta.
"""

import contextlib
import json
import shutil

import pytest
import rich.console

from conformance.commands import compare
from conformance.engine.benches import Choice, Means
from conformance.lab import adapter, kernel_variant
from conformance.model.studies.comparison import Movement
from conformance.reporting.text import compare as shown
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import paths

pytestmark = pytest.mark.guest
CELL = "10mbps-20ms-1pct"


@contextlib.contextmanager
def variant(name, beta):
    """Yield the name of a kernel whose CUBIC has this beta, in units of 1/1024."""
    kernel_variant.make(name, "default", {"tcp_cubic.beta": str(beta)})
    try:
        yield f"@{name}"
    finally:
        paths.cache("kernels", "names", name).unlink()


def quic(folder, called):
    """Return an adapter of aioquic whose Reno is the controller that newreno.py calls `called`."""
    here = folder / "mutants" / "aioquic"
    shutil.copytree(paths.PACKAGE.parent / "mutants" / "aioquic", here)
    (folder / "adapters").symlink_to(paths.PACKAGE.parent / "adapters")
    manifest = json.loads((here / "adapter.json").read_text())
    manifest["algorithms"] = {"reno": {**manifest["algorithms"]["reno"], "called": called}}
    (here / "adapter.json").write_text(json.dumps(manifest))
    adapter.build(str(here))
    return str(here)


def compared(tmp_path, base, head, algorithm="cubic"):
    console = rich.console.Console(record=True, width=160, markup=False)
    options = compare.CompareOptions(algorithms=(algorithm,), choice=Choice(), grid=CELL)
    means = Means(results=tmp_path / "r.jsonl", notes=ConsoleNotes(console))
    found = compare.compute(base, head, options, means)
    shown.show(found, console)
    return found, console.export_text()


@pytest.mark.thorough
def test_another_beta_is_the_first_that_moved(tmp_path):
    with variant("compare-test-819", 819) as head:
        found, text = compared(tmp_path, "@default", head)
    assert found.exit_status == 1
    first = found.compared[0]
    assert (first.quantity.label, first.quantity.name, first.change) == ("beta", "kept", Movement.MOVED)
    assert first.before == pytest.approx(0.71, abs=0.02) and first.after == pytest.approx(0.8, abs=0.02)
    assert "cubic: beta: kept moved from 0.7" in text


@pytest.mark.thorough
def test_another_digest_that_behaves_alike_moves_nothing(tmp_path):
    """Linux has 717 without the parameter; two traces of a cell are enough to see that both kernels behave alike.

    Cells take all trials, because two are not enough to say that one kernel serves for the other.
    """
    with variant("compare-test-717", 717) as head:
        found, text = compared(tmp_path, "@default", head)
    assert found.exit_status == 0 and found.compared
    assert all(c.identical and max(c.n) == (2 if c.quantity.label else found.trials) for c in found.compared)
    assert "nothing moved: every difference is exactly zero" in text
    assert found.serves and "one side serves for the other" in text


@pytest.mark.thorough
def test_another_beta_of_a_quic_stack_is_found(tmp_path):
    """The author of a stack compares over UDP, with two folders of the same name."""
    found, text = compared(tmp_path, quic(tmp_path / "base", "newreno"), quic(tmp_path / "head", "beta"), "reno")
    assert found.exit_status == 1
    first = found.compared[0]
    assert (first.quantity.label, first.quantity.name, first.change) == ("beta", "kept", Movement.MOVED)
    assert first.before == pytest.approx(0.5, abs=0.03) and first.after == pytest.approx(0.7, abs=0.03)
    assert "reno: beta: kept moved from 0.5" in text

"""An image of the QUIC interop runner as the stack under test, from a root file system built here."""

import pathlib
import re
import shutil
import subprocess
import threading

import helpers
import pytest
from helpers import setting

from conformance.engine import benches
from conformance.lab import adapter
from conformance.model.errors import UserError
from conformance.model.networks.place import Cell
from conformance.model.trials.trial import Outcome

SOURCE = pathlib.Path(helpers.__file__).parent / "interop_endpoint.c"


@pytest.fixture(scope="module")
def rootfs(tmp_path_factory):
    """Build a root file system of a shell, the C library, the endpoint, and the script that the runner starts."""
    root = tmp_path_factory.mktemp("image") / "endpoint"
    for folder in ("bin", "etc", "logs", "tmp"):
        (root / folder).mkdir(parents=True)
    endpoint = root / "bin" / "endpoint"
    subprocess.run(["cc", "-O1", "-o", endpoint, SOURCE], check=True)
    shutil.copy("/bin/sh", root / "bin" / "sh")
    for program in (endpoint, "/bin/sh"):
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"/\S+", listed):
            (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, root / library.lstrip("/"))
    script(root, "echo hello; exec /bin/endpoint")
    return root


def script(root, text):
    path = root / "run_endpoint.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def measure(rootfs):
    bench = benches.find(benches.Choice(interop_rootfs=str(rootfs)))
    trials = bench.trials("cubic", setting(Cell(10, 20, 0), transfer_s=0.5), [1])
    (found,) = bench.place("cubic").room.run(bench.adapter, [trials], threading.Event())
    return found


@pytest.mark.guest
def test_an_image_runs_unchanged(rootfs):
    found = measure(rootfs)
    assert found.outcome is Outcome.OK, found.message
    assert found.trial.scheme.stack == "interop-endpoint"
    # The transfer takes 521 datagrams of 1200 bytes, one every 2 ms, and two one-way trips.
    assert found.metrics["completion_s"] == pytest.approx(1.09, abs=0.03)


@pytest.mark.guest
@pytest.mark.parametrize(
    ("text", "outcome", "words"),
    [
        ("exit 127", Outcome.UNSUPPORTED, "does not offer"),
        (
            'test "$ROLE" = client || exec /bin/endpoint; : > /downloads/625000',
            Outcome.FAILED,
            "0 bytes were",
        ),
        ('test "$ROLE" = client && exit 3; exec /bin/endpoint', Outcome.FAILED, "status 3"),
        (": > /bin/evil && exec /bin/endpoint; exit 5", Outcome.ERROR, "evil"),
    ],
)
def test_an_image_that_fails_says_how(rootfs, tmp_path, text, outcome, words):
    copy = tmp_path / "copy"
    shutil.copytree(rootfs, copy)
    script(copy, text)
    found = measure(copy)
    assert found.outcome is outcome
    assert words in found.message
    assert not (copy / "bin" / "evil").exists()


def test_a_folder_that_is_no_root_file_system_is_refused(tmp_path):
    with pytest.raises(UserError, match="is not a root file system"):
        adapter.load_interop(tmp_path)
    with pytest.raises(UserError, match="name it with --interop-rootfs"):
        benches.find(benches.Choice(stack="interop"))


def test_what_an_image_holds_decides_its_digest(rootfs, tmp_path):
    copy = tmp_path / rootfs.name
    shutil.copytree(rootfs, copy, symlinks=True)
    assert adapter.load_interop(copy).digest == adapter.load_interop(rootfs).digest
    (copy / "bin" / "sh").chmod(0o700)
    assert adapter.load_interop(copy).digest != adapter.load_interop(rootfs).digest

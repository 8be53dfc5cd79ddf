"""The lab version: what it covers, and when results are kept under it."""

import ast
import json
import pathlib
import shutil

import pytest

from conformance.lab import version
from conformance.support import paths

ROOT = paths.PACKAGE.parent
#: files that the lab's sources import although results do not depend on them, each with the reason
BESIDE = {
    "conformance/support/files.py": "writes files whole",
    "conformance/kernel/store.py": "finds kernels; a kernel's own digest is part of each result's key",
    "conformance/lab/building.py": "builds adapters; what it built is part of the stack's digest",
    "conformance/lab/allowance.py": "lends memory of this machine",
    "conformance/lab/cores.py": "lends cores of this machine",
    "conformance/lab/endings.py": "words for a user",
    "conformance/lab/memory.py": "where a guest's memory lies; results are the same",
    "conformance/support/scratch.py": "folders on the host's disk; guests find theirs under one name",
    "conformance/lab/room.py": "what a room is; the rooms themselves are covered",
    "conformance/lab/host_process.py": "runs `describe`, whose answer is part of the stack's digest",
    "conformance/lab/topology.py": "reads what a topology says, which is covered",
    "conformance/lab/version.py": "this very digest",
    "conformance/model/digest.py": "pinned by the profiles' digests in tests/golden",
    "conformance/model/errors.py": "words for a user",
    "conformance/model/trials/trial.py": "the result's own form; the goldens pin it",
    "conformance/lab/sources.py": "builds with working trees, whose digest is part of the stack's",
    "conformance/support/limits.py": "how many guests at a time",
    "conformance/support/paths.py": "where files are",
    "conformance/support/schema.py": "refuses documents",
    "conformance/support/spelling.py": "suggests names",
}


def imported(path):
    """Yield the files of the suite that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            file = ROOT.joinpath(*name.split(".")).with_suffix(".py")
            if name.startswith("conformance") and file.exists():
                yield file


def test_all_that_the_lab_imports_is_covered_or_said_to_be_beside_the_point():
    sources = {file for pattern in version.SOURCES for file in ROOT.glob(pattern)}
    reached, queue = set(), [file for file in sources if file.suffix == ".py"]
    while queue:
        file = queue.pop()
        if file not in reached and str(file.relative_to(ROOT)) not in BESIDE:
            reached.add(file)
            queue += imported(file)
    assert reached <= sources
    assert all((ROOT / name).is_file() for name in BESIDE)


def test_every_pattern_names_files():
    assert all(list(ROOT.glob(pattern)) for pattern in version.SOURCES)


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """Make a copy of the suite that a test may change, with an attested version file."""
    package = tmp_path / "conformance"
    shutil.copytree(paths.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "topologies", tmp_path / "topologies")
    (tmp_path / "zones").mkdir()
    monkeypatch.setattr(paths, "PACKAGE", package)
    monkeypatch.setattr(version, "VERSION_FILE", package / "lab" / "version.json")
    version._attestation.cache_clear()
    version.attest("a" * 16)
    yield package
    version._attestation.cache_clear()


@pytest.mark.parametrize("name", ["guest/trial.py", "proxy/pairs.c", "model/networks/setting.py", "lab/manifest.py"])
def test_changed_sources_are_a_version_of_their_own_until_they_are_attested(copy, name):
    assert version.lab_version() == "a" * 16
    with open(copy / name, "a") as f:
        f.write("# a comment\n" if name.endswith(".py") else "/* */\n")
    changed = version.lab_version()
    assert changed == version.source_digest() != "a" * 16
    version.attest(version.current_version())
    assert version.lab_version() == "a" * 16
    about = json.loads(version.VERSION_FILE.read_text())
    assert about == {"version": "a" * 16, "attested_sources": changed}


def test_what_is_committed_is_attested():
    assert version.lab_version() == version.current_version(), (
        "run `make attest`, and commit conformance/lab/version.json"
    )


def test_other_files_do_not_count(copy):
    with open(copy / "cli" / "base.py", "a") as f:
        f.write("# a comment\n")
    assert version.lab_version() == "a" * 16
    assert not list(pathlib.Path(copy).glob("lab/*.tmp"))

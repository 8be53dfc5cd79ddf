"""Both wheels in a fresh environment, without a compiler and with an empty cache: from doctor to verdict and report.

They are installed from files, without an index. The fresh environment gets links to the wheels' dependencies in the
environment that runs the tests, and to nothing else, so that packages which only an extra brings are missing.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv
import zlib
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

import pytest
import wheels
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.guest

#: programs that are needed besides the environment's own; guests have a PATH of their own
_PROGRAMS = ("dpkg-query", "openssl")
#: the most bytes that a plain install of both wheels may download
_MOST_BYTES = 70 * 10**6


def plain(wanted, found=None):
    """Return {name: distribution} of all that requirements ask for without extras, directly or through others."""
    found = {} if found is None else found
    for text in wanted:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[name] = metadata.distribution(name)
            plain(found[name].requires or (), found)
    return found


def link(distribution, packages):
    """Link an installed distribution's files and folders into another environment's folder of packages."""
    home = pathlib.Path(distribution.locate_file(""))
    for name in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
        (packages / name).symlink_to(home / name)


@pytest.fixture(scope="module")
def dependencies():
    return plain(metadata.requires("cc-conformance") or pytest.fail("the suite's own metadata is missing"))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the paths of both wheels."""
    folder, found = tmp_path_factory.mktemp("built"), []
    for where in (".", "kernel-wheel"):
        said, wheel = wheels.build(folder / where / "dist", where)
        assert wheel, said
        found.append(wheel)
    return found


@pytest.fixture(scope="module")
def installed(built, dependencies, tmp_path_factory):
    """Return a function that runs a program of the environment in a folder of its own, and gives (status, output)."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    base = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = pathlib.Path(sysconfig.get_path("purelib", "venv", base))
    for distribution in dependencies.values():
        link(distribution, packages)
    # Install without an index but with dependencies, so that pip fails if a wheel requires anything that is missing.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "-q"]
    subprocess.run([*pip, "--no-index", *built], check=True)
    programs = folder / "programs"
    programs.mkdir()
    for name in _PROGRAMS:
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not installed"))
    (folder / "work").mkdir()
    environment = {"HOME": str(folder), "PATH": f"{python.parent}{os.pathsep}{programs}"}

    def run(*command):
        done = subprocess.run(
            [python.parent / command[0], *command[1:]], cwd=folder / "work", env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800,
        )  # fmt: skip
        return done.returncode, done.stdout

    return run


def test_it_is_the_installed_suite_and_there_is_no_compiler(installed):
    status, said = installed(
        "python", "-c", "import conformance, shutil; print(conformance.__file__, shutil.which('cc'))"
    )
    assert status == 0, said
    path, compiler = said.split()
    assert path.endswith("site-packages/conformance/__init__.py")
    assert "installed" in path
    assert compiler == "None"


@pytest.mark.parametrize("module", ["altair", "pyarrow", "vl_convert", "hypothesis"])
def test_what_extras_bring_is_not_there(installed, module):
    status, said = installed("python", "-c", f"import {module}")
    assert (status, f"No module named '{module}'" in said) == (1, True), said


def test_a_plain_install_pulls_little(built, dependencies):
    """A wheel is little larger than its compressed files. Files without a hash are left out: installing makes them."""
    files = [
        pathlib.Path(file.locate())
        for distribution in dependencies.values()
        for file in distribution.files
        if file.hash and file.parts[0] != ".."
    ]
    with ThreadPoolExecutor() as pool:
        pulled = sum(pool.map(lambda path: len(zlib.compress(path.read_bytes())), files))
    assert pulled > 20 * 10**6
    assert 1.05 * pulled + sum(wheel.stat().st_size for wheel in built) <= _MOST_BYTES


def test_doctor_misses_nothing(installed):
    status, said = installed("conformance", "doctor")
    assert (status, "BAD" in said) == (0, False), said
    assert "linux-tcp: built" in said
    assert "a guest boots" in said


def test_clients_are_found_and_say_what_they_are(installed):
    program = (
        "from conformance.lab import adapter; print(adapter.load('linux-tcp').build, adapter.load('h3-client').build)"
    )
    status, said = installed("python", "-c", program)
    assert status == 0, said
    assert said.count("cc_conformance_kernel/cache/adapters") == 2


def judged(installed, *asked):
    """Test CUBIC as `asked`, and report; return what pytest printed."""
    status, said = installed("python", "-m", "pytest", "--pyargs", "conformance.suite", *asked)
    assert status == 0, said
    status, reported = installed("conformance", "report", "--no-terminal")
    assert status == 0, reported
    assert "report/index.html" in reported
    return said


def test_a_cell_has_a_verdict_and_a_report(installed):
    assert "1 passed" in judged(installed, "-m", "cubic and heatmap", "--grid", "10mbps-100ms-4pct")


@pytest.mark.thorough
def test_the_smoke_tier_has_a_verdict_and_a_report(installed):
    assert "12 passed" in judged(installed, "-m", "cubic and smoke")

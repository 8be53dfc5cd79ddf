"""Both wheels in a fresh environment, without a compiler and with an empty cache: from doctor to verdict and report.

They are installed from files, with no index. Their dependencies are those of the environment that the tests run in,
which the fresh one sees, too; tests/unit/test_wheels.py checks that they are asked for.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import venv

import pytest
import wheels

pytestmark = pytest.mark.guest

#: what is run beside the environment's own programs; guests have a PATH of their own
_PROGRAMS = ("dpkg-query", "openssl")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a function that runs a program of the environment in a folder of its own: (exit status, output)."""
    folder = tmp_path_factory.mktemp("installed")
    found = []
    for where in (".", "kernel-wheel"):
        said, wheel = wheels.build(folder / where / "dist", where)
        assert wheel, said
        found.append(str(wheel))
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    base = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    packages = pathlib.Path(sysconfig.get_path("purelib", "venv", base))
    # A folder that is named in a .pth file is looked in last, and .pth files in it count for nothing: no checkout.
    shared = [entry for entry in sys.path if entry.endswith("-packages")]
    (packages / "shared.pth").write_text("\n".join(shared) + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--ignore-installed", *found], check=True)
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


def test_the_smoke_tier_has_a_verdict_and_a_report(installed):
    status, said = installed("python", "-m", "pytest", "--pyargs", "conformance.suite", "-m", "cubic and smoke")
    assert status == 0, said
    assert "12 passed" in said
    status, said = installed("conformance", "report", "--no-terminal")
    assert status == 0, said
    assert "report/index.html" in said

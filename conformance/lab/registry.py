"""Fetch a version of a crate, Go module or Python package from its registry, by the tools that builds use
(`--source NAME=VERSION`), and learn which one is the newest.

What is fetched is kept, so that a version is fetched once, and is there without a network from then on.
"""

import contextlib
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Sequence

from conformance.lab import manifest
from conformance.model.errors import UserError
from conformance.support import paths

#: what a version looks like: 0.13.1, v0.63.0, 1.0.0-rc.2
VERSION = re.compile(r"v?\d+(\.\d+)+([-+][\w.+-]+)?")
_TIMEOUT_S = 300
#: the Python in guests, whatever Python runs this
_PYTHON = "/usr/bin/python3"


def crate(name: str, version: str) -> pathlib.Path:
    """Return the folder of a crate's version. Raises UserError."""
    with _asking_for(name, f"={version}") as place:
        command = ["cargo", "metadata", "--format-version", "1"]
        try:
            printed = _run([*command, "--offline"], place)
        except UserError:
            printed = _run(command, place)
    packages = json.loads(printed)["packages"]
    return next(pathlib.Path(entry["manifest_path"]).parent for entry in packages if entry["name"] == name)


@contextlib.contextmanager
def _asking_for(name: str, version: str) -> Iterator[pathlib.Path]:
    """Yield the folder of a package that needs a version of a crate and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "lib.rs").write_text("")
        (place / "Cargo.toml").write_text(
            '[package]\nname = "asks"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n'
            f'[dependencies]\n"{name}" = {{ version = "{version}", default-features = false }}\n'
        )
        yield place


def module(name: str, version: str) -> pathlib.Path:
    """Return the folder of a Go module's version. Raises UserError."""
    tag = version if version.startswith("v") else f"v{version}"
    with tempfile.TemporaryDirectory() as folder:
        return pathlib.Path(json.loads(_run(["go", "mod", "download", "-json", f"{name}@{tag}"], folder))["Dir"])


def package(name: str, version: str) -> pathlib.Path:
    """Return a folder with what a version of a Python package installs, without what it needs. Raises UserError."""
    kept = paths.cache("packages", f"{name}-{version}")
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            new = pathlib.Path(folder, "new")
            options = ("--disable-pip-version-check", "--no-compile", "--no-deps", "--only-binary", ":all:")
            _run([_PYTHON, "-m", "pip", "install", *options, "--target", str(new), f"{name}=={version}"], folder)
            shutil.rmtree(new / "bin", ignore_errors=True)  # programs with the path of this folder in them
            with contextlib.suppress(OSError):  # another process has fetched it meanwhile
                new.rename(kept)
    return kept


def newest_crate(name: str) -> str:
    """Return the newest version of a crate that is no pre-release. Raises UserError."""
    with _asking_for(name, "*") as place:
        _run(["cargo", "generate-lockfile"], place)
        locked = tomllib.loads((place / "Cargo.lock").read_text())["package"]
    return max(
        (str(p["version"]) for p in locked if p["name"] == name),
        key=lambda version: [*map(int, re.findall(r"\d+", version))],
    )


def newest_module(name: str) -> str:
    """Return the newest version of a Go module, of the same major version. Raises UserError."""
    with tempfile.TemporaryDirectory() as folder:
        version: str = json.loads(_run(["go", "list", "-m", "-json", f"{name}@latest"], folder))["Version"]
    return version


def newest_package(name: str) -> str:
    """Return the newest version of a Python package that this system's Python can install. Raises UserError."""
    options = ("--disable-pip-version-check", "--no-deps", "--ignore-installed", "--dry-run", "--quiet")
    with tempfile.TemporaryDirectory() as folder:
        # Without --target, pip refuses to install where the system's packages are, although nothing is installed.
        command = [_PYTHON, "-m", "pip", "install", *options, "--target", folder, "--report", "-", name]
        version: str = json.loads(_run(command, folder))["install"][0]["metadata"]["version"]
    return version


def _run(command: Sequence[str], folder: str | pathlib.Path) -> str:
    """Return what a tool prints. Raises UserError with its message."""
    tool = manifest.which_to_build(command[0])
    if tool is None:
        raise UserError(f"{command[0]} is not found, which fetches versions", f"install {command[0]}")
    try:
        done = subprocess.run(
            [tool, *command[1:]], cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{command[0]} fetched nothing within {_TIMEOUT_S} s", "try again") from None
    if done.returncode:
        name = f"{pathlib.Path(command[0]).name}: "
        reason = _reason(done.stdout, done.stderr).removeprefix(name)
        raise UserError(f"{name}{reason}", "name a version that the registry has, or see that it answers")
    return done.stdout


def _reason(printed: str, complained: str) -> str:
    try:
        return " ".join(str(json.loads(printed)["Error"]).replace("\\t", " ").split())
    except (ValueError, KeyError, TypeError):
        lines = [line for line in complained.splitlines() if line.strip()]
        return next((line for line in lines if line.lower().startswith("error")), (lines or ["it failed"])[-1])

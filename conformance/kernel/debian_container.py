"""Fetch kernel sources in a Debian container, on machines that get no packages from Debian, such as Ubuntu machines.

Only the package is fetched in the container, by the same code as on Debian; kernels are built on the machine itself.
"""

import pathlib
import shutil
import subprocess

from conformance.model.errors import UserError
from conformance.support import paths

#: container programs, in the order in which they are tried: machines with both, such as GitHub's, mostly have docker
#: set up
_PROGRAMS = ("docker", "podman")
_IMAGE = "debian:12-slim"
_ANSWER_S, _FETCH_S = 20, 1800
_SOURCES = "/cache/sources"
# The container may run as another user, so the files are given to the owner of the folder.
_SCRIPT = f"""
trap 'chown -R --reference={_SOURCES} {_SOURCES}' EXIT
apt-get update -q && apt-get install -q -y --no-install-recommends python3 &&
python3 -c 'import sys; from conformance.kernel import source; source.locate(sys.argv[1])' "$1"
"""


def program() -> str | None:
    """Return the name of the program that can run containers here, or None."""
    return next((name for name in _PROGRAMS if shutil.which(name) and _answers(name)), None)


def _answers(name: str) -> bool:
    """Return whether the program works for this user: being installed is not enough."""
    try:
        return subprocess.run([name, "info"], capture_output=True, timeout=_ANSWER_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def fetch(package: str, name: str, sources: pathlib.Path) -> None:
    """Run source.locate() in a container, started by the program `name`, to fetch a package into the folder `sources`.

    Raises UserError.
    """
    volumes = [f"{sources}:{_SOURCES}", f"{paths.PACKAGE}:/suite/conformance:ro"]
    variables = [
        "CC_CONFORMANCE_CACHE=/cache",
        "PYTHONPATH=/suite",
        "PYTHONDONTWRITEBYTECODE=1",
        "DEBIAN_FRONTEND=noninteractive",
    ]
    options = [word for volume in volumes for word in ("-v", volume)]
    options += [word for variable in variables for word in ("-e", variable)]
    command = [name, "run", "--rm", *options, _IMAGE, "sh", "-c", _SCRIPT, "sh", package]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"cannot fetch {package} with {name}: {error}", "give a kernel source with --source") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        mend = "give a kernel source with --source, such as a linux-source package of this distribution"
        raise UserError(f"cannot fetch {package} in a container of {_IMAGE} with {name}: {last}", mend)

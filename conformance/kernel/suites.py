"""Find linux-source packages in Debian's newer suites, on this machine's own mirror, without changing its apt setup.

A source package may come from any suite, because it is only unpacked. apt uses a separate state for it, in a folder
that the caller deletes, and trusts what is signed by Debian's installed keyring.
"""

import pathlib
import re
import shutil
import subprocess
from collections.abc import Mapping

from conformance.model.errors import UserError

#: the suites, from the smallest package list to the largest; these names do not change with Debian's releases
SUITES = ("stable-backports", "testing", "unstable")
#: Debian keeps only a few kernel series at a time: a series from this one on may be replaced by a newer one, which will
#: do as well
REPLACEABLE = (7, 2)
_KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGE = re.compile(r"linux-source-(\d+)\.(\d+)(?:\.\d+)?\Z")
_UPDATE_TIMEOUT_S = 300


def series(package: str) -> tuple[int, int] | None:
    """Return (7, 2) for linux-source-7.2, and (6, 8) for Ubuntu's linux-source-6.8.0; None for any other name."""
    match = _PACKAGE.match(package)
    return (int(match[1]), int(match[2])) if match else None


def find(package: str, folder: pathlib.Path) -> tuple[str, list[str]]:
    """Return (package, options with which `apt-get download` gets it): the requested package, or a newer one instead.

    `folder` holds apt's files and must exist until the download is done. Raises UserError.
    """
    origin = mirror()
    if not origin:
        raise UserError(
            f"apt knows neither {package} nor a Debian mirror to look for it",
            "run `apt-get update`, or give a tarball or folder with --source",
        )
    if not _KEYRING.exists():
        raise UserError(f"looking for {package} needs {_KEYRING}", "install debian-archive-keyring")
    held: dict[str, list[str]] = {}
    failures: list[str] = []
    wanted, looked = series(package) or (0, 0), list[str]()
    # New series come to the last suite first: a series newer than all in there is in no other suite.
    for suite in SUITES[::-1] if wanted > REPLACEABLE else SUITES:
        looked.append(suite)
        options = _options(origin, suite, folder / suite)
        done = _run(["apt-get", *options, "update"])
        if done.returncode != 0:
            failures.append(f"{suite}: {_last_line(done)}")
            continue
        for name in listed(*options):
            held.setdefault(name, options)
        if package in held:
            return package, held[package]
        if held and suite == SUITES[-1] and all((series(name) or wanted) < wanted for name in held):
            break
    instead = newest(held, package)
    if instead:
        return instead, held[instead]
    raise UserError(
        f"neither this machine's apt nor its mirror's {', '.join(looked)} has {package} "
        f"({'; '.join(failures) or 'they have ' + (', '.join(sorted(held)) or 'no kernel source')})",
        "run `apt-get update`, or give another package, a tarball or a folder with --source",
    )


def newest(held: Mapping[str, object], package: str) -> str | None:
    """Return the replacement for a package that Debian no longer has: the newest of `held` that is newer than it.

    Return None if there is none, or if the package's series is older than REPLACEABLE.
    """
    wanted = series(package)
    if wanted is None or wanted < REPLACEABLE:
        return None
    newer = {number: name for name in held if (number := series(name)) and number > wanted}
    return newer[max(newer)] if newer else None


def listed(*options: str) -> list[str]:
    """Return the linux-source packages that apt knows with these options."""
    lines = _run(["apt-cache", *options, "search", "--names-only", "^linux-source-[0-9.]+$"]).stdout.splitlines()
    return [name for line in lines if line.strip() and series(name := line.split()[0])]


def mirror() -> str | None:
    """Return the URI of this machine's Debian mirror; None if it has none, or no package lists yet."""
    if not shutil.which("apt-get"):
        return None
    wanted = ["Created-By: Packages", "Component: main", "Origin: Debian", "Label: Debian"]
    mirrors = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted]).stdout.split()
    return mirrors[0] if mirrors else None


def _options(origin: str, suite: str, folder: pathlib.Path) -> list[str]:
    """Return apt options for one suite and nothing else, with all of apt's files in `folder`."""
    for part in ("lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "sources.list").write_text(f"deb [signed-by={_KEYRING} target=Packages] {origin} {suite} main\n")
    settings = {
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::Lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Update::Error-Mode": "any",
        # If run by root, apt would switch to a user that may not write to root's cache.
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_UPDATE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_UPDATE_TIMEOUT_S} s")


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of apt's errors, without the URLs in it."""
    line = (done.stderr.strip().splitlines() or ["failed"])[-1]
    return re.sub(r"\S+://\S+\s*", "", line)

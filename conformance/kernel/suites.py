"""linux-source packages of Debian's newer suites, from this machine's own mirror; nothing of its apt is changed.

A package of sources may come from any suite: it is only unpacked. apt is given a state of its own for it, in a
folder that the caller throws away, and trusts what Debian's installed keyring signed.
"""

import pathlib
import re
import shutil
import subprocess
from collections.abc import Mapping

from conformance.model.errors import UserError

#: from small lists to large ones; names that do not change with the releases
SUITES = ("stable-backports", "testing", "unstable")
#: Debian keeps only a few series at a time: one from here on may be replaced by a newer one, which serves as well
REPLACEABLE = (7, 2)
_KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_PACKAGE = re.compile(r"linux-source-(\d+)\.(\d+)(?:\.\d+)?\Z")
_UPDATE_TIMEOUT_S = 300


def series(package: str) -> tuple[int, int] | None:
    """Return (7, 2) for linux-source-7.2, and (6, 8) for Ubuntu's linux-source-6.8.0; None for what is no such name."""
    match = _PACKAGE.match(package)
    return (int(match[1]), int(match[2])) if match else None


def find(package: str, folder: pathlib.Path) -> tuple[str, list[str]]:
    """Return (package, apt options with which `apt-get download` gets it): the one asked for, or a newer one instead.

    `folder` is for apt's files and must exist until the download is done. Raises UserError.
    """
    origin = mirror()
    if not origin:
        raise UserError(
            f"apt knows no {package} and no Debian mirror to look for it",
            "run `apt-get update`, or give a tarball or folder with --source",
        )
    if not _KEYRING.exists():
        raise UserError(f"looking for {package} needs {_KEYRING}", "install debian-archive-keyring")
    held: dict[str, list[str]] = {}
    failures: list[str] = []
    asked, looked = series(package) or (0, 0), list[str]()
    # What came lately is in the last suite first: a series that is newer than all there is in no other.
    for suite in SUITES[::-1] if asked > REPLACEABLE else SUITES:
        looked.append(suite)
        options = _options(origin, suite, folder / suite)
        done = _run(["apt-get", *options, "update"])
        if done.returncode != 0:
            failures.append(f"{suite}: {_last_line(done)}")
            continue
        listed = _run(["apt-cache", *options, "search", "--names-only", "^linux-source-[0-9.]+$"]).stdout
        for name in _names(listed):
            held.setdefault(name, options)
        if package in held:
            return package, held[package]
        if held and suite == SUITES[-1] and all((series(name) or asked) < asked for name in held):
            break
    instead = newest(held, package)
    if instead:
        return instead, held[instead]
    raise UserError(
        f"neither this machine's apt nor {', '.join(looked)} of its mirror have {package} "
        f"({'; '.join(failures) or 'they have ' + (', '.join(sorted(held)) or 'no kernel source')})",
        "run `apt-get update`, or give another package, a tarball or a folder with --source",
    )


def newest(held: Mapping[str, object], package: str) -> str | None:
    """Return what to take for a package that Debian has replaced: the newest of `held`, if newer, and such will do."""
    asked = series(package)
    if asked is None or asked < REPLACEABLE:
        return None
    newer = {found: name for name in held if (found := series(name)) and found > asked}
    return newer[max(newer)] if newer else None


def _names(listed: str) -> list[str]:
    """Return the names of packages in what `apt-cache search` prints."""
    words = (line.split()[0] for line in listed.splitlines() if line.strip())
    return [word for word in words if series(word)]


def mirror() -> str | None:
    """Return where this machine gets Debian from; None where it does not, or has no lists yet."""
    if not shutil.which("apt-get"):
        return None
    wanted = ["Created-By: Packages", "Component: main", "Origin: Debian", "Label: Debian"]
    mirrors = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted]).stdout.split()
    return mirrors[0] if mirrors else None


def _options(origin: str, suite: str, folder: pathlib.Path) -> list[str]:
    """Return apt options for one suite and nothing else, all of whose files are in `folder`."""
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
        # For root, apt would become a user who may not write to root's cache.
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_UPDATE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_UPDATE_TIMEOUT_S} s")


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return why apt failed, in its own words, without the addresses in them."""
    line = (done.stderr.strip().splitlines() or ["failed"])[-1]
    return re.sub(r"\S+://\S+\s*", "", line)

"""Find kernel sources: a folder, a tarball, or one of Debian's linux-source packages, which is fetched if necessary.

A package is only downloaded and unpacked into the user's cache; this needs no privileges and installs nothing. A
package that apt does not know is looked for in Debian's newer suites, or in a container if the machine has no Debian
mirror.

CACHE/sources/PACKAGE/ holds the package's files and its hash (_ARCHIVE), or the name of a newer package (_REPLACED_BY)
that was taken instead.

Machines that get no packages from Debian, such as Ubuntu machines, fetch in a Debian container. Only the package is
fetched there, by the same code as on Debian; kernels are built on the machine itself.
"""

import hashlib
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable

from conformance.kernel import suites
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import files, paths

#: called with a line of text
Say = Callable[[str], object]
#: Debian's package of the default kernel, which the zones are measured on. From Linux 6.16 on, guests run programs
#: under seccomp instead of ptrace, which costs less; a backport to older kernels would mean copying upstream's code.
DEFAULT = "linux-source-7.2"
OLDEST = (6, 1)
#: where linux-source packages are installed
_INSTALLED = pathlib.Path("/usr/src")
#: file with the SHA-256 of the package as it was downloaded, which is also in apt's lists
_ARCHIVE = "archive.sha256"
#: file with the name of the package that was taken instead
_REPLACED_BY = "replaced-by"


def _silent(line: str) -> None:
    pass


def locate(source: str | None = None, say: Say = _silent, note: Say = _silent) -> pathlib.Path:
    """Return the path of the source's tarball or folder, and fetch it if necessary.

    `source`: a path, or the name of a package such as linux-source-6.1; None for DEFAULT. `say` is called with a line
    before anything that takes long, `note` with a line if the source is not the one that was asked for. Raises
    UserError.
    """
    if source is not None and (path := _given(source)):
        return path
    package = _package(source, note)
    folder = _unpacked(package) or _fetched(package, say)
    if _packaged(folder) != package:
        note(f"Debian no longer has {package}; using {_packaged(folder)}")
    return folder


def here(source: str | None = None) -> pathlib.Path | None:
    """Return what locate() would return, or None if it would have to fetch that first. Raises UserError."""
    if source is not None and (path := _given(source)):
        return path
    return _unpacked(_package(source, _silent))


def announced(source: str | None = None) -> tuple[tuple[int, int], str] | None:
    """Return (version, digest of the archive) of the package that would be fetched, from apt's lists.

    Return None if apt does not know the package. Fetch nothing. Raises UserError.
    """
    package = _package(source, _silent)
    if not shutil.which("apt-cache"):
        return None
    known = suites.series(package)
    shown = subprocess.run(["apt-cache", "show", "--no-all-versions", package], capture_output=True, text=True).stdout
    digest_line = re.search(r"^SHA256: ([0-9a-f]{64})$", shown, re.MULTILINE)
    return (known, digest_line[1][: digests.DIGITS]) if known and digest_line else None


def named(source: str | None = None) -> tuple[tuple[int, int], str] | None:
    """Return (version, name) of the package that `source` names; None for a tarball or folder. Raises UserError."""
    if source is not None and _given(source):
        return None
    package = _package(source, _silent)
    known = suites.series(package)
    return (known, package) if known else None


def archive(path: pathlib.Path) -> tuple[tuple[int, int], str] | None:
    """Return (version, digest of the archive), as announced() does, of a fetched tarball's package.

    Return None for any other source.
    """
    package = _packaged(path)
    known, kept = suites.series(package), paths.cache("sources", package, _ARCHIVE)
    if not known or not path.is_relative_to(kept.parent) or not kept.exists():
        return None
    return known, kept.read_text().strip()[: digests.DIGITS]


def digest(path: pathlib.Path) -> str:
    """Return the digest of a source: of the tarball's bytes, or of the names and contents of a folder's files."""
    if path.is_file():
        return _sha256(path)[: digests.DIGITS]
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if ".git" in file.parts or file.is_symlink() or not file.is_file():
            continue
        total.update(str(file.relative_to(path)).encode() + b"\0")
        with open(file, "rb") as f:
            total.update(hashlib.file_digest(f, "sha256").digest())
    return total.hexdigest()[: digests.DIGITS]


def _sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def version(path: pathlib.Path) -> tuple[int, int]:
    """Return the version that a source's Makefile names, such as (7, 2) for Linux 7.2.12. Raises UserError."""
    if path.is_dir():
        makefile = path / "Makefile"
        text = makefile.read_text(errors="replace") if makefile.exists() else ""
    else:
        options = ["--occurrence=1", "--wildcards", "--no-wildcards-match-slash"]
        command = ["tar", "-xOf", str(path), *options, "linux*/Makefile"]
        text = subprocess.run(command, capture_output=True, text=True, errors="replace").stdout
    numbers = [re.search(rf"^{name} *= *(\d+)$", text, re.MULTILINE) for name in ("VERSION", "PATCHLEVEL")]
    major, minor = numbers
    if major is None or minor is None:
        raise UserError(f"{path} is not a kernel source: its Makefile names no version")
    return int(major[1]), int(minor[1])


def unpack(path: pathlib.Path, into: pathlib.Path) -> None:
    """Make a fresh copy of the source in the folder `into`. Raises UserError."""
    shutil.rmtree(into, ignore_errors=True)
    into.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, into, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        return
    into.mkdir()
    done = subprocess.run(
        ["tar", "-xf", str(path), "-C", str(into), "--strip-components=1"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise UserError(f"cannot unpack {path}: {(done.stderr.strip().splitlines() or ['tar failed'])[-1]}")
    if not (into / "arch" / "um").is_dir():
        raise UserError(f"{path} is not a kernel source: it has no arch/um")


def _given(source: str) -> pathlib.Path | None:
    """Return the absolute path of a tarball or folder; None if it does not exist. Raises UserError."""
    path = paths.given(source)
    if not paths.exists(path):
        return None
    if path.is_dir() and not (path / "arch" / "um").is_dir():
        raise UserError(f"{path} is not a kernel source: it has no arch/um")
    return path.absolute()


def _package(source: str | None, note: Say) -> str:
    """Return the name of the package that `source` names, or DEFAULT if it is None. Raises UserError.

    If this machine can get DEFAULT neither from its distribution, nor from a Debian mirror, nor in a container, return
    the distribution's nearest package instead.
    """
    if source is not None:
        if not suites.series(source):
            raise UserError(f"--source {source}: no such file, folder or linux-source package")
        return source
    if _unpacked(DEFAULT):
        return DEFAULT
    if _apt_knows(DEFAULT) or suites.mirror() or container_program():
        return DEFAULT
    if not shutil.which("apt-cache"):
        raise UserError(
            "this distribution has no linux-source packages that we know",
            "install podman, or give a kernel source with --source, for example an unpacked linux-7.2.tar.xz",
        )
    nearest = _nearest_package()
    note(
        f"this distribution has no {DEFAULT}, and there is no docker or podman to fetch it with;"
        f" using {nearest}, on which no zone was measured"
    )
    return nearest


def _nearest_package() -> str:
    """Return the distribution's linux-source package nearest to DEFAULT's series; newer ones are preferred."""
    packages = {known: name for name in suites.listed() if (known := suites.series(name)) and known >= OLDEST}
    if not packages:
        raise UserError("apt knows no linux-source package of 6.1 or later", "run `apt-get update`, or give --source")
    newer = [known for known in packages if known >= (suites.series(DEFAULT) or OLDEST)]
    return packages[min(newer, default=max(packages))]


def _fetched(package: str, say: Say) -> pathlib.Path:
    """Fetch a package, or the newer one that replaced it, and return its tarball. Raises UserError."""
    sources = paths.cache("sources")
    if not _apt_knows(package) and not suites.mirror() and (program := container_program()):
        say(f"fetching {package} in a Debian container with {program} (this takes some minutes)")
        with files.errors(sources, "free space there"):
            sources.mkdir(parents=True, exist_ok=True)
        fetch_in_container(package, program, sources)
        if fetched := _unpacked(package):
            return fetched
        raise UserError(f"{program} did not fetch {package}", "give a kernel source with --source")
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is needed to fetch {package}", "give a kernel source with --source")
    with files.errors(sources, "free space there"):
        sources.mkdir(parents=True, exist_ok=True)
        # Download to a temporary folder and move it into place: an interrupted download must not pass for a source.
        with tempfile.TemporaryDirectory(dir=sources) as folder:
            temporary = pathlib.Path(folder)
            taken, options = package, list[str]()
            if not _apt_knows(package):
                say(f"looking for {package} in newer suites of Debian ({', '.join(suites.SUITES)}), for about a minute")
                taken, options = suites.find(package, temporary)
            if not _unpacked(taken):
                say(f"fetching {taken}")
                _download(taken, temporary, options)
                shutil.rmtree(sources / taken, ignore_errors=True)
                (temporary / "unpacked").replace(sources / taken)
            if taken != package:
                files.write(sources / package / _REPLACED_BY, taken + "\n")
    unpacked = _unpacked(package)
    if not unpacked:
        raise UserError(f"{taken} contains no source tarball", "give a kernel source with --source")
    return unpacked


def _unpacked(package: str) -> pathlib.Path | None:
    """Return the tarball of a package, or of the one that replaced it, if it is installed or was fetched before."""
    for folder in (_INSTALLED, paths.cache("sources", package)):
        for tarball in _tarballs(folder, package):
            return tarball
    replaced = paths.cache("sources", package, _REPLACED_BY)
    return _unpacked(replaced.read_text().strip()) if replaced.exists() else None


def _packaged(tarball: pathlib.Path) -> str:
    """Return the name of the package that a tarball is named after."""
    return tarball.name.partition(".tar")[0]


def _apt_knows(package: str) -> bool:
    if not shutil.which("apt-cache"):
        return False
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


def _tarballs(folder: pathlib.Path, package: str) -> list[pathlib.Path]:
    """Return the package's tarballs below `folder`: for 6.1 linux-source-6.1.tar.xz, not linux-source-6.12.tar.xz."""
    name = re.compile(re.escape(package) + r"\.tar\.\w+\Z")
    return sorted(path for path in folder.glob("**/linux-source-*.tar.*") if name.match(path.name))


def _download(package: str, into: pathlib.Path, options: list[str]) -> None:
    done = subprocess.run(["apt-get", *options, "download", package], cwd=into, capture_output=True, text=True)
    packages = list(into.glob("*.deb"))
    if done.returncode == 0 and packages:
        unpacked = into / "unpacked"
        done = subprocess.run(["dpkg-deb", "-x", str(packages[0]), str(unpacked)], capture_output=True, text=True)
        if done.returncode == 0:
            (unpacked / _ARCHIVE).write_text(_sha256(packages[0]) + "\n")
            return
    last = (done.stderr.strip().splitlines() or ["failed"])[-1]
    raise UserError(f"cannot fetch {package}: {last}", "run `apt-get update`, free space, or give --source")


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


def container_program() -> str | None:
    """Return the name of the program that can run containers here, or None."""
    return next((name for name in _PROGRAMS if shutil.which(name) and _answers(name)), None)


def _answers(name: str) -> bool:
    """Return whether the program works for this user: being installed is not enough."""
    try:
        return subprocess.run([name, "info"], capture_output=True, timeout=_ANSWER_S).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def fetch_in_container(package: str, name: str, sources: pathlib.Path) -> None:
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

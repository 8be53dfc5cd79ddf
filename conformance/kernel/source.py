"""Kernel sources: a folder, a tarball, or the distribution's linux-source package.

The package is only downloaded and unpacked into the user's cache: no rights needed, nothing installed. One that
apt does not know is looked for in Debian's newer suites.
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
from conformance.support import paths

#: is told what takes long, or is not what was asked for
Say = Callable[[str], object]
#: the series the zones were measured on
PREFERRED = (6, 12)
OLDEST = (6, 1)
_PACKAGE = re.compile(r"linux-source-(\d+)\.(\d+)(?:\.\d+)?\Z")


def locate(source: str | None = None, say: Say = lambda what: None) -> pathlib.Path:
    """Return the path of a tarball or folder: `source`, a name such as linux-source-6.1, or else the distribution's.

    `say` is told what takes long, or is not what was asked for. Raises UserError.
    """
    if source is None:
        return _from_package(_best_package(), say)
    path = pathlib.Path(source).expanduser()
    if path.exists():
        if path.is_dir() and not (path / "arch" / "um").is_dir():
            raise UserError(f"{path} is not a kernel source: it has no arch/um")
        return path.absolute()
    if _PACKAGE.match(source):
        return _from_package(source, say)
    raise UserError(f"--source {source}: no such file, folder or linux-source package")


def digest(path: pathlib.Path) -> str:
    """Return the digest of what the source holds: of the tarball's bytes, or of every file of the folder."""
    if path.is_file():
        with open(path, "rb") as f:
            return hashlib.file_digest(f, "sha256").hexdigest()[: digests.DIGITS]
    total = hashlib.sha256()
    for file in sorted(path.rglob("*")):
        if ".git" in file.parts or file.is_symlink() or not file.is_file():
            continue
        total.update(str(file.relative_to(path)).encode() + b"\0")
        with open(file, "rb") as f:
            total.update(hashlib.file_digest(f, "sha256").digest())
    return total.hexdigest()[: digests.DIGITS]


def version(path: pathlib.Path) -> tuple[int, int]:
    """Return (7, 2) for a source of Linux 7.2.12, as its Makefile says. Raises UserError."""
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
    """Make a fresh copy of the source as folder `into`. Raises UserError."""
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
        raise UserError(f"cannot unpack {path}: {done.stderr.strip().splitlines()[-1:] or 'tar failed'}")
    if not (into / "arch" / "um").is_dir():
        raise UserError(f"{path} is not a kernel source: it has no arch/um")


def _best_package() -> str:
    """Return the distribution's linux-source package nearest to the preferred series, newer before older."""
    if not shutil.which("apt-cache"):
        raise UserError(
            "this distribution has no linux-source packages that we know",
            "give a kernel source with --source, for example an unpacked linux-6.12.tar.xz",
        )
    listed = subprocess.run(
        ["apt-cache", "search", "--names-only", "^linux-source-[0-9.]+$"], capture_output=True, text=True
    ).stdout
    found = {}
    for line in listed.splitlines():
        match = _PACKAGE.match(line.split()[0])
        if match and (int(match[1]), int(match[2])) >= OLDEST:
            found[int(match[1]), int(match[2])] = line.split()[0]
    if not found:
        raise UserError("apt knows no linux-source package of 6.1 or later", "run `apt-get update`, or give --source")
    newer = sorted(v for v in found if v >= PREFERRED)
    return found[newer[0] if newer else max(found)]


def _from_package(package: str, say: Say) -> pathlib.Path:
    found = _unpacked(package)
    if found:
        return found
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(tool):
            raise UserError(f"{tool} is needed to fetch {package}", "give a kernel source with --source")
    sources = paths.cache("sources")
    try:
        sources.mkdir(parents=True, exist_ok=True)
        # Made aside and moved into place whole: an interrupted download must not pass for a source.
        with tempfile.TemporaryDirectory(dir=sources) as folder:
            temporary = pathlib.Path(folder)
            options: list[str] = []
            if not _apt_knows(package):
                say(f"looking for {package} in newer suites of Debian ({', '.join(suites.SUITES)}): about a minute")
                asked, (package, options) = package, suites.find(package, temporary)
                if package != asked:
                    say(f"Debian has no {asked} any more; taking {package}")
            if not _unpacked(package):
                say(f"fetching {package}")
                _download(package, temporary, options)
                shutil.rmtree(sources / package, ignore_errors=True)
                shutil.copytree(temporary / "unpacked", sources / package)
    except OSError as error:
        raise UserError(f"cannot write {sources}: {error.strerror or error}", "free space there") from None
    found = _unpacked(package)
    if not found:
        raise UserError(f"{package} holds no source tarball", "give a kernel source with --source")
    return found


def _unpacked(package: str) -> pathlib.Path | None:
    """Return the package's tarball, where it is installed or was fetched before."""
    for folder in (pathlib.Path("/usr/src"), paths.cache("sources", package)):
        for tarball in _tarballs(folder, package):
            return tarball
    return None


def _apt_knows(package: str) -> bool:
    return subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0


def _tarballs(folder: pathlib.Path, package: str) -> list[pathlib.Path]:
    """Return the package's tarballs below `folder`: linux-source-6.1.tar.xz, and not linux-source-6.12.tar.xz."""
    name = re.compile(re.escape(package) + r"\.tar\.\w+\Z")
    return sorted(path for path in folder.glob("**/linux-source-*.tar.*") if name.match(path.name))


def _download(package: str, into: pathlib.Path, options: list[str]) -> None:
    done = subprocess.run(["apt-get", *options, "download", package], cwd=into, capture_output=True, text=True)
    packages = list(into.glob("*.deb"))
    if done.returncode == 0 and packages:
        done = subprocess.run(
            ["dpkg-deb", "-x", str(packages[0]), str(into / "unpacked")], capture_output=True, text=True
        )
        if done.returncode == 0:
            return
    last = (done.stderr.strip().splitlines() or ["failed"])[-1]
    raise UserError(f"cannot fetch {package}: {last}", "run `apt-get update`, free space, or give --source")

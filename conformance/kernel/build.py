"""Build a guest kernel: unpack, patch, configure, compile, strip, store.

A kernel is a function of source, configuration and patches; the compiler changes its bytes, but not its behaviour. The
digest of the three is its name in the store, and it is built only once.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from conformance.kernel import source as sources, store, suites
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import limits, paths

#: called with (done, total, what is being done); a total of 0 means unknown
Progress = Callable[[int, int, str], object]
_RECIPE = paths.PACKAGE / "kernel"
_PATCHES, _SINCE = _RECIPE / "patches", "since-"
#: increased when the recipe builds something else without a change of the digested inputs
_RECIPE_VERSION = 1
#: how many of the last characters of a tool's output are shown in messages
_SAID = 200
#: how many files our configuration compiles in Linux 7.2; only the progress bar needs it
_ABOUT_OBJECTS = 870
_TOOLS = {
    "gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "patch": "patch", "strip": "binutils",
    "tar": "tar", "xz": "xz-utils",
}  # fmt: skip


def missing_tools() -> list[str]:
    """Return the Debian packages that a build needs and this machine lacks."""
    return sorted({package for tool, package in _TOOLS.items() if not shutil.which(tool)})


def own_patches(version: tuple[int, int]) -> list[pathlib.Path]:
    """Return our patches for a source of this version, in order. Raises UserError if there are none for it.

    Patches in patches/ are for every source, those in patches/since-VERSION for every source from that version on. Of
    the folders patches/VERSION, only the newest whose version is not later than this one is used.
    """
    since = [p for p in _PATCHES.glob(f"{_SINCE}*") if _number(p.name.removeprefix(_SINCE)) <= version]
    folders = [_PATCHES, _variants(version), *since]
    return sorted((p for folder in folders for p in folder.glob("*.patch")), key=lambda p: p.name)


def faster_patches(version: tuple[int, int]) -> list[pathlib.Path]:
    """Return our patches that only make guests faster. Some are variants of each other: those that apply are used."""
    return sorted((_variants(version) / "faster").glob("*.patch"))


def _variants(version: tuple[int, int]) -> pathlib.Path:
    folders = {_number(p.name): p for p in _PATCHES.iterdir() if p.is_dir() and not p.name.startswith(_SINCE)}
    reached = [number for number in folders if number <= version]
    if not reached:
        raise UserError(
            f"there are no patches for Linux {'.'.join(map(str, version))}",
            f"give a source of {'.'.join(map(str, min(folders)))} or later with --source",
        )
    return folders[max(reached)]


def _number(name: str) -> tuple[int, ...]:
    return tuple(int(part) for part in name.split("."))


def build(
    name: str = store.DEFAULT_NAME,
    source: str | None = None,
    patches: Sequence[str] = (),
    progress: Progress = lambda done, total, what: None,
    jobs: int | None = None,
    note: sources.Say = lambda line: None,
) -> store.Kernel:
    """Build (or find built) a kernel and give it `name`. Return the Kernel.

    `patches` are the user's, applied before our own. `progress(done, total, what)` is called with counts of compiled
    files. `note` is called with a line if the source is not the one that was asked for. `jobs`: how many files are
    compiled at a time; None for as many as this process may use of the machine. Raises UserError.
    """
    store.check_name(name)
    users = _users(patches)
    if source and (series := suites.series(str(source))):
        own_patches(series)  # raises before the source is looked for, as fetching package lists takes a minute
    progress(0, 0, "finding the source")
    digest = _built_from_package(source, users, note)
    if digest is None:
        lacking = missing_tools()
        if lacking:
            mend = f"run `apt-get install {' '.join(lacking)}`"
            raise UserError(f"building a kernel needs {', '.join(lacking)}", mend)
        located = sources.locate(source, lambda what: progress(0, 0, what), note)
        recipe = _recipe(sources.version(located), sources.digest(located), users)
        digest = recipe.digest
        if not (store.folder(digest) / "kernel.json").exists():
            _build(recipe, located, progress, jobs or limits.workers())
        for package in (sources.archive(located), sources.named(source)):
            if package:
                store.remember(_recipe(*package, users).digest, digest)
    store.link(name, digest)
    return store.find(name)


def digest_of(source: str | None = None, patches: Sequence[str] = (), note: sources.Say = lambda line: None) -> str:
    """Return the digest that build() would store a kernel under. Fetch nothing. Raises UserError.

    If the source would have to be fetched, the digest is a different one: it is made with the package's hash in apt's
    lists in place of the source's or, if apt does not know the package, with its name. `note` is called with a line
    that says so.
    """
    users = _users(patches)
    if located := sources.here(source):
        return _recipe(sources.version(located), sources.digest(located), users).digest
    words = "the source is not on this machine: the digest is computed from"
    if package := sources.announced(source):
        note(f"{words} that of the package that apt would fetch")
        return _recipe(*package, users).digest
    package = sources.named(source)
    if package is None:
        raise UserError(f"there is no {source}", "give a kernel source with --source")
    note(f"{words} the name {package[1]}, which apt does not know")
    return _recipe(*package, users).digest


def is_current(kernel: store.Kernel) -> bool:
    """Return whether a build from the kernel's source would make it again: a name keeps its kernel until it is built.

    So after an upgrade of the suite, a kernel may lack patches, or have other ones.
    """
    about = json.loads((kernel.binary.parent / "kernel.json").read_text())
    kept = about.get("inputs", {})
    release = re.match(r"(\d+)\.(\d+)", kernel.release)
    if not kept or not release:
        return False
    inputs = _recipe((int(release[1]), int(release[2])), kept["source"], ()).inputs
    return bool({**kept, "patches": kept["patches"][len(about["patches"]) :]} == inputs)


def _built_from_package(source: str | None, users: Sequence[pathlib.Path], note: sources.Say) -> str | None:
    """Return the digest of the kernel that was built from the package `source`, if its source is not on this machine.

    Otherwise, return None.
    """
    if sources.here(source):
        return None
    if package := sources.announced(source):
        return store.remembered(_recipe(*package, users).digest)
    package = sources.named(source)
    digest = package and store.remembered(_recipe(*package, users).digest)
    if package and digest:
        note(f"using the kernel built from {package[1]} earlier; only fetching shows whether Debian has a newer one")
    return digest


def _users(patches: Sequence[str]) -> list[pathlib.Path]:
    paths = [pathlib.Path(p) for p in patches]
    for patch in paths:
        if not patch.is_file():
            raise UserError(f"--patch {patch}: no such file")
    return paths


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Recipe:
    """Everything that determines a kernel (`inputs`, which the digest covers), and the files that the build uses."""

    inputs: Mapping[str, Any]
    users: Sequence[pathlib.Path]
    paths: Sequence[pathlib.Path]
    #: our patches that only make guests faster
    faster: Sequence[pathlib.Path]
    #: our part of the configuration, guest.config
    fragment: str

    @property
    def digest(self) -> str:
        build_digest: str = digests.of_value(self.inputs)
        return build_digest


def _recipe(version: tuple[int, int], source: str, users: Sequence[pathlib.Path]) -> _Recipe:
    """Return the recipe for a source of this version and digest with the user's patches. Raises UserError."""
    paths, faster = own_patches(version), faster_patches(version)
    fragment = (_RECIPE / "guest.config").read_text()
    inputs = {
        "recipe": _RECIPE_VERSION,
        "source": source,
        "config": digests.of_bytes(fragment.encode()),
        "patches": [digests.of_bytes(p.read_bytes()) for p in [*users, *paths, *faster]],
    }
    return _Recipe(inputs=inputs, users=users, paths=paths, faster=faster, fragment=fragment)


def _build(recipe: _Recipe, located: pathlib.Path, progress: Progress, jobs: int | None) -> None:
    digest, fragment = recipe.digest, recipe.fragment
    work = paths.cache("build", f"{digest}.{os.getpid()}")
    tree = work / "linux"
    try:
        progress(0, 0, "unpacking the source")
        sources.unpack(located, tree)
        for patch in [*recipe.users, *recipe.paths]:
            _apply(patch, tree)
        faster = []
        for patch in recipe.faster:
            if _patch(patch, tree, "--dry-run").returncode == 0:
                _apply(patch, tree)
                faster.append(patch)
        progress(0, 0, "configuring")
        log = work / "build.log"
        _make(tree, log, "tinyconfig")
        with open(tree / ".config", "a") as f:
            f.write(fragment + _congestion_controls(tree))
        _make(tree, log, "olddefconfig")
        _check_config(tree / ".config", fragment)
        _compile(tree, log, progress, jobs)
        home = work / "kernel"
        home.mkdir()
        _strip(tree / "linux", home / "linux")
        shutil.copy(tree / ".config", home / "config")
        release = (tree / "include" / "config" / "kernel.release").read_text().strip()
        about = {
            "release": release,
            "source": located.name,
            "patches": [p.name for p in recipe.users],
            "faster": [p.name for p in faster],
            # Guests of such a source (mainline since 6.16) run programs under seccomp instead of ptrace, which halves
            # the cost of a system call.
            "seccomp": '"seccomp="' in (tree / "arch" / "um" / "os-Linux" / "start_up.c").read_text(),
            "inputs": dict(recipe.inputs),
        }
        (home / "kernel.json").write_text(json.dumps(about, indent=2) + "\n")
        final = store.folder(digest)
        final.parent.mkdir(parents=True, exist_ok=True)
        if not final.exists():
            home.replace(final)
    except OSError as error:
        raise UserError(
            f"building the kernel in {paths.cache('build')} failed: {error.strerror or error}", "free space there"
        ) from None
    finally:
        # 90,000 files: this takes minutes on a busy disk.
        progress(0, 0, "removing the source that was built")
        shutil.rmtree(work, ignore_errors=True)


def _strip(program: pathlib.Path, to: pathlib.Path) -> None:
    done = subprocess.run(["strip", "-o", str(to), str(program)], capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        raise UserError(f"strip failed: {' '.join(done.stderr.split())[-_SAID:]}", "free space in the cache")


def _patch(patch: pathlib.Path, tree: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["patch", "-p1", "--forward", "--batch", "--no-backup-if-mismatch", "-i", str(patch.absolute()), *options],
        cwd=tree, capture_output=True, text=True, errors="replace",
    )  # fmt: skip


def _apply(patch: pathlib.Path, tree: pathlib.Path) -> None:
    done = _patch(patch, tree)
    if done.returncode != 0:
        failed = [line for line in done.stdout.splitlines() if "FAILED" in line or "can't find" in line]
        said = "; ".join(failed[:2]) or " ".join((done.stdout + done.stderr).split())[-_SAID:]
        raise UserError(
            f"{patch.name} does not apply to this source: {said}",
            "give the patch for this kernel version, or the source it was made for with --source",
        )


def _environment() -> dict[str, str]:
    """Return the environment of a build; it keeps this user, machine and time out of the kernel."""
    pinned = {"KBUILD_BUILD_TIMESTAMP": "2000-01-01", "KBUILD_BUILD_USER": "cc", "KBUILD_BUILD_HOST": "cc"}
    return {**os.environ, "LC_ALL": "C", **pinned}


def _make(tree: pathlib.Path, log: pathlib.Path, *targets: str) -> None:
    with open(log, "a") as out:
        done = subprocess.run(["make", "ARCH=um", *targets], cwd=tree, stdout=out, stderr=out, env=_environment())
    if done.returncode != 0:
        _fail(log)


def _fail(log: pathlib.Path) -> NoReturn:
    kept = paths.cache("build", "failed.log")
    shutil.copy(log, kept)
    lines = [line for line in log.read_text(errors="replace").splitlines() if re.search(r"error|Error|\*\*\*", line)]
    raise UserError(f"the kernel does not build: {lines[0] if lines else 'make failed'}", f"see {kept}")


def _congestion_controls(tree: pathlib.Path) -> str:
    """Return the options of all congestion controls of this source, so that ones added by patches need not be known."""
    kconfig = (tree / "net" / "ipv4" / "Kconfig").read_text()
    return "".join(f"CONFIG_{name}=y\n" for name in re.findall(r"^config (TCP_CONG_\w+)$", kconfig, re.MULTILINE))


def _check_config(config: pathlib.Path, fragment: str) -> None:
    """Raise UserError if Kconfig silently dropped options that are unknown or depend on something absent."""
    have = set(config.read_text().splitlines())
    options = [line.partition("#") for line in fragment.splitlines()]
    wanted = [option.strip() for option, _, comment in options if "optional" not in comment]
    if lost := [option for option in wanted if option and option not in have]:
        raise UserError(f"this kernel source does not offer {', '.join(lost)}", "give another one with --source")


def _compile(tree: pathlib.Path, log: pathlib.Path, progress: Progress, jobs: int | None) -> None:
    process = subprocess.Popen(
        ["make", "ARCH=um", f"-j{jobs}", "linux"], cwd=tree, env=_environment(),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )  # fmt: skip
    done = 0
    try:
        with open(log, "a") as out:
            for line in process.stdout or ():
                out.write(line)
                if line.startswith("  CC  "):
                    done += 1
                    progress(done, max(_ABOUT_OBJECTS, done), "compiling")
        if process.wait() != 0:
            _fail(log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()

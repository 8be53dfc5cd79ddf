"""Build what an adapter compiles on this machine, once, into the user's cache."""

import fcntl
import itertools
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from conformance.lab import host_process, manifest as manifests, sources as source_trees
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.support import paths
from conformance.support.files import errors_as

#: (done, total, line): how far a build is, if it says so, and the line that it printed last
Progress = Callable[[int | None, int | None, str], object]
#: the dynamic loader (ld.so(8))
_LOADER = "/lib64/ld-linux-x86-64.so.2"
_TIMEOUT_S = 3600
_LOOK_S = 0.2
#: variables that make cargo say how far it is
_COUNT_ALOUD = {"CARGO_TERM_PROGRESS_WHEN": "always", "CARGO_TERM_PROGRESS_WIDTH": "80"}
_TAIL_BYTES = 4096
_LOG_BYTES = 64 << 20
#: how many of the last lines of a failed build's log are shown
_LAST_LINES = 12


#: how often a build that nobody asked for says how far it is
_SAY_EVERY_S = 15
#: the type of the part of an ELF file that says which libraries it needs (elf(5))
_PT_DYNAMIC = 2


class Unasked:
    """What is said of a build that nobody asked for; pytest's plugin replaces `say`."""

    say: Callable[[str], object] = staticmethod(lambda line: print(line, file=sys.stderr, flush=True))


class NotBuilt(UserError):
    """The stack is not built, and building it downloads, which was not asked for."""


class Failed(UserError):
    """A build failed; `lines` are the last that it printed."""


class Recipe(source_trees.Built, Protocol):
    """Something to build: a manifest, or anything else with a "build"."""

    @property
    def path(self) -> pathlib.Path: ...

    def mend(self, lacking: Sequence[str]) -> str: ...


def missing(recipe: Mapping[str, Any]) -> list[str]:
    """Return the programs, header files and libraries that a manifest's "build" needs and this machine lacks."""
    lacking = [tool for tool in recipe.get("needs", ()) if not manifests.which_to_build(tool)]
    roots = (pathlib.Path("/usr/include"), pathlib.Path("/usr/local/include"))
    lacking += [h for h in recipe.get("headers", ()) if not any((root / h).exists() for root in roots)]
    return lacking + [f"lib{name}" for name in recipe.get("libraries", ()) if not _has_library(name)]


def _has_library(name: str) -> bool:
    """Return whether a shared library, in any version, is where linkers or LLVM's packages keep libraries.

    A variable such as LIBCLANG_PATH, which bindgen reads, names one elsewhere.
    """
    if f"LIB{name.upper()}_PATH" in os.environ:
        return True
    folders = [pathlib.Path(root) for root in ("/usr/local/lib", "/usr/lib", "/usr/lib64")]
    files = (f"lib{name}.so*", f"lib{name}-[0-9]*.so*")
    patterns = [f"{where}{file}" for where in ("", "*/", "llvm*/lib/") for file in files]
    return any(True for folder in folders for pattern in patterns for _ in folder.glob(pattern))


def ensure(
    manifest: Recipe,
    files_digest: str,
    explicit: bool = False,
    again: bool = False,
    progress: Progress = lambda done, total, line: None,
    sources: Sequence[source_trees.SourceTree] = (),
    taken: Mapping[str, str] = {},
) -> pathlib.Path:
    """Return the folder with what a manifest's "build" made. Build it now if necessary; `again`: build it in any case.

    The folder is named after a digest of the adapter's files, of the working trees `sources`, and of the system that it
    was built on and for. Compilers are not part of the digest: what is built also runs where there are none. A build
    that fetches from a package registry is only made if `explicit`, unless the manifest says "unasked". `progress`:
    see adapter.build(). `taken`: variables for the build. Raises UserError; the log of a failed build is kept and
    named.
    """
    name, recipe = manifest.name, manifest.build or {}
    files_digest = with_sources(files_digest, sources)
    folder = place(name, files_digest)
    if folder.exists() and not again:
        return folder  # another build of this stack, from other sources, may hold the lock for minutes
    if lacking := missing(recipe):
        raise UserError(f"building {name} needs {', '.join(lacking)}", manifest.mend(lacking))
    if recipe.get("unasked") and not explicit:
        progress = _say_now_and_then(name)
    elif recipe.get("fetches") and not explicit:
        shipped = manifest.path == paths.data("adapters", name, "adapter.json")
        command = f"conformance adapter build {name if shipped else manifest.path}{source_trees.options(sources)}"
        what = f" with {', '.join(source.label for source in sources)}" if sources else ""
        homes = {} if sources else source_trees.homes(manifest)
        unset = [variable for variable in homes.values() if "_HOME" in variable]
        other = f", or set {' or '.join(unset)} to what you built" if unset else ""
        raise NotBuilt(f"stack {name} is not built{what}", f"run `{command}`{other}")
    home = paths.cache("adapters", _built_here(name, files_digest))
    with errors_as(f"cannot build {name} in {home.parent}", "free space there, or make it writable"):
        paths.tag_cache()  # the cache may lie in a working tree
        home.parent.mkdir(parents=True, exist_ok=True)
        with open(home.parent / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if again or not home.exists():
                _sweep(home.parent, name)
                with source_trees.workshop(name, sources, _system(), again) as workshop:
                    _build(name, manifest.folder, recipe, home, progress, workshop, taken)
    return home


def _say_now_and_then(name: str) -> Progress:
    """Return a function that says, in a line now and then, how far a build is."""
    said_s, said = 0.0, ""

    def say(done: int | None, total: int | None, line: str) -> None:
        nonlocal said_s, said
        how_far = f" {done} of {total} steps" if total and f"{done}/{total}" not in line else ""
        words = f"building {name}, which is kept for the next time (some minutes):{how_far} {line}".rstrip(" :")
        if words != said and time.monotonic() - said_s >= _SAY_EVERY_S:
            said_s, said = time.monotonic(), words
            Unasked.say(words)

    return say


def with_sources(files_digest: str, sources: Sequence[source_trees.SourceTree]) -> str:
    """Return the digest of an adapter's files and of the working trees that it is built with."""
    return digests.of_value([files_digest, source_trees.digest(sources)]) if sources else files_digest


def place(name: str, files_digest: str) -> pathlib.Path:
    """Return the folder of what is or would be built from an adapter's files; it exists only if it is built.

    What was built here is preferred to what was built elsewhere (brought()), which is used if this system has all that
    it is linked with.
    """
    here = paths.cached("adapters", _built_here(name, files_digest))
    elsewhere = paths.cached("adapters", brought(name, files_digest))
    return elsewhere if not here.exists() and elsewhere.exists() and all(map(_is_linked, elsewhere.iterdir())) else here


def brought(name: str, files_digest: str) -> str:
    """Return the name of the folder in a cache with what was built from these files on some other system."""
    return f"{name}-{files_digest}"


def _built_here(name: str, files_digest: str) -> str:
    return f"{name}-{digests.of_value([files_digest, _system()])}"


def _is_linked(program: pathlib.Path) -> bool:
    """Return whether a program, if it needs any libraries, finds them."""
    try:
        if not _is_dynamic(program):
            return True
        done = subprocess.run([_LOADER, "--list", str(program)], capture_output=True, text=True)
    except OSError:
        return False
    return done.returncode == 0 and "not found" not in done.stdout + done.stderr


def _is_dynamic(file: pathlib.Path) -> bool:
    """Return whether a file is a program of 64 bits or a library, and not linked statically."""
    head = file.read_bytes()[:4096]
    if not head.startswith(b"\x7fELF\2"):
        return False
    (start,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    return any(struct.unpack_from("<I", head, start + size * at)[0] == _PT_DYNAMIC for at in range(count))


def _system() -> str:
    """Return what else a binary depends on, since containers of several distributions may share a cache."""
    try:
        return pathlib.Path("/etc/os-release").read_text()
    except OSError:
        return ""


def _sweep(parent: pathlib.Path, name: str) -> None:
    """Remove what a killed build left behind; the caller has the lock, so no other build of this adapter runs."""
    for old in parent.glob(f".{name}+*"):
        shutil.rmtree(old, ignore_errors=True)


def _build(
    name: str, folder: pathlib.Path, recipe: Mapping[str, Any], home: pathlib.Path, progress: Progress,
    workshop: source_trees.Workshop, taken: Mapping[str, str],
) -> None:  # fmt: skip
    # The build is made in another folder and moved into place as a whole. No adapter's name has a plus in it; a colon
    # would split the lists of folders (LD_LIBRARY_PATH) that compilers make.
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{name}+") as temporary:
        built = pathlib.Path(temporary, "build")
        built.mkdir()
        log = home.parent / f"{name}.log"
        environment = {**os.environ, "PATH": manifests.search_path(), **_COUNT_ALOUD, **workshop.environment, **taken}
        environment["CC_BUILD"] = str(built)
        progress(None, None, "")  # tells the caller that something is built, however soon it is done
        work = workshop.folder or pathlib.Path(temporary)
        status = _run([str(folder / recipe["program"])], work, environment, log, progress)
        if status != 0:
            log.write_bytes(os.fsencode(workshop.told(os.fsdecode(log.read_bytes()))))
            rust = _rust_needed(log)
            mend = f"install Rust {rust} or later, with rustup" if rust else f"see {log}"
            raise Failed(f"{name} does not build: {_telling(log)}", mend, _last(log))
        workshop.check()
        workshop.replace(built)
        if not any(built.iterdir()):
            raise UserError(f"building {name} left nothing in CC_BUILD", f"fix its {recipe['program']}")
        # Stacks run as the user nobody, so it must be able to read this, whatever the umask is here.
        for path in (built, *built.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
        if home.exists():
            # Guests that run from the old build keep the files that they have open; later guests find the new build.
            home.rename(pathlib.Path(temporary, "old"))
        built.rename(home)


def _run(
    command: Sequence[str], folder: pathlib.Path, environment: Mapping[str, str], log: pathlib.Path, progress: Progress
) -> int:
    """Run a build with all output in `log`, and return its exit status; end its processes, even if interrupted."""
    with open(log, "wb") as out:
        try:
            return host_process.run(
                command, (out,), timeout_s=_TIMEOUT_S, most_bytes=_LOG_BYTES, environment=environment, folder=folder,
                look=lambda: progress(*_how_far(log)), every_s=_LOOK_S,
            )  # fmt: skip
        except host_process.Ended as why:
            out.seek(out.truncate(min(_LOG_BYTES, log.stat().st_size)))
            out.write(f"\nerror: it {why}\n".encode())
            return 1


def _how_far(log: pathlib.Path) -> tuple[int | None, int | None, str]:
    """Return (done, total, line): how far a build is, if it counts that, and the line that it printed last."""
    with open(log, "rb") as f:
        f.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = [line.strip() for line in re.split(r"[\r\n]", f.read().decode(errors="replace")) if line.strip()]
    done: int | None = None
    total: int | None = None
    for line in reversed(lines):
        if progress := re.search(r"\b(\d+)/(\d+)\b", line):
            done, total = int(progress[1]), int(progress[2])
        elif progress := re.search(r"\b(\d+)%", line):
            done, total = int(progress[1]), 100
        if progress:
            break
    return done, total, _printable(lines[-1]) if lines else ""


def _printable(line: str) -> str:
    return "".join(c for c in line if c.isprintable())[:200]


def _last(log: pathlib.Path) -> list[str]:
    lines = log.read_text(errors="replace").splitlines()
    return [_printable(line) for line in lines if line.strip()][-_LAST_LINES:]


#: matches whole words only: cargo may download a crate called thiserror
_ERROR = re.compile(r"\b(error|fatal|panicked)\b", re.IGNORECASE)
#: matches the line in which a Rust build script panicked; the next line says why
_PANIC = re.compile(r"^thread '.*panicked at \S+:$")


def _rust_needed(log: pathlib.Path) -> str | None:
    """Return the version of Rust that a failed build's log asks for, the newest if crates ask for several."""
    required = re.findall(r"\brequires rustc (\d+)\.(\d+)", log.read_text(errors="replace"))
    return ".".join(max(required, key=lambda version: [int(part) for part in version])) if required else None


def _telling(log: pathlib.Path) -> str:
    """Return the line of a failed build's log that says most, printable and short.

    Cargo's own error names only the crate whose build script failed; the reason follows in the script's output.
    """
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    panics = [why for at, why in itertools.pairwise(lines) if _PANIC.search(at)]
    line = (panics or errors or lines[-1:] or ["it printed nothing"])[0]
    return _printable(line).rstrip(":")

"""Build what an adapter compiles on this machine, once, into the user's cache."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from conformance import paths
from conformance.model import digest as digests
from conformance.model.errors import UserError

_TIMEOUT_S = 3600


def missing(recipe):
    """Programs and header files that a manifest's "build" needs and this machine lacks."""
    lacking = [tool for tool in recipe.get("needs", ()) if not shutil.which(tool)]
    roots = (pathlib.Path("/usr/include"), pathlib.Path("/usr/local/include"))
    return lacking + [h for h in recipe.get("headers", ()) if not any((root / h).exists() for root in roots)]


def ensure(name, folder, recipe, files_digest):
    """Folder with what `recipe` (the manifest's "build") made of the adapter's `folder`.

    Kept under a digest of the adapter's files and of the system that it was built on and for. Raises UserError; the
    log of a failed build is kept and named.
    """
    key = digests.of_value([files_digest, _system(), [str(shutil.which(tool)) for tool in recipe.get("needs", ())]])
    home = paths.cache("adapters", f"{name}-{key}")
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with open(home.parent / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _sweep(home.parent, name)
                _build(name, folder, recipe, home)
    except OSError as error:
        raise UserError(
            f"cannot build {name} in {home.parent}: {error.strerror}", "free space or rights there"
        ) from None
    return home


def _system():
    """What else a binary depends on: a cache may be shared by containers of several distributions."""
    try:
        return pathlib.Path("/etc/os-release").read_text()
    except OSError:
        return ""


def _sweep(parent, name):
    """What a killed build left behind; nobody else builds this adapter now."""
    for old in parent.glob(f".{name}.*"):
        shutil.rmtree(old, ignore_errors=True)


def _build(name, folder, recipe, home):
    # Made aside and moved into place whole.
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{name}.") as temporary:
        made = pathlib.Path(temporary, "build")
        made.mkdir()
        log = home.parent / f"{name}.log"
        status = _run([str(folder / recipe["program"])], temporary, {**os.environ, "CC_BUILD": str(made)}, log)
        if status != 0:
            raise UserError(f"{name} does not build: {_telling(log)}", f"see {log}")
        if not any(made.iterdir()):
            raise UserError(f"building {name} made nothing in CC_BUILD", f"mend its {recipe['program']}")
        # Stacks run as nobody, whatever the umask is here.
        for path in (made, *made.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() or path.stat().st_mode & 0o100 else 0o044))
        made.rename(home)


def _run(command, folder, environment, log):
    """Exit status, with all output in `log`; ends every process of the build, also when interrupted."""
    with open(log, "wb") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            out.write(f"\nerror: not done within {_TIMEOUT_S} s\n".encode())
            return 1
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _telling(log):
    """The line of a failed build's log that says most; printable and short."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it printed nothing")
    return "".join(c for c in line if c.isprintable())[:200]

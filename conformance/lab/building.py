"""Build what an adapter compiles on this machine, once, into the user's cache under a digest of its files."""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

from conformance import paths
from conformance.model.errors import UserError


def ensure(name, folder, recipe, digest, on_line=lambda line: None):
    """Folder with what `recipe` (the manifest's "build") made of the adapter's `folder`.

    `digest` is that of the adapter's files; `on_line` is called with each line the build prints (untrusted
    text). Raises UserError; the log of a failed build is kept and named.
    """
    home = paths.cache("adapters", f"{name}-{digest}")
    if home.exists():
        return home
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with open(home.parent / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.exists():
                _build(name, folder, recipe, home, on_line)
    except OSError as error:
        raise UserError(
            f"cannot build {name} in {home.parent}: {error.strerror}", "free space or rights there"
        ) from None
    return home


def _build(name, folder, recipe, home, on_line):
    lacking = [tool for tool in recipe.get("needs", ()) if not shutil.which(tool)]
    lacking += [header for header in recipe.get("headers", ()) if not _header(header)]
    if lacking:
        raise UserError(f"building {name} needs {', '.join(lacking)}", "run `conformance doctor`")
    # Made aside and moved into place whole.
    with tempfile.TemporaryDirectory(dir=home.parent) as temporary:
        made = pathlib.Path(temporary, "build")
        made.mkdir(mode=0o755)
        log = home.parent / f"{name}.log"
        with open(log, "w", errors="replace") as out:
            process = subprocess.Popen(
                [str(folder / recipe["program"])], cwd=temporary, env={**os.environ, "CC_BUILD": str(made)},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", umask=0o022,
            )  # fmt: skip
            try:
                for line in process.stdout:
                    out.write(line)
                    on_line(line.rstrip())
                status = process.wait()
            finally:
                process.kill()
                process.wait()
        if status != 0:
            raise UserError(f"{name} does not build: {_telling(log)}", f"see {log}")
        made.rename(home)


def _header(name):
    return any(pathlib.Path(root, name).exists() for root in ("/usr/include", "/usr/local/include"))


def _telling(log):
    """The line of a failed build's log that says most; printable and short."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    line = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it printed nothing")
    return "".join(c for c in line if c.isprintable())[:200]

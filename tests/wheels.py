"""Build wheels as `make dist` does, for tests."""

import subprocess
import sys
import zipfile

from conformance.support import paths

ROOT = paths.PACKAGE.parent


def build(folder, where=".", environment=None):
    """Build the project in `where`; return (hatchling's output, path of the wheel, or None if the build failed)."""
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT / where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    return done.stdout, next(folder.glob("*.whl"), None) if done.returncode == 0 else None


def unpack(wheel, folder):
    """Unpack a wheel as an installer does, which keeps executable files executable but no other modes."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
        for entry in archive.infolist():
            if entry.external_attr >> 16 & 0o111:
                (folder / entry.filename).chmod(0o755)
    return folder

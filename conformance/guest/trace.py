"""Keep what the stack's programs write in a traced trial: their logs, TLS secrets and output."""

from __future__ import annotations

import os
import stat

from conformance.guest import folders
from conformance.guest.process import NOBODY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.guest.protocol import Job
    from conformance.guest.seen import ProcessSeen

#: bytes that are kept of all that a process of a stack wrote; more would be the guest's memory
_LOGS_BYTES = 256 << 20
_CHUNK_BYTES = 1 << 16
#: files with what a process printed; no log may have such a name
_PRINTED = {"stdout": "stdout.txt", "stderr": "stderr.txt"}
#: characters in the path of a file that is kept; the host has a limit, too
_PATH_CHARACTERS = 255


def log_folders(job: Job) -> dict[str, str]:
    """Return {role: a new folder of bounded size that a program of the stack may write logs to}."""
    logs = {role: os.path.join(job.work_dir, f"trace-{role}") for role in ("server", "client")}
    folders.renew(logs.values())
    for folder in logs.values():
        os.mkdir(os.path.join(folder, "qlog"))
        os.chown(os.path.join(folder, "qlog"), NOBODY, NOBODY)
    return logs


def keep(logs: Mapping[str, str], target: str, server: ProcessSeen | None, client: ProcessSeen | None) -> None:
    """Copy the logs of a trial, and what its programs printed, to folders of `target`."""
    for (role, folder), process in zip(logs.items(), (server, client), strict=True):
        _copy(folder, os.path.join(target, role))
        for stream, name in _PRINTED.items():
            words = getattr(process, stream) if process else ""
            if words:
                os.makedirs(os.path.join(target, role), exist_ok=True)
                with open(os.path.join(target, role, name), "w") as f:
                    f.write(words)


def _copy(source: str, target: str) -> None:
    """Copy regular files only, whatever a stack put into `source`: a link could name any file of the host."""
    left = _LOGS_BYTES
    for folder, below, files in os.walk(source):
        inside = os.path.relpath(folder, source)
        below[:] = [name for name in below if _is_kept(inside, name)]
        for name in files:
            path = os.path.join(folder, name)
            if not _is_kept(inside, name) or not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            # By now, no stack is running that could put another file in its place.
            with open(path, "rb") as f:
                there = os.path.join(target, inside)
                os.makedirs(there, exist_ok=True)
                with open(os.path.join(there, name), "wb") as out:
                    while data := f.read(min(left, _CHUNK_BYTES)):
                        out.write(data)
                        left -= len(data)


def _is_kept(folder: str, name: str) -> bool:
    """Return whether a file or folder is kept, by its name and the path of its folder among the logs."""
    path = os.path.normpath(os.path.join(folder, name))
    return path.split("/")[0] not in _PRINTED.values() and len(path) <= _PATH_CHARACTERS and path.isprintable()

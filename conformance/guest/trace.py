"""Keep what the stack's programs write in a traced trial: their logs, TLS secrets and output."""

from __future__ import annotations

import os
import shutil
import stat

from conformance.guest.process import NOBODY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.guest.protocol import Job
    from conformance.guest.seen import ProcessSeen

#: bytes that are kept of all that a process of a stack wrote; more would be the guest's memory
_LOGS_BYTES = 256 << 20
_CHUNK_BYTES = 1 << 16


def log_folders(job: Job) -> dict[str, str]:
    """Return {role: an empty folder that a program of the stack may write logs to}."""
    logs = {role: os.path.join(job.work_dir, f"trace-{role}") for role in ("server", "client")}
    for folder in logs.values():
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "qlog"))
        for path in (folder, os.path.join(folder, "qlog")):
            os.chown(path, NOBODY, NOBODY)
    return logs


def keep(logs: Mapping[str, str], target: str, server: ProcessSeen | None, client: ProcessSeen | None) -> None:
    """Copy the logs of a trial, and what its programs printed, to folders of `target`."""
    for (role, folder), process in zip(logs.items(), (server, client), strict=True):
        _copy(folder, os.path.join(target, role))
        for stream in ("stdout", "stderr"):
            words = getattr(process, stream) if process else ""
            if words:
                os.makedirs(os.path.join(target, role), exist_ok=True)
                with open(os.path.join(target, role, f"{stream}.txt"), "w") as f:
                    f.write(words)


def _copy(source: str, target: str) -> None:
    """Copy regular files only, whatever a stack put into `source`: a link could name any file of the host."""
    left = _LOGS_BYTES
    for folder, _, files in os.walk(source):
        for name in files:
            path = os.path.join(folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            # By now, no stack is running that could put another file in its place.
            with open(path, "rb") as f:
                there = os.path.join(target, os.path.relpath(folder, source))
                os.makedirs(there, exist_ok=True)
                with open(os.path.join(there, name), "wb") as out:
                    while data := f.read(min(left, _CHUNK_BYTES)):
                        out.write(data)
                        left -= len(data)

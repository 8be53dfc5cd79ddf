"""A trial with everything written down: packets at the bottleneck, the stack's own logs and TLS secrets."""

import os
import shutil
import stat
import time

from conformance.guest.capture import Capture
from conformance.guest.process import NOBODY
from conformance.guest.trial import run_trial

#: of each file that a stack wrote; more would be the guest's memory
_FILE_LIMIT = 256 << 20


def run_traced(net, topology, job, cell, seed, target):
    """run_trial() whose traces are left in the new folder `target`; returns its facts.

    job["trace"]: "packets", which changes nothing in the trial, or "all", for which the stack logs too.
    """
    os.makedirs(target)
    folders = {role: os.path.join(job["work_dir"], f"trace-{role}") for role in ("server", "client")}
    for folder in folders.values():
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "qlog"))
        for path in (folder, os.path.join(folder, "qlog")):
            os.chown(path, NOBODY, NOBODY)
    epoch_s = int(time.time())
    captures = {
        name: Capture(net[node], interface, cell["transfer_bytes"], epoch_s)
        for name, (node, interface) in _taps(topology).items()
    }
    facts = run_trial(net, topology, {**job, "trace": folders if job["trace"] == "all" else None}, cell, seed)
    facts["captured"] = {
        name: capture.write(os.path.join(target, f"{name}.pcap")) for name, capture in captures.items()
    }
    for role, folder in folders.items():
        _copy(folder, os.path.join(target, role))
        for stream in ("stdout", "stderr"):
            words = (facts[role] or {}).get(stream)
            if words:
                os.makedirs(os.path.join(target, role), exist_ok=True)
                with open(os.path.join(target, role, f"{stream}.txt"), "w") as f:
                    f.write(words)
    return facts


def _taps(topology):
    """{name: (node, interface)}: the ends of each segment, but where others pass there, too."""
    ends = {f"{node}-{interface}": (node, interface) for segment in topology.SEGMENTS for node, interface in segment}
    return getattr(topology, "TAPS", ends)


def _copy(source, target):
    """Regular files only, whatever a stack put there: a link could name any file of the host's."""
    for folder, _, files in os.walk(source):
        for name in files:
            path = os.path.join(folder, name)
            if not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            # No stack runs any more that could put another file there.
            with open(path, "rb") as f:
                there = os.path.join(target, os.path.relpath(folder, source))
                os.makedirs(there, exist_ok=True)
                with open(os.path.join(there, name), "wb") as out:
                    shutil.copyfileobj(_Bounded(f, _FILE_LIMIT), out)


class _Bounded:
    """A file that ends early."""

    def __init__(self, file, size):
        self._file, self._left = file, size

    def read(self, size):
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data

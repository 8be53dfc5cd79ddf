"""Run trials in the host room: the same guest code on this machine's own kernel, as root, in real time.

Everything runs in namespaces of its own (network, processes, mounts). So nothing of this machine's network is touched
or reachable, and everything ends with its first process, even if that is killed.
"""

import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import threading
from collections.abc import Callable, Generator, Iterator, Sequence

from conformance.kernel.store import Kernel
from conformance.lab import job, manifest
from conformance.lab.adapter import Adapter
from conformance.lab.room import Batches, handfuls
from conformance.lab.virtual import Group, follow
from conformance.model import digest as digests
from conformance.model.errors import UserError
from conformance.model.trial import Measurement, Trial
from conformance.support import paths
from conformance.support import scratch as scratch_place

_NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
#: time in s that trials take besides their transfers: start of the network, calibration, servers
_OVERHEAD_S = 120.0


def this_kernel() -> Kernel:
    """Return the running kernel as a Kernel. Raises UserError if it cannot be used."""
    if os.geteuid() != 0:
        raise UserError("the host room needs root", "run as root, or use --lab virtual, which does not")
    if not shutil.which("unshare"):
        raise UserError("the host room needs unshare", "run `apt-get install util-linux`")
    done = subprocess.run(
        [*_NAMESPACES, "sh", "-c", "ip link set lo up && tc qdisc add dev lo root netem delay 1ms"],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["unshare failed"])[-1]
        raise UserError(
            f"this machine's kernel cannot emulate a network: {why}",
            "load sch_netem (`modprobe sch_netem`), or use --lab virtual",
        )
    release = platform.release()
    return Kernel(
        name="host", digest=digests.of_value([release, platform.version()]), release=release,
        source="this machine", patches=(), binary=pathlib.Path("/proc/version"),
    )  # fmt: skip


class HostRoom:
    """The Room that runs trials on this machine's kernel, one cell after another."""

    name = "host"

    def run(
        self,
        adapter: Adapter,
        batches: Batches,
        cancelled: threading.Event,
        on_start: Callable[[Group], object] = lambda process: None,
    ) -> Iterator[Measurement]:
        for handful in handfuls(batches):
            if any(trials[0].setting.cell_form is None for trials in handful):
                raise UserError("flows that share a network are measured in virtual time only", "leave out --lab host")
            owed: Sequence[Sequence[Trial]] = handful
            while owed and not cancelled.is_set():
                owed = yield from self._run(adapter, owed, cancelled, on_start)

    def _run(
        self,
        adapter: Adapter,
        batches: Sequence[Sequence[Trial]],
        cancelled: threading.Event,
        on_start: Callable[[Group], object],
    ) -> Generator[Measurement, None, Sequence[Sequence[Trial]]]:
        """Yield the measurements that one process makes; return the trials that it did not make."""
        with scratch_place.disk_errors(), scratch_place.folder() as scratch:
            # Bound into the scratch folder, the stack is readable by the user nobody wherever it lies.
            folders = adapter.folders()
            for name in folders:
                (scratch / name).mkdir()
            job.write(scratch, adapter, scratch, batches[0][0])
            binds = [f"mount --bind {shlex.quote(str(f))} {scratch}/{name}" for name, f in folders.items()]
            main = paths.PACKAGE / "guest" / "main.py"
            script = " && ".join([*binds, f"exec /usr/bin/python3 -u {shlex.quote(str(main))} {scratch}"])
            process = Group(
                [*_NAMESPACES, "sh", "-c", script],
                scratch,
                {"PATH": manifest.GUEST_PATH, "LC_ALL": "C", "HOME": "/"},
            )
            try:
                on_start(process)
                reader = job.Reader(batches, adapter)
                job.Feeder(scratch).feed_all(reader.cells)
                yield from follow(process, reader, scratch, cancelled, _wall_timeout_s(batches))
                return reader.owed
            finally:
                process.end()


def _wall_timeout_s(batches: Sequence[Sequence[Trial]]) -> float:
    return max(len(trials) * (trials[0].setting.timeout_s + _OVERHEAD_S) for trials in batches)

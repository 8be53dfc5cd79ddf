"""Run a stack's programs as untrusted code.

They run as nobody, without a way to gain privileges, in a session of their own, with limits on memory, processes and
file size, in a directory made for them. Their output goes to files that are read up to a bound. docs/security.md says
what each limit is for.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import signal
import subprocess
import time

from conformance.guest.netns import inside
from conformance.guest.seen import ProcessSeen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from conformance.guest.netns import Node
    from conformance.guest.protocol import Limits

NOBODY = 65534
_OUTPUT_LIMIT = 64 * 1024
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SYSLOG_ACTION_READ_ALL = 3
#: matches what the kernel's log says when memory has run out
_OUT_OF_MEMORY = re.compile(r"Killed process (\d+) \(")
#: limit on open files while nodes are created; each node takes two or three descriptors of this process
_BUILDING_FILES = 512
_LIBC = ctypes.CDLL(None, use_errno=True)


def prepare_harness() -> None:
    """Keep children from gaining privileges, and adopt orphaned descendants. Call it once, before the first stack."""
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def few_descriptors() -> Iterator[None]:
    """Let Mininet create its nodes in this block under a low limit on open files.

    For each node, mnexec closes every file descriptor below that limit. Mininet raises the limit to 16,384, at which
    each node adds 0.15 s to a guest's start. After the block the high limit applies again.
    """
    from mininet.net import Mininet

    Mininet.init()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, _BUILDING_FILES), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def _as_nobody(limits: Limits) -> Iterator[None]:
    """Let children that are started in this block run as nobody, and with limits, from exec(2) on.

    exec(2) copies the effective user to the saved one and drops every capability, so that no child can become root
    again. A preexec_fn would make subprocess use fork(2) instead of vfork(2), which costs a guest 50 ms.
    """
    wanted = {
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_CORE: 0,
    }
    before = {which: resource.getrlimit(which) for which in wanted}
    groups = os.getgroups()
    try:
        for which, value in wanted.items():
            resource.setrlimit(which, (value, value))
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, 0)
        os.setresuid(NOBODY, NOBODY, 0)
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)
        for which, limit in before.items():
            resource.setrlimit(which, limit)


class Process:
    """A program in a node's network namespace and a session of its own; it is started in the context `rights`."""

    def __init__(
        self,
        node: Node,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str,
        rights: contextlib.AbstractContextManager[None],
    ) -> None:
        # These files have no name: a stack, whose folder it is, could put a link to any file there, or a pipe.
        nameless = os.O_TMPFILE | os.O_RDWR
        self._output = {
            name: open(os.open(directory, nameless, 0o644), "w+b", buffering=0) for name in ("stdout", "stderr")
        }
        try:
            with inside(node), rights:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=self._output["stdout"], stderr=self._output["stderr"],
                    cwd=directory, env=environment, start_new_session=True,
                )  # fmt: skip
        except OSError:
            self._close_output()
            raise
        self.pidfd = os.pidfd_open(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Its exit status, minus the signal's number where a signal ended it; None while it runs."""
        return self._process.poll()

    @property
    def _ran_out_of_memory(self) -> bool:
        """Whether it failed as memory ran out: the kernel had killed it, or a later process, such as its child."""
        failed = self.exit_status not in (None, 0)
        return failed and any(int(pid) >= self.pid for pid in _OUT_OF_MEMORY.findall(_kernel_log()))

    def seen(self) -> ProcessSeen:
        """Return how it ended, and the last 64 KiB that it printed to each stream; what is not UTF-8 is replaced."""
        return ProcessSeen(
            exit_status=self.exit_status, ran_out_of_memory=self._ran_out_of_memory,
            stdout=self._printed("stdout"), stderr=self._printed("stderr"),
        )  # fmt: skip

    def _printed(self, stream: str) -> str:
        file = self._output[stream].fileno()
        printed = os.pread(file, _OUTPUT_LIMIT, 0)
        if len(printed) == _OUTPUT_LIMIT:
            # In virtual time, asking for the size of every output would change results.
            printed = os.pread(file, _OUTPUT_LIMIT, max(0, os.fstat(file).st_size - _OUTPUT_LIMIT))
        return printed.decode("utf-8", "replace")

    def end(self) -> None:
        """End it and wait for it. SIGTERM comes first, so that it can write its logs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        os.close(self.pidfd)
        self._close_output()

    def _close_output(self) -> None:
        for file in self._output.values():
            file.close()


class StackProcess(Process):
    """One program of an adapter: run as nobody, with limits, and the first to be killed if memory runs out."""

    def __init__(
        self, node: Node, command: Sequence[str], environment: Mapping[str, str], directory: str, limits: Limits
    ) -> None:
        super().__init__(node, command, environment, directory, _as_nobody(limits))
        # If memory runs out, the stack must be killed, and neither the network's nodes nor anything of the host.
        set_oom_score(self.pid, 1000)


def _kernel_log() -> str:
    log = ctypes.create_string_buffer(1 << 18)
    size = _LIBC.klogctl(_SYSLOG_ACTION_READ_ALL, log, len(log))
    return log.raw[: max(size, 0)].decode(errors="replace")


def set_oom_score(pid: int, score: int) -> None:
    """Set how soon the kernel kills a process if memory runs out: 1000 is first, -1000 never."""
    # The process may have ended; and outside a guest, where tests call this, root may not be allowed less than 0.
    with contextlib.suppress(FileNotFoundError, PermissionError), open(f"/proc/{pid}/oom_score_adj", "w") as f:
        f.write(str(score))


def kill_descendants(spare: Collection[int]) -> None:
    """Kill every descendant of this process that is not in `spare` (pids), however it hid, and reap it.

    A dead process that has not been waited for would still count against the limit on processes.
    """
    for _ in range(50):
        descendants = list(_descendants(os.getpid(), spare))
        if not descendants:
            return
        for pid, dead in descendants:
            # A dead process that is not our child becomes ours when its parent dies.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                if dead:
                    os.waitpid(pid, os.WNOHANG)
                else:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    raise RuntimeError("a process of the stack under test could not be ended")


def _descendants(root: int, spare: Collection[int]) -> Iterator[tuple[int, bool]]:
    """Yield (pid, whether it is dead) of each descendant of `root` that is neither in `spare` nor below one that is."""
    parents: dict[int, int] = {}
    dead: dict[int, bool] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(name)
        parents[pid] = int(fields[1])
        # A process whose first thread has ended is also listed as dead, but it lives on in its other threads.
        dead[pid] = fields[0] == "Z" and int(fields[17]) <= 1
    for pid in parents:
        above = pid
        while above in parents and above != root:
            if above in spare:
                break
            above = parents[above]
        if above == root and pid != root and pid not in spare:
            yield pid, dead[pid]

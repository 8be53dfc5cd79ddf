"""Run a stack's programs as what they are: untrusted code.

They run as nobody, without a way to gain rights, in a session of their own, with limits on memory, processes and
file size, in a directory made for them; their output goes to files that are read up to a bound. docs/security.md
says what each limit is for.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time

from conformance.guest.netns import inside

NOBODY = 65534
_OUTPUT_LIMIT = 64 * 1024
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SYSLOG_ACTION_READ_ALL = 3
_LIBC = ctypes.CDLL(None, use_errno=True)


def prepare_harness():
    """Once, before the first stack: no child can gain rights, and orphans of ours come back to us."""
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def _as_nobody(limits):
    """Children started in this block are nobody's from exec(2) on, and limited.

    exec(2) copies the effective user to the saved one and drops every capability, so what is root here is
    gone there. This, and not a preexec_fn, because that makes subprocess use fork(2) in place of vfork(2),
    which costs a guest 50 ms.
    """
    wanted = {
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NPROC: limits["processes"],
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
        for which, value in before.items():
            resource.setrlimit(which, value)


class Process:
    """A program started in a node's network namespace and a session of its own; `rights`: a block it is started in."""

    def __init__(self, node, command, environment, directory, rights):
        # Read by these descriptors and never by name: a stack may put a pipe in their place, or a link to any file.
        self._output = {name: open(os.path.join(directory, name), "w+b", buffering=0) for name in ("stdout", "stderr")}
        try:
            with inside(node), rights:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, cwd=directory, env=environment, start_new_session=True,
                    **self._output,
                )  # fmt: skip
        except OSError:
            self._close_output()
            raise
        self.pidfd = os.pidfd_open(self._process.pid)

    @property
    def pid(self):
        return self._process.pid

    @property
    def exit_status(self):
        """None while it runs, else its exit status; minus the signal's number where a signal ended it."""
        return self._process.poll()

    @property
    def ran_out_of_memory(self):
        """Whether the kernel killed it for that, by the kernel's own words."""
        return self.exit_status == -signal.SIGKILL and f"Killed process {self.pid} (" in _kernel_log()

    def output(self):
        """What it printed, at most 64 KiB of each stream; bytes that are not UTF-8 are replaced."""
        return {
            name: os.pread(file.fileno(), _OUTPUT_LIMIT, 0).decode("utf-8", "replace")
            for name, file in self._output.items()
        }

    def end(self):
        """End it and wait for it. SIGTERM first, so that it can write its logs."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        os.close(self.pidfd)
        self._close_output()

    def _close_output(self):
        for file in self._output.values():
            file.close()


class StackProcess(Process):
    """One program of an adapter: nobody's, limited, and the first to go where memory runs out."""

    def __init__(self, node, command, environment, directory, limits):
        super().__init__(node, command, environment, directory, _as_nobody(limits))
        # It is the stack that goes, and neither the network's nodes nor anything of the host's.
        set_oom_score(self.pid, 1000)


def _kernel_log():
    log = ctypes.create_string_buffer(1 << 18)
    size = _LIBC.klogctl(_SYSLOG_ACTION_READ_ALL, log, len(log))
    return log.raw[: max(size, 0)].decode(errors="replace")


def set_oom_score(pid, score):
    """How soon the kernel kills it where memory runs out: 1000 first, -1000 never."""
    # It may have ended; and in the host room not every root may ask for less than 0.
    with contextlib.suppress(FileNotFoundError, PermissionError), open(f"/proc/{pid}/oom_score_adj", "w") as f:
        f.write(str(score))


def kill_descendants(spare):
    """Kill every descendant of this process that is not in `spare` (pids), however it hid, and bury it.

    Who is dead and not buried would still count against the limit on processes.
    """
    for _ in range(50):
        found = list(_descendants(os.getpid(), spare))
        if not found:
            return
        for pid, dead in found:
            # A dead child of another one's comes to us when that one dies.
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                if dead:
                    os.waitpid(pid, os.WNOHANG)
                else:
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    raise RuntimeError("a process of the stack under test could not be ended")


def _descendants(root, spare):
    """(pid, whether it is dead) of each."""
    parents, dead = {}, {}
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
        # A process whose first thread has ended is listed as dead as well; it lives on in the others.
        dead[pid] = fields[0] == "Z" and int(fields[17]) <= 1
    for pid in parents:
        above = pid
        while above in parents and above != root:
            if above in spare:
                break
            above = parents[above]
        if above == root and pid != root and pid not in spare:
            yield pid, dead[pid]

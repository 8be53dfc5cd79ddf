"""Run the parts of an adapter that run on this machine and not in a guest: its build, and its describe.

They run as the user of the suite, who must trust them as much as any build. Their output and their time are limited,
and all their processes are killed at the end, even those that left the session.
"""

import contextlib
import dataclasses
import errno
import os
import pathlib
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

from conformance.model.errors import UserError
from conformance.model.groups import grouped

#: variable in the environment of every process of a run; a process that leaves the session keeps it
_MARK = "CC_OUTSIDE"
_ROUNDS = 50
#: {error with which an executable file is not started: (what it means, what mends it)}
_NOT_STARTED = {
    errno.ENOENT: ("the interpreter in its first line is not there", "correct that line, and end it in LF without CR"),
    errno.ENOEXEC: ("it is no program for this machine", "begin a script with `#!` and its interpreter"),
}


class Ended(Exception):
    """The program was killed before it was done; the message says why, in words that follow the program's name."""


def run(
    command: Sequence[str],
    streams: Sequence[IO[bytes]],
    *,
    timeout_s: float,
    most_bytes: int,
    environment: Mapping[str, str],
    folder: pathlib.Path | str = "/",
    look: Callable[[], object] = lambda: None,
    every_s: float = 0.02,
) -> int:
    """Run a program and return its exit status. `streams`: files for its stdout and, if there are two, its stderr.

    `look()` is called every `every_s` seconds. Raises Ended, and UserError if the program cannot be started.
    """
    token = secrets.token_hex(16)
    deadline = time.monotonic() + timeout_s
    process: subprocess.Popen[bytes] | None = None
    try:
        # An interruption may come before we know which process was started; the process has the mark all the same.
        try:
            process = subprocess.Popen(
                command, cwd=folder, env={**environment, _MARK: token}, stdin=subprocess.DEVNULL,
                stdout=streams[0], stderr=streams[-1], start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            why, mend = _NOT_STARTED.get(error.errno or 0, (error.strerror, None))
            raise UserError(f"cannot run {command[0]}: {why}", mend) from None
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(every_s)
            if max(os.fstat(stream.fileno()).st_size for stream in streams) > most_bytes:
                raise Ended(f"printed more than {most_bytes >> 10} kB")
            if time.monotonic() > deadline:
                raise Ended(f"did not end within {timeout_s:g} s")
            look()
    finally:
        if process is not None:
            _kill_tree(process)
        _kill_marked(f"{_MARK}={token}".encode())


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its process group and its descendants, and wait for it.

    Descendants that left the session can still be found here through their parents. For a moment, nothing else finds
    them: while a process loads another program, its environment reads as empty.
    """
    descendants = _descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in descendants:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """A process of this machine, as /proc has it (proc_pid_stat(5)). `state`: a letter; `group`: its process group."""

    pid: int
    state: str
    parent: int
    group: int


def processes() -> Iterator[HostProcess]:
    """Yield the processes of this machine; those that end meanwhile may be left out."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            yield HostProcess(pid=int(folder.name), state=state, parent=int(parent), group=int(group))


def _descendants(of: int) -> list[int]:
    """Return the descendants of a process, as far as their parents are alive."""
    children = grouped((process.parent, process.pid) for process in processes())
    pids = list(children.get(of, ()))
    for pid in pids:  # the list grows meanwhile
        pids += children.get(pid, ())
    return pids


def _kill_marked(mark: bytes) -> None:
    for _ in range(_ROUNDS):
        pids = [int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*") if mark in _environment(folder)]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _environment(folder: pathlib.Path) -> bytes:
    """Return the environment of a process; empty for dead processes and those of other users."""
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""

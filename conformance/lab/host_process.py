"""Run the parts of an adapter that run on this machine and not in a guest: its build, and its describe.

They run as the user of the suite, who must trust them as far as any build. Their output and their time are bounded, and
no process of theirs is left, wherever it went.
"""

import collections
import contextlib
import dataclasses
import os
import pathlib
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

#: in the environment of every process of a run; what leaves the session keeps that
_MARK = "CC_OUTSIDE"
_ROUNDS = 50


class Ended(Exception):
    """The program was ended before it was done; the message says why, and reads on from the program's name."""


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
    """Return the exit status of a program that writes to the files `streams`: stdout, and stderr if it has its own.

    `look()` is called now and then. Raises Ended, and OSError where it cannot be started.
    """
    token = secrets.token_hex(16)
    deadline = time.monotonic() + timeout_s
    process: subprocess.Popen[bytes] | None = None
    try:
        # An interruption may come before we know what was started; it bears the mark all the same.
        process = subprocess.Popen(
            command, cwd=folder, env={**environment, _MARK: token}, stdin=subprocess.DEVNULL,
            stdout=streams[0], stderr=streams[-1], start_new_session=True,
        )  # fmt: skip
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(every_s)
            if max(os.fstat(stream.fileno()).st_size for stream in streams) > most_bytes:
                raise Ended(f"printed more than {most_bytes >> 10} kB")
            if time.monotonic() > deadline:
                raise Ended(f"was not done within {timeout_s:g} s")
            look()
    finally:
        if process is not None:
            _kill_tree(process)
        _kill_marked(f"{_MARK}={token}".encode())


def _kill_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its session and its descendants, and wait for it.

    Those that left the session are still known by their parents here, and for a moment by nothing else: while a process
    loads another program its environment reads as empty.
    """
    descendants = _descendants(process.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in descendants:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this machine, as /proc has it (proc_pid_stat(5)). `state`: a letter; `group`: its process group."""

    pid: int
    state: str
    parent: int
    group: int


def processes() -> Iterator[Process]:
    """Yield the processes of this machine; those that end meanwhile may be left out."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            yield Process(pid=int(folder.name), state=state, parent=int(parent), group=int(group))


def _descendants(of: int) -> list[int]:
    """Return the processes that a process and its descendants have started, as far as their parents live."""
    children: dict[int, list[int]] = collections.defaultdict(list)
    for process in processes():
        children[process.parent].append(process.pid)
    found = list(children[of])
    for pid in found:  # it grows meanwhile
        found += children[pid]
    return found


def _kill_marked(mark: bytes) -> None:
    for _ in range(_ROUNDS):
        found = [int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*") if mark in _environment(folder)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _environment(folder: pathlib.Path) -> bytes:
    """Return the environment of a process; empty for dead ones and for other users'."""
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""

"""Run what of an adapter runs on this machine and not in a guest: its build, and its describe.

They run as whoever runs the suite, who must trust them as far as any build. What is asked of them is to end, and to say
little: output is bounded, time is, and no process is left, wherever it went.
"""

import contextlib
import os
import pathlib
import secrets
import signal
import subprocess
import time

#: in the environment of every process of a run; what leaves the session keeps that
_MARK = "CC_OUTSIDE"
_ROUNDS = 50


class Ended(Exception):
    """It was ended before it was done; the message, which follows on its name, says why."""


def run(command, streams, *, timeout_s, most_bytes, environment, folder="/", look=lambda: None, every_s=0.02):
    """Exit status of a program that writes to the files `streams` (stdout, and stderr where that is another).

    `look()` is called now and then. Raises Ended, and OSError where it cannot be started.
    """
    token = secrets.token_hex(16)
    deadline = time.monotonic() + timeout_s
    process = subprocess.Popen(
        command, cwd=folder, env={**environment, _MARK: token}, stdin=subprocess.DEVNULL,
        stdout=streams[0], stderr=streams[-1], start_new_session=True,
    )  # fmt: skip
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(every_s)
            if max(os.fstat(stream.fileno()).st_size for stream in streams) > most_bytes:
                raise Ended(f"printed more than {most_bytes >> 10} kB")
            if time.monotonic() > deadline:
                raise Ended(f"was not done within {timeout_s:g} s")
            look()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _kill_marked(f"{_MARK}={token}".encode())


def _kill_marked(mark):
    for _ in range(_ROUNDS):
        found = [int(folder.name) for folder in pathlib.Path("/proc").glob("[0-9]*") if mark in _environment(folder)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _environment(folder):
    """Of a process; empty for the dead and for other users'."""
    try:
        return (folder / "environ").read_bytes()
    except OSError:
        return b""

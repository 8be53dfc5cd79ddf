"""Scratch folders: a live process keeps its own, wherever it runs, and what a killed one left is removed."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from conformance.support import scratch

SWEEPS = "from conformance.support import scratch\nwith scratch.folder(): pass"
HOLDS = """
import os, subprocess, sys
from conformance.support import scratch
with scratch.folder() as folder:
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    print(folder, child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_gone_after_the_block(place):
    with scratch.folder() as folder:
        (folder / "job.json").write_text("{}")
        assert folder.parent == place
        assert folder.stat().st_mode & 0o777 == 0o700  # stacks in any guest see this place, too
    assert list(place.iterdir()) == []


def test_a_folder_stays_whatever_process_number_its_name_has(place, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 1 << 23)  # no process here has this number
    with scratch.folder() as folder:
        monkeypatch.undo()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        with scratch.folder() as other:
            assert folder.exists() and other.exists()


def test_a_run_in_another_pid_namespace_leaves_the_folder():
    apart = ["unshare", "-pf", "--mount-proc"] if os.getuid() == 0 else ["unshare", "-Urpf", "--mount-proc"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here: run the tests as root, or allow user namespaces")
    with scratch.folder() as folder:
        subprocess.run([*apart, sys.executable, "-c", SWEEPS], check=True)
        assert folder.exists()


def test_what_a_killed_process_left_is_removed_although_its_child_lives(place):
    holder = subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    folder, child = holder.stdout.readline().split()
    try:
        with scratch.folder():
            assert pathlib.Path(folder).exists()
        holder.kill()
        holder.wait()
        assert pathlib.Path(folder).exists()
        with scratch.folder():
            assert not pathlib.Path(folder).exists()
    finally:
        os.kill(int(child), signal.SIGKILL)
        holder.communicate()


def test_a_folder_deleted_before_it_was_locked_is_made_again(monkeypatch):
    made = []
    make = tempfile.mkdtemp

    def slow(**how):
        made.append(make(**how))
        if len(made) == 1:
            with scratch.folder():  # what another process does between two steps of this one
                pass
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", slow)
    with scratch.folder() as folder:
        assert folder.is_dir()
    assert len(made) == 3


def test_without_locks_nobody_elses_folder_is_deleted(monkeypatch):
    def none(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(scratch.fcntl, "flock", none)
    with scratch.folder() as folder, scratch.folder():
        assert folder.exists()

"""Following the events of a guest that cannot go on."""

import contextlib
import dataclasses
import re
import subprocess
import threading
import types

import pytest
from helpers import trial

from conformance.kernel.store import Kernel
from conformance.lab import adapter as adapters, manifest, virtual
from conformance.lab.adapter import Adapter
from conformance.model.errors import UserError
from conformance.support import limits

_TOO_FEW = r"this container allows 12 at once; allow 64 or more, with --pids-limit"


def test_a_guest_that_is_refused_a_process_is_not_waited_for(tmp_path, monkeypatch):
    counts = iter([3, 3, 3, 4])
    monkeypatch.setattr(limits, "refused_processes", lambda: next(counts))
    monkeypatch.setattr(limits, "most_processes", lambda: 12)
    guest, reader = types.SimpleNamespace(exit_status=None), types.SimpleNamespace(owed=[["a trial"]])
    with pytest.raises(UserError, match=_TOO_FEW):
        list(virtual.follow(guest, reader, tmp_path, threading.Event(), 600))


def test_a_guest_that_has_no_room_is_not_started(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "most_processes", lambda: 12)
    nothing = Kernel(name="k", digest="", release="", source="", patches=(), binary=tmp_path / "linux")
    with pytest.raises(UserError, match=_TOO_FEW):
        virtual.boot(nothing, tmp_path, 0)


def test_a_guest_is_told_of_no_folder_with_a_space(tmp_path):
    nothing = Kernel(name="k", digest="", release="", source="", patches=(), binary=tmp_path / "linux")
    scratch = tmp_path / "my files" / "scratch"
    with pytest.raises(UserError, match="my files: guests cannot use folders with spaces in their paths; set"):
        virtual.boot(nothing, scratch, 0)


@pytest.fixture
def offered(tmp_path):
    """Return an adapter whose folders lie in a temporary one; its program is `stack`."""
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    (folder / "adapter.json").write_text(
        '{"contract": 1, "name": "mine", "title": "t", "program": "stack", "transport": "tcp"}'
    )
    (folder / "stack").touch(mode=0o755)
    about = manifest.read(str(folder))
    return Adapter(manifest=about, client=None, build=None, version="1", has=None, digest="5" * 16)


def test_a_guest_is_told_of_no_build_in_a_folder_with_a_space(tmp_path, offered):
    nothing = Kernel(name="k", digest="", release="", source="", patches=(), binary=tmp_path / "linux")
    built = dataclasses.replace(offered, build=tmp_path / "my cache" / "build")
    with pytest.raises(UserError, match=r"my cache/build: guests cannot use .*; move it, or set CC_CONFORMANCE_CACHE"):
        virtual.boot(nothing, tmp_path, 0, built)


@pytest.mark.parametrize("private", [".", "stack"])
def test_a_stack_that_nobody_may_read_is_known_but_not_run(tmp_path, offered, private):
    nothing = Kernel(name="k", digest="", release="", source="", patches=(), binary=tmp_path / "linux")
    folder = offered.manifest.folder
    (folder / private).chmod(0o750)
    manifest.read(str(folder))
    mend = re.escape(f"run `chmod -R o+rX {folder}`")
    with pytest.raises(UserError, match=rf"mine: stacks run as the user nobody, which may not read all of it; {mend}"):
        virtual.boot(nothing, tmp_path, 0, offered)


def test_nothing_is_kept_that_was_measured_after_the_stacks_files_had_changed(tmp_path, offered, monkeypatch):
    """Guests read these files at each start of a program, but results are kept under the digest of what was loaded."""
    program = offered.manifest.folder / "stack"
    program.write_text('#!/bin/sh\necho \'{"version": "1"}\'\n')
    loaded = adapters.load(str(offered.manifest.folder))

    @contextlib.contextmanager
    def guest(*_):
        yield None, tmp_path

    def follow(*_):
        yield "the first"
        (program.parent / "notes.swp").touch()  # an editor's, which no program reads
        yield "the second"
        program.write_text("other code")
        yield "of other code"

    for name, stand_in in (("one_guest", guest), ("follow", follow)):
        monkeypatch.setattr(virtual, name, stand_in)
    made = virtual.VirtualRoom(None).run(loaded, [[trial()]], threading.Event())
    with monkeypatch.context() as plain:
        plain.setattr(virtual.two_passes, "run", lambda once, batches: once(batches))
        measured = [next(made), next(made)]
        with pytest.raises(UserError, match="files of stack mine changed while it was measured; run the same command"):
            next(made)
    assert measured == ["the first", "the second"]


def test_a_guest_does_not_outlive_a_last_will_that_cannot_start(tmp_path, monkeypatch):
    started, real = [], subprocess.Popen

    def popen(command, **how):
        if started:
            raise OSError(11, "Resource temporarily unavailable")
        started.append(real(command, **how))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(UserError, match="cannot start /bin/sh: Resource temporarily unavailable"):
        virtual.Group(["/bin/sleep", "600"], tmp_path, {})
    assert started[0].returncode == -9

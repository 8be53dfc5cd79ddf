"""Where a guest's memory is kept, on machines and in containers."""

import os
import pathlib
import types

import pytest

from conformance.kernel.store import Kernel
from conformance.lab import memory
from conformance.model.errors import UserError


def kernel(tmp_path, content):
    binary = tmp_path / f"linux-{len(content)}"
    binary.write_bytes(content)
    return Kernel(name="k", digest="", release="", source="", patches=(), binary=binary)


@pytest.fixture
def old(tmp_path):
    return kernel(tmp_path, b"...vm_file-XXXXXX...")


@pytest.fixture
def new(tmp_path):
    return kernel(tmp_path, b"...vm_file-XXXXXX...uml-memory...")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return a function that sets the free MB and mount flags of /dev/shm and of the folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def be(shared, temporary):
        about = {pathlib.Path("/dev/shm"): shared, tmp_path: temporary}

        def statvfs(place):
            if about[place] is None:
                raise FileNotFoundError(2, "No such file or directory")
            free_mb, flags = about[place]
            return types.SimpleNamespace(f_bavail=free_mb << 8, f_frsize=4096, f_flag=flags)

        monkeypatch.setattr(os, "statvfs", statvfs)

    monkeypatch.setattr(os, "access", lambda place, mode: True)
    return be


def test_shared_memory_where_it_is_executable_and_large_enough(folders, old, new):
    folders((1000, 0), (1000, 0))
    assert memory.folder(old) == memory.folder(new) == pathlib.Path("/dev/shm")


@pytest.mark.parametrize("shared", [(64, os.ST_NOEXEC), (1000, os.ST_NOEXEC), (64, 0), None])
def test_else_the_temp_folder(folders, old, tmp_path, shared):
    folders(shared, (1000, 0))
    assert memory.folder(old) == tmp_path


def test_where_neither_will_do_only_a_kernel_that_needs_none_boots(folders, old, new, tmp_path):
    folders((64, os.ST_NOEXEC), (12, 0))
    assert memory.folder(new) is None
    with pytest.raises(UserError) as caught:
        memory.folder(old)
    assert caught.value.cause == (
        f"no folder can hold a guest's memory: /dev/shm is mounted noexec; {tmp_path} has 12 MB free and needs 256"
    )
    assert "--tmpfs /dev/shm:rw,exec" in caught.value.mend


def test_without_a_temp_folder_there_is_one_line(monkeypatch, old):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    with pytest.raises(UserError, match="no folder for temporary files is writable; set TMPDIR"):
        memory.folder(old)

import errno
import os
import pathlib
import shutil
import threading

import pytest
from helpers import refusal

from conformance.model.errors import UserError
from conformance.support import files


def test_what_is_not_written_whole_leaves_what_was_there(tmp_path):
    path = files.write(tmp_path / "new" / "zone.json", "before\n")
    with pytest.raises(KeyboardInterrupt), files.replacing(path) as f:
        f.write(b"half of it")
        raise KeyboardInterrupt
    assert path.read_text() == "before\n"
    with pytest.raises(UnicodeEncodeError):
        files.write(path, "\ud800")
    assert path.read_text() == "before\n"
    assert [p.name for p in path.parent.iterdir()] == ["zone.json"]


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.touch(0o600)
    usual.write_text("")
    files.write(old, b"1")
    files.write(new, b"1")
    assert (old.stat().st_mode, new.stat().st_mode) == (0o100600, usual.stat().st_mode)


def test_a_link_stays_one_and_leads_to_what_is_new(tmp_path):
    link, target = tmp_path / "link", tmp_path / "elsewhere" / "target"
    link.symlink_to(target)
    for content in (b"first", b"second"):  # the link leads nowhere, then to a file
        files.write(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "Too many levels of symbolic links" in refusal(files.write, loop, b"1")
    assert loop.is_symlink()


def test_a_file_that_is_a_mount_is_written_to(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"before, and longer")
    monkeypatch.setattr(pathlib.Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(errno.EBUSY, "busy")))
    files.write(path, b"mounted")
    assert path.read_bytes() == b"mounted" and len(list(tmp_path.iterdir())) == 1


@pytest.fixture
def no_new_file(monkeypatch):
    """Return a function after which no new file can be made, for the error number that it is given."""

    def set_reason(number):
        def refuse(path, mode):
            if "x" in mode:
                raise OSError(number, os.strerror(number))
            return open(path, mode)

        monkeypatch.setattr(files, "open", refuse, raising=False)

    return set_reason


@pytest.mark.parametrize("reason", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_a_file_whose_folder_takes_no_other_is_written_to_once_its_content_is_whole(tmp_path, no_new_file, reason):
    path = tmp_path / "file"
    path.write_bytes(b"before, and longer")
    no_new_file(reason)
    with files.replacing(path) as f:  # as `merge A B --out A` does
        f.write(path.read_bytes()[:6])
        f.flush()
        assert path.read_bytes() == b"before, and longer"
    assert path.read_bytes() == b"before"
    with pytest.raises(KeyboardInterrupt), files.replacing(path) as f:
        f.write(b"half")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"before"
    assert "cannot write" in refusal(files.write, tmp_path / "new", b"1")


def test_a_disk_without_room_leaves_what_was_there(tmp_path, no_new_file):
    path = files.write(tmp_path / "file", b"before")
    no_new_file(errno.ENOSPC)
    assert "No space left" in refusal(files.write, path, b"after")
    assert path.read_bytes() == b"before"


def test_what_is_no_file_is_written_to(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    files.write(pipe, b"lines")
    reader.join(10)
    assert read == [b"lines"]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", [".", "", "/", "file/below", "n" * 300, "folder"])
def test_a_place_that_takes_no_file_is_named(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("file").touch()
    pathlib.Path("folder").mkdir()
    with pytest.raises(UserError, match=r"cannot write .*: .*; choose another"):
        files.write(name, b"1", "choose another")
    assert sorted(path.name for path in pathlib.Path().iterdir()) == ["file", "folder"]


def test_a_folder_has_all_of_its_new_files_or_none(tmp_path):
    target = tmp_path / "site"
    for number in ("1", "2"):
        with files.folder(target) as made:
            files.write(made / "index.html", number)
            files.write(made / "data" / "cells.csv", number)
    files.write(target / "kept", "own")
    with pytest.raises(UserError), files.folder(target) as made:
        files.write(made / "index.html", "3")
        raise UserError("a broken line")
    assert {str(p.relative_to(target)): p.read_text() for p in target.rglob("*") if p.is_file()} == {
        "index.html": "2", "data/cells.csv": "2", "kept": "own",
    }  # fmt: skip


def test_a_tree_that_cannot_be_copied_says_why(tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "from" / "link").symlink_to("nowhere")
    with pytest.raises(UserError, match="No such file"), files.folder(tmp_path / "to") as made:
        shutil.copytree(tmp_path / "from", made, dirs_exist_ok=True)


def test_what_is_kept_is_never_mingled(tmp_path):
    files.check_empty(tmp_path / "new")
    files.check_empty(tmp_path)
    with files.folder(tmp_path):  # as a run leaves it that is killed here
        files.check_empty(tmp_path)
    (tmp_path / "file").touch()
    assert "is not empty; name another folder" in refusal(files.check_empty, tmp_path)
    assert "Not a directory; name another folder" in refusal(files.check_empty, tmp_path / "file")

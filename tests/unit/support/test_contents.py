"""Digests of large files are remembered, but not used if the file may have changed."""

import hashlib
import os
import time

import pytest

from conformance.support import trees
from conformance.support.trees import Contents

LARGE = 2 << 20


@pytest.fixture
def place(tmp_path):
    return tmp_path / "cache" / "kept.json"


def wrote(path, content):
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def digest(place, path):
    known = Contents(place)
    found = known.digest(path)
    known.keep()
    return found


@pytest.fixture
def reads(monkeypatch):
    """Return a list of the sizes of files that are read."""
    seen, real = [], hashlib.file_digest

    def read(f, kind):
        seen.append(os.fstat(f.fileno()).st_size)
        return real(f, kind)

    monkeypatch.setattr(hashlib, "file_digest", read)
    return seen


def test_a_large_file_is_read_once_until_it_changes(place, tmp_path, reads, monkeypatch):
    later = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: later)
    path = tmp_path / "large"
    first = wrote(path, b"a" * LARGE)
    assert [digest(place, path) for _ in range(3)] == [first] * 3
    assert reads == [LARGE]
    stamps = path.stat()
    second = wrote(path, b"b" * LARGE)
    os.utime(path, ns=(stamps.st_atime_ns, stamps.st_mtime_ns))  # the same times as before, for a check of these alone
    assert digest(place, path) == second
    (tmp_path / "other").write_bytes(b"c" * LARGE)
    (tmp_path / "other").replace(path)
    assert digest(place, path) == hashlib.sha256(b"c" * LARGE).hexdigest()
    assert len(reads) == 3


def test_one_that_was_changed_just_now_is_read_again(place, tmp_path, reads):
    path = tmp_path / "large"
    first = wrote(path, b"a" * LARGE)
    assert digest(place, path) == digest(place, path) == first
    assert len(reads) == 2
    assert not place.exists()


def test_small_ones_are_not_remembered_and_what_is_not_asked_for_is_forgotten(place, tmp_path, reads, monkeypatch):
    monkeypatch.setattr(trees, "_TICK_NS", -(10**12))
    paths = [tmp_path / name for name in ("small", "one", "two")]
    for path in paths:
        wrote(path, b"x" * (1000 if path.name == "small" else LARGE))
    for path in paths:
        digest(place, path)
    assert digest(place, paths[1]) == hashlib.sha256(b"x" * LARGE).hexdigest()
    assert reads == [1000, LARGE, LARGE, LARGE]


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": 1}'])
def test_what_is_broken_or_cannot_be_written_costs_time_and_no_more(place, tmp_path, monkeypatch, text):
    monkeypatch.setattr(trees, "_TICK_NS", -(10**12))
    place.parent.mkdir()
    place.write_text(text)
    path = tmp_path / "large"
    assert wrote(path, b"a" * LARGE) == digest(place, path)
    assert wrote(path, b"a" * LARGE) == digest(path / "below a file", path)

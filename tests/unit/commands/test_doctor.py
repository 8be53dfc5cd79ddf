"""What `doctor` says about a container, and the remedies that it names."""

import pytest

from conformance.commands import doctor
from conformance.model.errors import UserError
from conformance.support import limits


@pytest.mark.parametrize(
    ("limit", "check", "value", "words", "mend"),
    [
        ("most_processes", doctor._processes, 20, "processes: at most 20 at once, 64 needed", "--pids-limit 64"),
        ("memory_mb", doctor._memory, 128, "memory: 128 MB, 192 MB needed", "--memory 192m or more"),
    ],
)
def test_limits_of_a_container(monkeypatch, limit, check, value, words, mend):
    monkeypatch.setattr(limits, limit, lambda: value)
    assert (check().ok, check().what) == (False, words)
    assert check().mend.startswith(mend)
    monkeypatch.setattr(limits, limit, lambda: 1000)
    assert check().ok
    monkeypatch.setattr(limits, limit, lambda: None)
    assert check().ok


def test_no_temp_folder_is_a_finding(monkeypatch):
    def none():
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr("tempfile.gettempdir", none)
    found = doctor._temp_folder()
    assert (found.ok, found.what) == (False, "no folder for temporary files is writable")
    assert "--tmpfs /tmp" in found.mend


def test_a_cache_that_guests_cannot_be_told_of_is_a_finding(monkeypatch, tmp_path):
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / "my cache"))
    found = doctor._cache()
    assert not found.ok and found.what.endswith("my cache: guests cannot use folders with spaces in their paths")


def test_what_a_guests_memory_lacks_is_a_finding(monkeypatch):
    def none(kernel):
        raise UserError("no folder can hold a guest's memory: /dev/shm is mounted noexec", "set TMPDIR")

    monkeypatch.setattr("conformance.lab.memory.folder", none)
    found = doctor._guest_memory(None)
    assert (found.ok, found.mend) == (False, "set TMPDIR")


def test_pinning_that_is_forbidden_is_told_and_does_not_fail(monkeypatch):
    def forbidden(pid, cores):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.sched_setaffinity", forbidden)
    found = doctor._pinning()
    assert found.ok
    assert "forbidden, so trials take longer" in found.what


def test_compilers_are_asked_for_only_where_something_is_to_be_compiled(monkeypatch):
    monkeypatch.setattr("conformance.lab.building.missing", lambda recipe: ["cc"])
    monkeypatch.setattr("conformance.lab.adapter.is_built", lambda about: True)
    assert doctor._builds("linux-tcp").ok
    monkeypatch.setattr("conformance.lab.adapter.is_built", lambda about: False)
    assert doctor._builds("linux-tcp").what == "tools to build linux-tcp: cc missing"

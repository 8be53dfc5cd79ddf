"""What `doctor` says about a container, and the remedies that it names."""

import pytest

from conformance.commands import doctor
from conformance.model.errors import UserError
from conformance.support import limits


def checked():
    """Return {first words: Check} of everything that is checked."""
    return {check.what.partition(":")[0]: check for check in doctor.compute().checks}


def raising(error):
    def call(*_):
        raise error

    return call


@pytest.fixture
def no_kernel(monkeypatch):
    """Without a kernel nothing is booted."""
    monkeypatch.setattr(doctor.kernels, "find", raising(UserError("no kernel")))


def test_what_a_container_lacks_is_found_with_its_remedy(monkeypatch, no_kernel, tmp_path):
    monkeypatch.setattr(limits, "most_processes", lambda: 20)
    monkeypatch.setattr(limits, "memory_mb", lambda: 128)
    monkeypatch.setattr(limits, "workers", lambda: 1)
    monkeypatch.setattr("tempfile.gettempdir", raising(FileNotFoundError(2, "No usable temporary directory found")))
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(tmp_path / "my cache"))
    monkeypatch.setattr("os.sched_setaffinity", raising(PermissionError(1, "Operation not permitted")))
    monkeypatch.setattr("conformance.lab.building.missing", lambda recipe: ["cc"])
    monkeypatch.setattr("conformance.lab.adapter.is_built", lambda about: False)
    found = checked()
    for name, words, mend in (
        ("processes", "at most 20 at once, 64 needed", "--pids-limit 64"),
        ("memory", "128 MB, 192 MB needed", "--memory 192m or more"),
        ("no folder for temporary files is writable", "", "--tmpfs /tmp"),
        ("cache", "my cache: guests cannot use folders with spaces in their paths", "set CC_CONFORMANCE_CACHE"),
        ("tools to build linux-tcp", "cc missing", "apt-get install"),
    ):
        assert not found[name].ok and found[name].what.endswith(words) and mend in found[name].mend
    pinning = found["pinning guests to cores"]  # costs time only
    assert pinning.ok and "forbidden, so trials take longer" in pinning.what


@pytest.mark.parametrize("limit", [1000, None])
def test_limits_that_are_high_enough_are_no_finding(monkeypatch, no_kernel, limit):
    monkeypatch.setattr(limits, "most_processes", lambda: limit)
    monkeypatch.setattr(limits, "memory_mb", lambda: limit)
    monkeypatch.setattr("conformance.lab.building.missing", lambda recipe: ["cc"])
    monkeypatch.setattr("conformance.lab.adapter.is_built", lambda about: True)
    found = checked()
    assert found["processes"].ok and found["memory"].ok and found["linux-tcp"].what == "linux-tcp: built"


def test_what_a_guests_memory_lacks_is_a_finding_and_nothing_is_booted(monkeypatch):
    why = UserError("no folder can hold a guest's memory: /dev/shm is mounted noexec", "set TMPDIR")
    monkeypatch.setattr("conformance.lab.memory.folder", raising(why))
    monkeypatch.setattr(doctor.virtual, "boot", pytest.fail)
    found = checked()["no folder can hold a guest's memory"]
    assert (found.ok, found.mend) == (False, "set TMPDIR")

"""Following a guest that cannot go on."""

import threading
import types

import pytest

from conformance.kernel.store import Kernel
from conformance.lab import virtual
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

"""What is read of a program's output."""

import contextlib
import os
import sys

import pytest

from conformance.guest import process


@pytest.mark.parametrize("before", [0, 70_000])
def test_what_a_program_printed_last_is_read_however_much_came_before(monkeypatch, tmp_path, before):
    monkeypatch.setattr(process, "inside", lambda node: contextlib.nullcontext())
    command = [sys.executable, "-ISc", f"print('x' * {before}); print('the reason')"]
    program = process.Process(None, command, dict(os.environ), str(tmp_path), contextlib.nullcontext())
    program._process.wait(timeout=60)
    seen = program.seen()
    program.end()
    assert (seen.exit_status, seen.stdout.splitlines()[-1], seen.stderr) == (0, "the reason", "")
    assert len(seen.stdout) <= 64 * 1024

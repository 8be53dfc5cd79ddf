"""What is read of a program's output, and what it cannot be made to overwrite."""

import contextlib
import os
import sys

import pytest

from conformance.guest import process


@pytest.fixture
def seen_of(monkeypatch, tmp_path):
    """Return a function that runs a program of Python's in a folder, and returns what was seen of it."""
    monkeypatch.setattr(process, "inside", lambda node: contextlib.nullcontext())

    def run(text):
        command = [sys.executable, "-ISc", text]
        program = process.Process(None, command, dict(os.environ), str(tmp_path), contextlib.nullcontext())
        program._process.wait(timeout=60)
        seen = program.seen()
        program.end()
        return seen

    return run


@pytest.mark.parametrize("before", [0, 70_000])
def test_what_a_program_printed_last_is_read_however_much_came_before(seen_of, before):
    seen = seen_of(f"print('x' * {before}); print('the reason')")
    assert (seen.exit_status, seen.stdout.splitlines()[-1], seen.stderr) == (0, "the reason", "")
    assert len(seen.stdout) <= 64 * 1024


def test_a_link_that_another_program_left_in_its_folder_leads_no_output_elsewhere(seen_of, tmp_path):
    (tmp_path / "events").write_text("what was measured")
    for name in ("stdout", "stderr"):
        (tmp_path / name).symlink_to("events")
    assert seen_of("print('lies')").stdout == "lies\n"
    assert (tmp_path / "events").read_text() == "what was measured"


@pytest.mark.parametrize(("status", "pid", "ran_out"), [(137, 1 << 30, True), (137, 1, False), (0, 1 << 30, False)])
def test_what_fails_as_a_process_that_it_began_was_killed_for_memory_had_none_left(
    seen_of, monkeypatch, status, pid, ran_out
):
    log = f"<3>[    9.8] Out of memory: Killed process {pid} (stack) total-vm:1048576kB"
    monkeypatch.setattr(process, "_kernel_log", lambda: log)
    assert seen_of(f"raise SystemExit({status})").ran_out_of_memory == ran_out

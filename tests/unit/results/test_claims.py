"""Claims to trials that are being measured: one holder at a time, and none after its process has ended."""

import subprocess
import sys

import pytest

from conformance.results.claims import claim

KEY, OTHER = "00000000000000aa", "ffffffffffffffff"


@pytest.fixture
def path(tmp_path):
    kept = tmp_path / "r.jsonl"
    kept.write_bytes(b"a line\n")
    return kept


def test_one_holds_a_claim_at_a_time(path):
    with claim(path, KEY) as mine:
        assert mine
        with claim(path, KEY) as second, claim(path, OTHER) as unlike:
            assert (second, unlike) == (False, True)
    with claim(path, KEY) as mine:
        assert mine
    assert path.read_bytes() == b"a line\n"


def holding(path, *does):
    """Start a process that does this while it holds the claim `mine`, if that is free."""
    program = [
        "import os, pathlib, signal, sys",
        "from conformance.results.claims import claim",
        f"with claim(pathlib.Path({str(path)!r}), {KEY!r}) as mine:",
        *(f"    {line}" for line in does),
    ]
    command = [sys.executable, "-c", "\n".join(program)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_claim_ends_with_its_process_although_forked_workers_live_on(path):
    worker = "if os.fork() == 0: print(flush=True); sys.stdin.read(); os._exit(0)"
    with holding(path, worker, "signal.pause()") as holder:
        assert holder.stdout.readline() == "\n"  # of the worker
        holder.kill()
        holder.wait()
        with claim(path, KEY) as mine:
            assert mine
        holder.stdin.close()


def test_another_process_is_seen_and_its_claim_ends_with_it(path):
    with holding(path, "print(mine, flush=True)", "sys.stdin.read()") as holder:
        assert holder.stdout.readline() == "True\n"
        with claim(path, KEY) as mine:
            assert not mine
        holder.kill()
        holder.wait()
        with claim(path, KEY) as mine:
            assert mine

"""What is kept of a traced trial, whatever its stack left, and when a stack may write logs at all."""

import contextlib
import os
import pathlib
import subprocess
import types

import pytest

from conformance.guest import main, trace
from conformance.guest.seen import ProcessSeen


@pytest.fixture
def kept(tmp_path):
    """Return a function that fills the server's log folder by `write`, and returns {file that is kept: its bytes}."""
    logs, target = tmp_path / "logs", tmp_path / "kept"
    (logs / "qlog").mkdir(parents=True)

    def keep(write):
        with contextlib.chdir(logs):
            write()
        said = ProcessSeen(exit_status=1, ran_out_of_memory=False, stdout="", stderr="the reason\n")
        trace.keep({"server": str(logs), "client": str(tmp_path / "none")}, str(target), said, None)
        return {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}

    yield keep
    subprocess.run(["rm", "-rf", logs], check=True)  # it may lie deeper than Python removes


def put(path, text="log"):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def nest(name, characters):
    """Nest folders of a name until their path has so many characters, and put a file with a long name there."""
    os.chdir("qlog")
    at = len(str(pathlib.Path.cwd()))
    while at < characters:
        pathlib.Path(name).mkdir()
        os.chdir(name)
        at += 1 + len(name)
    put("b" * 250)


def test_logs_secrets_and_what_was_printed_are_kept(kept):
    assert kept(lambda: (put("qlog/a/1.qlog"), put("server.log"), put("keys.log", "secret"))) == {
        "server/qlog/a/1.qlog": b"log",
        "server/server.log": b"log",  # of an image of the interop runner
        "server/keys.log": b"secret",
        "server/stderr.txt": b"the reason\n",
    }


@pytest.mark.parametrize(
    "write",
    [
        lambda: put("stderr.txt/x"),
        lambda: put("stderr.txt", "another reason"),
        lambda: put("qlog/\x1b[2J"),
        lambda: put(os.fsdecode(b"qlog/\xff")),
        lambda: nest("d" * 100, 4000),
        lambda: pathlib.Path("keys.log").symlink_to("/etc/passwd"),
        lambda: os.mkfifo("keys.log"),
    ],
)
def test_no_name_that_a_stack_gives_hides_what_it_printed(kept, write):
    assert kept(write) == {"server/stderr.txt": b"the reason\n"}


@pytest.mark.parametrize(("how", "written"), [(None, 0), ("heads", 0), ("packets", 0), ("all", 1)])
def test_only_where_logs_are_kept_is_there_a_folder_for_them(monkeypatch, how, written):
    made, events = [], []
    facts = types.SimpleNamespace(groups=[types.SimpleNamespace(server=None, flows=[])])
    monkeypatch.setattr(main, "_warm_up", lambda *given: None)
    monkeypatch.setattr(main.trial, "run", lambda stage, job, target, logs: facts)
    monkeypatch.setattr(trace, "log_folders", lambda job: made.append("made") or {"server": "s", "client": "c"})
    monkeypatch.setattr(trace, "keep", lambda *given: made.append("kept"))
    stage = types.SimpleNamespace(job=types.SimpleNamespace(trace=how), scratch="/nowhere")
    trials = [types.SimpleNamespace(seed=1, tested=0, flow=0)]
    cell = types.SimpleNamespace(trials=trials, calibrate=(), probes=())
    main._run_cells(stage, [cell], events.append)
    assert made == ["made", "kept"] * written
    assert len(events) == 2

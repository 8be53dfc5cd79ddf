"""Programs of an adapter that run on this machine, build and describe: they end, print little, leave no process."""

import json
import pathlib
import time

import pytest
from helpers import refusal

from conformance.lab import adapter, building, host_process
from conformance.model.errors import UserError

#: a shell command that starts a daemon, whose parent ends and which has a session of its own
DAEMON = "setsid sh -c 'echo $$ > {pid}; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"


@pytest.fixture
def described(tmp_path):
    """Return a function that loads an adapter whose describe runs this shell command, or prints this text."""

    def load(command=None, text=None, **manifest):
        about = {
            "contract": 1, "name": "odd", "title": "t", "program": "stack", "transport": "tcp",
            "algorithms": {"cubic": {"called": "c", "evidence": "e"}}, **manifest,
        }  # fmt: skip
        (tmp_path / "adapter.json").write_text(json.dumps(about))
        (tmp_path / "text").write_bytes(text or b"")
        (tmp_path / "stack").write_text(f"#!/bin/sh\n{command or f'cat {tmp_path}/text'}\n")
        (tmp_path / "stack").chmod(0o755)
        tmp_path.chmod(0o755)
        return adapter.load(str(tmp_path / "adapter.json"))

    return load


def wait_until_gone(pid_file):
    status = pathlib.Path(f"/proc/{int(pid_file.read_text())}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.05)
    raise AssertionError("a process is still there")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sleep 1000", "did not end within 0.5 s; make it print {"),
        ("trap '' TERM; while :; do sleep 1; done", "did not end within 0.5 s"),
        ("yes", "printed more than 64 kB"),
        ("yes >&2", "printed more than 64 kB"),
        ("exit 127", "ended with status 127: it printed nothing; make it print {"),
        ("printf 'no \\033[31mred\\n' >&2; exit 3", r"ended with status 3: no \[31mred"),
        ("kill -9 $$", "ended with status -9"),
    ],
)
def test_a_describe_that_misbehaves_is_named(described, monkeypatch, command, words):
    monkeypatch.setattr(adapter, "_DESCRIBE_TIMEOUT_S", 0.5)
    with pytest.raises(UserError, match=words):
        described(command)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("#!/nowhere/python3\n", "the interpreter in its first line is not there; correct that line"),
        ("#!/bin/sh\r\ntrue\r\n", "the interpreter in its first line is not there; .* without CR"),
        ("true\n", "it is no program for this machine; begin a script with `#!`"),
    ],
)
def test_a_program_that_cannot_be_started_says_what_to_correct(tmp_path, program, words):
    path = tmp_path / "program"
    path.write_bytes(program.encode())
    path.chmod(0o755)
    with open(tmp_path / "out", "wb") as out, pytest.raises(UserError, match=f"^cannot run {path}: {words}"):
        host_process.run([str(path)], [out], timeout_s=5, most_bytes=1000, environment={})


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\xff\xfe", b"[" * 60_000, b"1" * 6_000, b'{"version": NaN}', b'{"version": 1}', b'{"version": ""}',
        b'{"version": "1", "algorithms": "cubic"}', b"version 1",
    ],
)  # fmt: skip
def test_a_description_that_is_none_is_named(described, text):
    assert "describe`" in refusal(described, text=text)


def test_a_version_is_harmless_text(described):
    found = described(text=json.dumps({"version": "1\x1b[31m\u202e\ud800\n [bold]" + "x" * 1000}).encode())
    assert found.version.startswith("1[31m [bold]xxx")
    assert found.version.isprintable()
    assert len(found.version) <= 200


def test_a_describe_sees_nothing_of_the_users_environment_but_home(described, monkeypatch, tmp_path):
    """A guest has none of it: with the user's libraries, `describe` would tell of another version than runs."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/mine")
    monkeypatch.setenv("CC_CALLED", "bbr")
    said = described("""printf '{"version": "%s"}' "$(env | sed 's/=.*//' | sort | paste -sd ' ')" """).version
    assert set(said.split()) - {"OLDPWD", "PWD", "SHLVL", "_"} == {"CC_BUILD", "CC_OUTSIDE", "HOME", "LC_ALL", "PATH"}
    assert described("""printf '{"version": "%s"}' "$CC_BUILD" """).version == str(tmp_path)


def test_a_describe_leaves_no_process_however_it_ends(described, monkeypatch, tmp_path):
    monkeypatch.setattr(adapter, "_DESCRIBE_TIMEOUT_S", 0.5)
    pid = tmp_path / "pid"
    daemon = f"{DAEMON.format(pid=pid)} while ! test -s {pid}; do :; done"
    assert described(f"""{daemon}; echo '{{"version": "1"}}'""").version == "1"
    wait_until_gone(pid)
    pid.unlink()
    assert "did not end" in refusal(described, f"{daemon}; sleep 1000")
    wait_until_gone(pid)


@pytest.mark.usefixtures("own_cache")
def test_a_build_leaves_no_process_and_no_flood(described, monkeypatch, tmp_path, own_cache):
    monkeypatch.setattr(building, "_LOG_BYTES", 100_000)
    pid, build = tmp_path / "pid", tmp_path / "build"
    build.write_text(f"#!/bin/sh\n{DAEMON.format(pid=pid)}\nwhile ! test -s {pid}; do :; done\nyes\n")
    build.chmod(0o755)
    assert "error: it printed more than 97 kB" in refusal(described, build={"program": "build"})
    wait_until_gone(pid)
    assert (own_cache / "adapters" / "odd.log").stat().st_size < 101_000
    assert not [p for p in (own_cache / "adapters").iterdir() if p.is_dir()]

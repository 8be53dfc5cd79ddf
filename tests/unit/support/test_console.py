"""Words from stacks, files and users are shown as plain text."""

import io
import os
import subprocess
import sys

import helpers
import pytest
import rich.table
import rich.text

from conformance.model.errors import UserError, located
from conformance.model.networks.place import Cell
from conformance.results import store
from conformance.support.console import Console, mistake, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[bold]x[/]", "[bold]x[/]"),
        ("r.jsonl:100: :cat:", "r.jsonl:100: :cat:"),
        ("a\x1b[31m\x1b]0;title\x07b", r"a\x1b[31m\x1b]0;title\x07b"),
        ("\x9b31m\x7f\r", r"\x9b31m\x7f\r"),
        ("half \ud800", r"half \ud800"),
        ("abc\u202edef", r"abc\u202edef"),
        ("naïve 日本", "naïve 日本"),
    ],
)
def test_text_is_shown_and_never_obeyed(text, shown):
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system="truecolor")
    console.print(text, soft_wrap=True)
    table = rich.table.Table("head")
    table.add_row(text)
    console.print(table)
    first, rest = console.file.getvalue().split("\n", 1)
    assert first == shown
    assert shown in rest


def test_text_that_was_put_together_elsewhere_is_not_obeyed_either():
    console = Console(file=io.StringIO(), width=200)
    evil = rich.text.Text.assemble(("a\x1b]0;owned", "bold"), "\u202e")
    table = rich.table.Table("head")
    table.add_row(evil)
    console.print(evil)
    console.print(table)
    shown = console.file.getvalue()
    assert shown.startswith("a\\x1b]0;owned\\u202e\n")
    assert "\x1b" not in shown and "\u202e" not in shown


_COMMAND = [sys.executable, "-m", "conformance"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "what",
    ["clause show", "clause show --format json", "export csv r.jsonl --out -", "export markdown r.jsonl --out -"],
)
def test_a_reader_that_has_gone_is_no_violation(tmp_path, what):
    """Exit status 1 would mean that something violates."""
    (tmp_path / "r.jsonl").write_bytes(b"".join(map(store.dumps, helpers.measurements([0.5] * 5))))
    command = subprocess.Popen([*_COMMAND, *what.split()], stdout=subprocess.PIPE, cwd=tmp_path)
    command.stdout.close()
    assert command.wait(60) == 0


@pytest.mark.slow
def test_a_terminal_that_lacks_a_sign_is_no_reason_to_fail(tmp_path):
    path = "10mbps-20ms-0pct,10mbps-20ms-0pct"
    (tmp_path / "r.jsonl").write_bytes(
        b"".join(map(store.dumps, helpers.measurements([0.5] * 5, cell=Cell(10, 20, 0))))
    )
    done = subprocess.run(
        [*_COMMAND, "split", "analyze", "r.jsonl", "--path", path],
        capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=False,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    assert b"?" in done.stdout and b"0.5" in done.stdout


def test_where_nobody_reads_errors_the_output_goes_on():
    told = "from conformance.support.console import Console; Console(stderr=True).on_broken_pipe(); print('kept')"
    done = subprocess.run([sys.executable, "-c", told], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "kept\n"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_full_device_is_a_mistake_of_one_line(form):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*_COMMAND, "clause", "show", "--format", form], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "cannot write to standard output: No space left on device" in done.stderr


def test_a_mistake_is_one_line(tmp_path):
    done = helpers.invoke("zones", "check", tmp_path / "a\nconformance: ok")
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert one_line("a\nb\x00") == r"a\nb\x00"


def test_the_last_lines_of_a_program_that_failed_stand_below_and_cannot_pass_for_ours():
    error = UserError("it does not build", "see log", ["x.c:1: error", "a\nconformance: ok\x1b[2J"])
    shown = "it does not build; see log\n  x.c:1: error\n  a\\nconformance: ok\\x1b[2J"
    assert mistake(error) == shown
    with pytest.raises(UserError) as again, located("file"):
        raise error
    assert mistake(again.value) == f"file: {shown}"


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["gate", "cubic", "--baseline", ""], ["run", "cubic", "--results", "."]])
def test_what_would_pass_for_something_else_is_refused(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = helpers.invoke(*arguments)
    assert done.exit_code == 2
    assert isinstance(done.exception, SystemExit)

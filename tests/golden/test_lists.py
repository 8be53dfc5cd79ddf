"""Goldens of what a user can name: every test of every algorithm with its markers, and every command's help.

`GOLDEN_UPDATE=1 pytest tests/golden/test_lists.py` writes them anew; reviewers read the difference.
"""

import json
import os
import pathlib
import subprocess
import sys

import click
import pytest

from conformance.cli import main

EXPECTED = pathlib.Path(__file__).with_name("expected")
#: the program that collects the tests of each stack; a process of its own, because collecting leaves state behind
_LIST = """
import json, sys, pytest

class Collected:
    def pytest_collection_finish(self, session):
        self.items = [
            f"{item.name}: {' '.join(sorted({m.name for m in item.iter_markers()}))}" for item in session.items
        ]

for stack in sys.argv[1:]:
    collected = Collected()
    status = pytest.main(["--collect-only", "-qq", "--pyargs", "conformance.suite", "--stack", stack], [collected])
    if status:
        sys.exit(status)
    print(json.dumps([stack, collected.items]))
"""
_STACKS = ("linux-tcp", "ngtcp2")


@pytest.fixture(scope="module")
def collected():
    done = subprocess.run([sys.executable, "-c", _LIST, *_STACKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))


def same_as_golden(name, text):
    """Assert that the golden file has this text; write it there first if GOLDEN_UPDATE is set."""
    path = EXPECTED / name
    if os.environ.get("GOLDEN_UPDATE"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("stack", _STACKS)
def test_the_list_of_tests_of_every_algorithm(stack, collected):
    same_as_golden(f"tests-{stack}.txt", "\n".join(collected[stack]) + "\n")


def helps(command, words, parent=None):
    """Yield the help of a command and of all its subcommands."""
    settings = {**command.context_settings, "max_content_width": 100, "terminal_width": 100}
    with click.Context(command, parent=parent, info_name=words[-1], **settings) as context:
        yield f"$ {' '.join(words)} --help\n{command.get_help(context)}\n"
        for name, inner in sorted(getattr(command, "commands", {}).items()):
            yield from helps(inner, [*words, name], context)


def test_the_help_of_every_command():
    same_as_golden("help.txt", "\n".join(helps(main, ["conformance"])))

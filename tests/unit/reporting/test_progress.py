"""The one progress bar: lines without a terminal; on a terminal a bar, which is gone when done."""

import io

import pytest
from helpers import Clock

from conformance.reporting.text import progress
from conformance.support.console import Console


class Run:
    done, total = 3, 80

    def line(self):
        return "3 of 80 trials"


@pytest.fixture
def clock():
    return Clock()


def _console(terminal=False):
    return Console(file=io.StringIO(), force_terminal=terminal, width=100)


def _said(console):
    return console.file.getvalue().splitlines()


def test_without_a_terminal_there_is_a_line_now_and_then(clock):
    console = _console()
    with progress.bar(console, "measuring", clock=clock) as bar:
        for clock.now in (1.0, 29.0, 31.0, 40.0, 62.0):
            bar.follow(Run())
    assert _said(console) == ["measuring: 3 of 80 trials"] * 2


def test_what_is_left_of_a_budget_is_said(clock):
    console = _console()
    with progress.bar(console, "measuring", budget_s=120, clock=clock) as bar:
        clock.now = 45.0
        bar.follow(Run())
    assert _said(console) == ["measuring: 3 of 80 trials; 1 min 15 s of the budget left"]


def test_pieces_are_counted_and_the_rest_is_estimated(clock):
    console = _console()
    with progress.bar(console, "mutants", total=10, unit="mutants", clock=clock) as bar:
        bar.advance("no-backoff", fresh=False)
        clock.now = 20.0
        bar.advance("slow")
        clock.now = 40.0
        bar.advance("fast")
    assert _said(console) == ["mutants: 3 of 10 mutants; fast; about 2 min 20 s left"]


def test_a_new_stage_is_printed_at_once_and_only_once(clock):
    console = _console()
    with progress.bar(console, "kernel 7.2", clock=clock) as bar:
        for line in ("configuring", "compiling", "compiling"):
            bar.stage(line)
    assert _said(console) == ["kernel 7.2: configuring", "kernel 7.2: compiling"]


def test_a_share_is_shown_where_pieces_have_no_name(clock):
    console = _console()
    with progress.bar(console, "kernel", total=400, clock=clock) as bar:
        for clock.now, done in ((10.0, 40), (40.0, 100)):
            bar.reached(done)
    assert _said(console) == ["kernel: 25%; about 2 min 30 s left"]


def test_on_a_terminal_the_bar_is_gone_when_done():
    console = _console(terminal=True)
    with progress.bar(console, "measuring", total=2, unit="trials") as bar:
        bar.advance("one\nforged line \x1b[2J")
    said = console.file.getvalue()
    assert "1 of 2 trials; one\\nforged line \\x1b[2J" in said
    assert said.endswith("\x1b[1A\x1b[2K")

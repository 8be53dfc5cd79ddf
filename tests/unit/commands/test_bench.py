"""`bench --figures`: what it prints, and its document; rooms are fakes, and nobody's time is asserted."""

import json
import re

import click.testing
import fake_room
import pytest

from conformance.cli import main
from conformance.commands import bench_figures
from conformance.engine import benches
from conformance.lab.virtual import VirtualRoom
from conformance.model.errors import UserError
from conformance.support import schema


@pytest.fixture
def run(monkeypatch):
    """Run `bench` with these options; what it prints."""
    monkeypatch.setattr(benches, "find", benches.find)
    fake_room.install("good")
    sessions = []

    def session(name, marks, choice, target_s):
        sessions.append((marks, choice.stack))
        return bench_figures.Figure(name=name, seconds=1.5, target_s=target_s)

    monkeypatch.setattr(bench_figures, "_pytest", session)

    def call(*options):
        done = click.testing.CliRunner().invoke(main, ["bench", *options])
        assert done.exit_code == 0, done.output
        return done.stdout, sessions

    return call


def test_figures_have_a_document(run):
    text, sessions = run("--figures", "--format", "json")
    data = json.loads(text)
    schema.check("bench", data, "bench")
    names = [figure["name"] for figure in data["figures"]]
    assert names[:2] == ["start of a guest", "calibration of a cell"]
    assert [figure["target_s"] for figure in data["figures"]] == [None] * 4 + [16, 16, 0.5, 0.5, 20, 6, 60]
    assert sessions == [("cubic and smoke", "quinn")]


def test_whole_commands_are_measured_where_that_is_asked_for(run):
    text, sessions = run("--whole")
    assert sessions[1:] == [("cubic", "linux-tcp")]
    assert re.search(r"CUBIC, 150 cells x 20 trials .* 480 ", text)


def test_a_stack_that_is_not_built_is_a_row_that_says_so(run, monkeypatch):
    found = benches.find

    def find(choice):
        if choice.stack == "picoquic":
            raise UserError("stack picoquic is not built", "build it")
        return found(choice)

    monkeypatch.setattr(benches, "find", find)
    (row,) = [f for f in json.loads(run("--figures", "--format", "json")[0])["figures"] if "picoquic" in f["name"]]
    assert (row["seconds"], row["trouble"]) == (None, "stack picoquic is not built")


def test_a_session_of_pytest_that_cannot_be_measured_is_no_figure():
    found = bench_figures._pytest("a mistake", "cubic and nosuchmark", benches.Choice(), 1)
    assert found.seconds is None and "nosuchmark" in found.trouble


def test_a_bench_that_forgets_makes_every_calibration(monkeypatch):
    place = benches.Place(kernel="kernel", room=VirtualRoom("kernel"))
    fake_room.install("good", patch=monkeypatch.setattr)
    bench = benches.find()
    changed = type(bench)(**{**vars(bench), "place": lambda algorithm: place})
    room = bench_figures.forgetful(changed).place("cubic").room
    assert (room.kernel, room._remembers, place.room._remembers) == ("kernel", False, True)

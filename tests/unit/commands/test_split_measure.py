"""`split measure`."""

import io

import pytest
from click.testing import CliRunner
from helpers import scheme, trial
from rich.console import Console

from conformance import cli
from conformance.catalogue import documents
from conformance.commands import split_measure
from conformance.commands.result import printed
from conformance.engine import benches
from conformance.model.split.split_zone import PathCheck
from conformance.model.trials.trial import Measurement, Outcome
from conformance.reporting.text import paths as shown
from conformance.reporting.text.progress import ConsoleNotes
from conformance.support import schema


class Bench:
    """A bench of linux-tcp whose measurements run() replaces."""

    lab, profile = "virtual", "atc25"

    class adapter:
        name = "linux-tcp"

        class manifest:
            transport = "tcp"

            @staticmethod
            def offered():
                return ("cubic",)

        @classmethod
        def why_not(cls, algorithm):
            return None if algorithm in cls.manifest.offered() else f"linux-tcp does not offer {algorithm}"

    def scheme(self, algorithm):
        return scheme(algorithm)


def measured(goodputs, outcome=Outcome.OK, message=None, **metrics):
    known = [{"goodput_mbps": g, **metrics} if outcome is Outcome.OK else metrics for g in goodputs]
    return [Measurement(trial=trial(), outcome=outcome, message=message, metrics=m) for m in known]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["split", "measure", "cubic", "--proxy", "pepsal"], "pepsal is not on PATH"),
        (["split", "measure", "cubic", "10mbps-1ms-0pct"], "is not of the form 10mbps-20ms-0pct+50mbps-60ms-1pct"),
        (["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--to-client", "; rm"], "kernel name"),
        (
            ["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--proxy", "none", "--to-client", "bbr"],
            "no proxy",
        ),
        (
            ["split", "measure", "cubic", "10mbps-1ms-0pct+10mbps-1ms-0pct", "--back-pressure-bytes", "1"],
            "whole number",
        ),
    ],
)
def test_mistakes_are_one_line_and_status_2(monkeypatch, arguments, words):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(benches, "find", lambda choice: Bench())
    done = CliRunner().invoke(cli.main, arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_paths_those_of_the_zones_are_measured(monkeypatch):
    monkeypatch.setattr(benches, "find", lambda choice: Bench())
    monkeypatch.setattr(
        split_measure, "measure", lambda b, work, *_: [(key, measured([5] * 3, utilization=0.5)) for key in work]
    )
    console = Console(width=200, file=io.StringIO())
    found = split_measure.compute(
        "cubic", [], benches.Choice(), proxy="splitter", proxy_options={}, queue_sized_by="path", overrides={},
        trials=3, results="", workers=None, profile=None, notes=ConsoleNotes(console),
    )  # fmt: skip
    shown.show_measured(found, console)
    named = [row.split("│")[1].strip() for row in console.file.getvalue().splitlines() if "pct" in row]
    assert named == [check.path.id for check in documents.split_part("cubic/split") if isinstance(check, PathCheck)]


def test_measure_shows_each_path(monkeypatch):
    paths = ["10mbps-1ms-4pct+10mbps-80ms-0pct", "10mbps-80ms-0pct+20mbps-1ms-4pct"]

    def results(setting):
        if setting.segments[0].loss_pct:
            return measured([2, 3, 1], utilization=0.2)
        return measured([2, 3, 1], Outcome.TIMEOUT, "slow", utilization=0.01)

    monkeypatch.setattr(benches, "find", lambda choice: Bench())
    monkeypatch.setattr(split_measure, "measure", lambda b, work, *_: [(key, results(key[1])) for key in work])
    console = Console(width=200, file=io.StringIO())
    found = split_measure.compute(
        "cubic", paths, benches.Choice(), proxy="none", proxy_options={}, queue_sized_by="segment", overrides={},
        trials=3, results="", workers=None, profile=None, notes=ConsoleNotes(console),
    )  # fmt: skip
    shown.show_measured(found, console)
    schema.check("split-measure", printed(found), "split-measure")
    text = console.file.getvalue()
    assert found.exit_status == 0
    rows = [[column.strip() for column in row.split("│")[1:6]] for row in text.splitlines() if "pct" in row]
    assert rows == [
        [paths[0], "2.000", "2.000", "2.000", "0.200"], [paths[1], "< 0.100", "< 0.100", "0.100", "< 0.010"],
    ]  # fmt: skip

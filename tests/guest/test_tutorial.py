"""What docs/first-verdict.md shows is what its commands print."""

import re

import click.testing
import pytest

from conformance.catalogue import documents
from conformance.cli import main
from conformance.engine import benches
from conformance.support import paths

pytestmark = pytest.mark.guest

TEXT = (paths.PACKAGE.parent / "docs" / "first-verdict.md").read_text(encoding="utf-8")
COMMAND, SHOWN = re.search(r"```sh\n(conformance run .*?)\n```.*?```\n(.*?)```", TEXT, re.DOTALL).groups()


def test_the_first_command_prints_what_the_tutorial_shows(tmp_path, monkeypatch):
    (reference,) = documents.zone(paths.data("zones", "cubic", "heatmap.json")).references.values()
    scheme = benches.find().scheme("cubic").id
    if scheme != reference["scheme"]:
        pytest.skip(f"{scheme} is measured here; the tutorial shows {reference['scheme']}")
    monkeypatch.chdir(tmp_path)
    done = click.testing.CliRunner().invoke(main, COMMAND.split()[1:], env={"COLUMNS": "96"})
    assert done.exit_code == 0, done.output
    assert " ".join(SHOWN.split()) in " ".join(done.output.split())

"""The output that docs/first-verdict.md shows is what its commands print."""

import re

import click.testing
import helpers
import pytest

from conformance.cli import main
from conformance.engine import benches
from conformance.support import paths

pytestmark = pytest.mark.guest

TEXT = (paths.PACKAGE.parent / "docs" / "first-verdict.md").read_text(encoding="utf-8")
COMMAND, SHOWN = re.search(r"```sh\n(conformance run .*?)\n```.*?```\n(.*?)```", TEXT, re.DOTALL).groups()


def test_the_first_command_prints_what_the_tutorial_shows(tmp_path, monkeypatch):
    scheme = benches.find().scheme("cubic").id
    if scheme != helpers.reference_scheme("cubic"):
        pytest.skip(f"{scheme} is measured here; the tutorial shows {helpers.reference_scheme('cubic')}")
    monkeypatch.chdir(tmp_path)
    done = click.testing.CliRunner().invoke(main, COMMAND.split()[1:], env={"COLUMNS": "96"})
    assert done.exit_code == 0, done.output
    assert " ".join(SHOWN.split()) in " ".join(done.output.split())

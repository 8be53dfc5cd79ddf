"""The output that docs/first-verdict.md shows is what its commands print."""

import re

import helpers
import pytest

from conformance.engine import benches
from conformance.support import paths

pytestmark = pytest.mark.guest

TEXT = (paths.PACKAGE.parent / "docs" / "first-verdict.md").read_text(encoding="utf-8")
COMMAND, SHOWN = re.search(r"```sh\n(conformance run .*?)\n```.*?```\n(.*?)```", TEXT, re.DOTALL).groups()


def flat(text, version):
    """Return a text in one line; if it is not of the tutorial's version of the stack, with # for each number."""
    words = " ".join(text.split())
    return words if version in " ".join(SHOWN.split()) else re.sub(r"\d+(\.\d+)*", "#", words)


def test_the_first_command_prints_what_the_tutorial_shows(tmp_path, monkeypatch):
    """With another nginx or OpenSSL than the tutorial's, losses fall on other packets."""
    bench = benches.find()
    scheme = bench.scheme("cubic").id
    if scheme != helpers.reference_scheme("cubic"):
        pytest.skip(f"{scheme} is measured here; the tutorial shows {helpers.reference_scheme('cubic')}")
    monkeypatch.chdir(tmp_path)
    done = helpers.invoke(*COMMAND.split()[1:], env={"COLUMNS": "96"})
    assert done.exit_code == 0, done.output
    assert flat(SHOWN, bench.adapter.version) in flat(done.output, bench.adapter.version)

"""The unit tests of the adapter `document`, which are in Rust beside its code."""

import shutil
import subprocess

import pytest

from conformance.support import paths


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_the_controller_keeps_the_drafts_example_cases_in_the_model():
    done = subprocess.run([paths.data("adapters", "document", "check")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

"""Clauses, from the command to packets of real trials: clauses that Linux keeps and a mutant does not."""

import json

import pytest
from helpers import invoke

from conformance.support import schema

pytestmark = pytest.mark.guest


@pytest.fixture
def judged(tmp_path):
    def run(*arguments):
        results = str(tmp_path / "results.jsonl")
        asked = ["clause", "run", *arguments, "--results", results, "--format", "json"]
        done = invoke(*asked)
        data = json.loads(done.stdout)
        schema.check("clause-run", data, "clause run")
        (clause,) = data["clauses"]
        return done.exit_code, clause

    return run


def test_linux_keeps_seven_tenths_of_its_window_and_a_mutant_that_keeps_more_is_caught(judged):
    status, right = judged("CL011", "--algorithm", "cubic")
    assert (status, right["verdict"]) == (0, "conforms")
    assert 0.64 < right["value"] < 0.77 and right["trials"] == 5
    status, wrong = judged("CL011", "--mutant", "cubic-beta-0.875")
    assert (status, wrong["verdict"]) == (1, "violates")
    assert 0.8 < wrong["value"] < 0.95 and wrong["seen"][0]["packet"] > 0


@pytest.mark.thorough
def test_a_change_that_waits_for_a_state_is_seen(judged):
    """CL028: the second loss comes 1.5 s after the first, which the first pass finds."""
    for which in (("--algorithm", "cubic"), ("--mutant", "cubic-no-fast-convergence")):
        status, right = judged("CL028", *which)
        assert (status, right["verdict"]) == (0, "conforms")
    status, wrong = judged("CL028", "--mutant", "cubic-c-tenth")
    assert (status, wrong["verdict"]) == (1, "violates")

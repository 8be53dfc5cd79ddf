"""The whole of `dev search` in guests: it finds and shrinks what a bad stack does, and nothing in the reference."""

import json

import kernel_stack
import pytest
from helpers import invoke

from conformance.support import schema

pytestmark = pytest.mark.guest

#: a program that stops for 20 s whenever the path has taken nothing for most of a second
BODY = """
    def body(connection, size):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
        while size > 0:
            if not select.select([], [connection], [], 0.8)[1]:
                time.sleep(20)
            size -= connection.send(bytes(min(size, 4096)))
"""


@pytest.fixture
def standing(tmp_path):
    """Make the adapter of a stack that stands still after an outage; return its path."""
    return kernel_stack.adapter(tmp_path / "standing", BODY)


def searched(stack, tmp_path, *more, status, tries=36):
    """Run a search, and return its document."""
    command = ["dev", "search", str(stack), "--results", str(tmp_path / "r.jsonl"), "--format", "json"]
    command += ["--tries", str(tries)]
    done = invoke(*command, *more)
    assert done.exit_code == status, done.output
    document = json.loads(done.stdout)
    schema.check("search", document, "what a search prints")
    return document


@pytest.mark.thorough
def test_a_stack_that_stands_still_after_an_outage_is_found_and_the_outage_is_what_is_left(standing, tmp_path):
    kept = tmp_path / "kept"
    document = searched(standing, tmp_path, "--goal", "standstill", "--out", str(kept), status=1)
    (sought,) = document["sought"]
    assert sought["repeated"] and sought["stack"] > 10 > 3 * sought["against"]
    scenario = json.loads((kept / "standstill.json").read_text())
    (entry,) = scenario["schedule"]
    assert entry["set"] in ({"loss_pct": 100}, {"rate_mbps": 0}) or "impairments" in entry["set"]
    # The same command finds the same, of results alone.
    again = searched(standing, tmp_path, "--goal", "standstill", "--out", str(tmp_path / "again"), status=1)
    assert again["best"] == document["best"] and again["sought"][0]["stack"] == sought["stack"]
    scenario_of = ["--scenario", str(kept / "standstill.json"), "--seed", "3001", "--packets-only"]
    command = ["trace", "cubic", "--stack", str(standing), *scenario_of]
    done = invoke(*command, "--out", tmp_path / "trace")
    assert done.exit_code == 0, done.output
    command = ["why", "cubic", "--stack", str(standing), "--scenario", str(kept / "standstill.json")]
    done = invoke(*command, "--format", "json")
    assert done.exit_code in (0, 1), done.output
    schema.check("why", json.loads(done.stdout), "what why prints of a finding")


@pytest.mark.parametrize(
    ("tries", "goals"), [(6, ("--goal", "standstill")), pytest.param(36, (), marks=pytest.mark.thorough)]
)
def test_a_search_on_the_reference_finds_nothing(tmp_path, tries, goals):
    document = searched("linux-tcp", tmp_path, *goals, "--out", str(tmp_path / "found"), status=0, tries=tries)
    assert document["tries"] == tries and not any(sought["repeated"] for sought in document["sought"])

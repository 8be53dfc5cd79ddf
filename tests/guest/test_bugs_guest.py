"""`dev bugs run` in guests: a sham that moves nothing, and a made-up bug that is caught twice."""

import functools
import json

import kernel_stack
import pytest
from helpers import invoke

from conformance.catalogue import bugs
from conformance.catalogue.bugs import Bug, Build
from conformance.commands import compare_clauses
from conformance.model.clauses import changes

pytestmark = pytest.mark.guest


#: a program that breaks off after so many seconds without an acknowledgement as a tree says
BODY = """
    def body(connection, size):
        with open(os.environ["CC_BUILD"] + "/patience_s") as patience_s:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * int(patience_s.read()))
        good.zeros(connection, size)
"""


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Make a stack whose patience is what a tree says, trees, and a catalogue; return the trees' folder."""
    here = tmp_path / "toy"
    kernel_stack.adapter(here, BODY, "reno", build={"program": "build"})
    (here / "build").write_text('#!/bin/sh\ncp "$TOY_HOME/patience_s" "$CC_BUILD"\n')
    (here / "build").chmod(0o755)
    for name, patience_s in (("good", 900), ("same", 900), ("bad", 5)):
        tree = tmp_path / "trees" / name
        tree.mkdir(parents=True)
        (tree / "patience_s").write_text(str(patience_s))
        (tree / "notes").write_text(name)
    shared = {"stack": str(here), "repository": "made/up", "part": "toy", "algorithm": "reno", "did": "It is made up."}
    monkeypatch.setattr(bugs, "folder", lambda: tmp_path)
    monkeypatch.setattr(bugs, "entries", lambda: (
        Bug(
            **shared, id="TOY-PATIENCE", mechanism="It breaks off after five seconds of silence.",
            named_by=["failures", "CL040"],
            buggy=Build(tree="bad"), fixed=Build(tree="good"),
        ),
        Bug(**shared, id="TOY-SHAM", sham=True, buggy=Build(tree="same"), fixed=Build(tree="good")),
        Bug(**shared, id="TOY-OTHER", buggy=Build(tree="other"), fixed=Build(tree="good")),
    ))  # fmt: skip
    return tmp_path / "trees"


@pytest.fixture
def run(catalogue, tmp_path, monkeypatch):
    """Return a function that runs all entries of the catalogue, and gives the document."""
    # What the bug changes shows in a long outage alone.
    few = {changes.LONG: changes.COMPARED_NETWORKS[changes.LONG]}
    monkeypatch.setattr(changes, "COMPARED_NETWORKS", few)
    # An earlier test of this process may have asked for their names.
    monkeypatch.setattr(compare_clauses, "_names", functools.cache(compare_clauses._names.__wrapped__))

    def of():
        command = ["dev", "bugs", "run", "--results", str(tmp_path / "r.jsonl"), "--format", "json"]
        command += ["--clause", "CL040", "--grid", "10mbps-20ms-1pct", "--budget", "30m"]
        command += [word for tree in catalogue.iterdir() for word in ("--source", f"{tree.name}={tree}")]
        done = invoke(*command)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    return of


def tiers_of(document):
    return {run["id"]: {tier["command"]: tier for tier in run["tiers"]} for run in document["runs"]}


def test_a_made_up_bug_is_caught_and_named_beside_a_sham(run):
    document = run()
    tiers = tiers_of(document)
    bug, sham = tiers["TOY-PATIENCE"], tiers["TOY-SHAM"]
    assert bug["compare"]["by"] == ["failures"] and bug["clauses"]["by"] == ["CL040"]
    assert all(tier["caught"] and tier["named"] for tier in bug.values())
    assert list(sham) == ["clauses", "compare", "zones"] and not any(tier["caught"] for tier in sham.values())
    # The record takes one line a command, as it takes no control characters.
    assert all(tier["first"].isprintable() for tier in (*bug.values(), *sham.values()))
    assert document["moved"] == [] and (document["caught"], document["named"]) == (1, 1)
    assert "its tree other is not given" in document["not_run"]["TOY-OTHER"]

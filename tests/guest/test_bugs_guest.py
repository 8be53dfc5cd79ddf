"""The whole of `dev bugs run` in guests: a made-up bug that is caught twice, and a sham that moves nothing."""

import functools
import json
import shutil

import click.testing
import pytest

from conformance.catalogue import bugs
from conformance.catalogue.bugs import Bug, Build
from conformance.cli import main
from conformance.commands import compare_clauses
from conformance.model.clauses import changes
from conformance.support import paths

pytestmark = pytest.mark.guest


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """Make a stack whose controller is the one that a tree names, trees, and a catalogue; return the trees' folder."""
    here = tmp_path / "mutants" / "toy"
    shutil.copytree(paths.PACKAGE.parent / "mutants" / "aioquic", here)
    (tmp_path / "adapters").symlink_to(paths.PACKAGE.parent / "adapters")
    with (here / "build").open("a") as build:
        build.write('cp "$TOY_HOME/called" "$CC_BUILD"\n')
    program = here / "aioquic-mutants"
    program.rename(here / "inner")
    program.write_text(
        '#!/bin/sh\n[ "$1" = describe ] || CC_CALLED=$(cat "$CC_BUILD/called")\nexec "${0%/*}/inner" "$@"\n'
    )
    program.chmod(0o755)
    manifest = json.loads((here / "adapter.json").read_text())
    manifest["algorithms"] = {"reno": manifest["algorithms"]["reno"]}
    (here / "adapter.json").write_text(json.dumps(manifest))
    for name, called in (("good", "newreno"), ("same", "newreno"), ("bad", "beta")):
        tree = tmp_path / "trees" / name
        tree.mkdir(parents=True)
        (tree / "called").write_text(called)
        (tree / "notes").write_text(name)
    shared = {"stack": str(here), "repository": "made/up", "part": "toy", "algorithm": "reno", "did": "It is made up."}
    monkeypatch.setattr(bugs, "folder", lambda: tmp_path)
    monkeypatch.setattr(bugs, "entries", lambda: (
        Bug(
            **shared, id="TOY-BETA", mechanism="A loss leaves 0.7 of the window.", named_by=["beta", "CL012"],
            buggy=Build(tree="bad"), fixed=Build(tree="good"),
        ),
        Bug(**shared, id="TOY-SHAM", sham=True, buggy=Build(tree="same"), fixed=Build(tree="good")),
        Bug(**shared, id="TOY-OTHER", buggy=Build(tree="other"), fixed=Build(tree="good")),
    ))  # fmt: skip
    return tmp_path / "trees"


def test_a_made_up_bug_is_caught_and_named_and_a_sham_moves_nothing(catalogue, tmp_path, monkeypatch):
    # Python's stack is slow, and what the bug changes shows without events; one stands for all.
    few = {changes.OUTAGE: changes.COMPARED_NETWORKS[changes.OUTAGE]}
    monkeypatch.setattr(changes, "COMPARED_NETWORKS", few)
    # An earlier test of this process may have asked for their names.
    monkeypatch.setattr(compare_clauses, "_names", functools.cache(compare_clauses._names.__wrapped__))
    command = ["dev", "bugs", "run", "--results", str(tmp_path / "r.jsonl"), "--clause", "CL012", "--format", "json"]
    command += ["--grid", "10mbps-20ms-1pct", "--budget", "30m"]
    command += [word for tree in catalogue.iterdir() for word in ("--source", f"{tree.name}={tree}")]
    done = click.testing.CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    tiers = {run["id"]: {tier["command"]: tier for tier in run["tiers"]} for run in document["runs"]}
    bug, sham = tiers["TOY-BETA"], tiers["TOY-SHAM"]
    assert bug["compare"]["by"][0] == "beta" and bug["clauses"]["by"] == ["CL012"]
    assert all(tier["caught"] and tier["named"] for tier in bug.values())
    assert list(sham) == ["clauses", "compare", "zones"] and not any(tier["caught"] for tier in sham.values())
    # The record takes one line a command, as it takes no control characters.
    assert all(tier["first"].isprintable() for tier in (*bug.values(), *sham.values()))
    assert document["moved"] == [] and (document["caught"], document["named"]) == (1, 1)
    assert "its tree other is not given" in document["not_run"]["TOY-OTHER"]

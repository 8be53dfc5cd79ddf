"""adapters/common/go: what a program in Go says of its stack's version."""

import json
import shutil
import subprocess

import pytest

from conformance.support import paths

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("go") is None, reason="go is not installed")]

GO_MOD = """
module program

go 1.26.0

require (
	cc-conformance/adapter v0.0.0
	example.org/stack v1.2.3
)

replace (
	cc-conformance/adapter => {common}
	example.org/stack => ../tree
)
"""
PROGRAM = """
package main

import (
	"cc-conformance/adapter"

	_ "example.org/stack"
)

func main() {
	adapter.Program{Module: "example.org/stack", Title: "stack"}.Run()
}
"""


def test_a_working_tree_is_not_of_the_version_in_go_mod(tmp_path):
    common = paths.data("adapters", "common", "go")
    for name, text in {
        "tree/go.mod": "module example.org/stack\n\ngo 1.21\n",
        "tree/stack.go": "package stack\n",
        "program/go.mod": GO_MOD.format(common=common),
        "program/main.go": PROGRAM,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    ran = subprocess.run(["go", "run", ".", "describe"], cwd=tmp_path / "program", capture_output=True, check=True)
    assert json.loads(ran.stdout)["version"].startswith("stack v0.0.0, go")

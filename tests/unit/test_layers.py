"""The layers of ARCHITECTURE.md: who may import whom."""

import ast
import pathlib
import sys

import pytest

import conformance

PACKAGE = pathlib.Path(conformance.__file__).parent
IMPURE = {"subprocess", "socket", "time", "random", "os", "mininet", "threading", "datetime", "secrets", "pathlib"}


def imports(path):
    """Modules that a file imports, anywhere in it, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sorted((PACKAGE / "model").glob("*.py")), ids=lambda p: p.name)
def test_model_is_pure(path):
    for name in imports(path):
        assert name.split(".")[0] not in IMPURE, name
        assert not name.startswith("conformance.") or name.startswith("conformance.model"), name


@pytest.mark.parametrize("path", sorted((PACKAGE / "guest").glob("*.py")), ids=lambda p: p.name)
def test_guest_code_needs_only_the_standard_library(path):
    for name in imports(path):
        first = name.split(".")[0]
        assert first in sys.stdlib_module_names or name.startswith("conformance.guest") or name == "conformance", name


@pytest.mark.parametrize("folder", ["lab", "kernel", "reporting"])
def test_lower_layers_know_neither_engine_nor_pytest(folder):
    for path in (PACKAGE / folder).glob("*.py"):
        for name in imports(path):
            assert name.split(".")[0] not in {"pytest", "click"}, (path, name)
            assert name not in {"conformance.engine", "conformance.suite.plugin", "conformance.cli"}, (path, name)


def test_files_stay_small():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path

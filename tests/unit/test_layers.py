"""What import-linter's contracts of the layers (pyproject.toml, `make lint`) cannot say of imports."""

import graphlib
import pathlib
import sys

import grimp
import pytest

import conformance

PACKAGE = pathlib.Path(conformance.__file__).parent
#: packages that a guest's Python has besides the standard library
IN_GUESTS = {"mininet"}


@pytest.fixture(scope="module")
def graph():
    # conformance/__init__.py imports its interface for type checkers only, and otherwise late.
    return grimp.build_graph(
        "conformance", include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


def test_no_module_imports_itself_by_way_of_others(graph):
    order = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(order) > 100
    graphlib.TopologicalSorter(order).prepare()  # raises CycleError, which names the cycle


@pytest.mark.slow
def test_the_guest_has_no_circle_for_types_either():
    everything = grimp.build_graph("conformance", cache_dir=None)
    guest = {module for module in everything.modules if module.startswith("conformance.guest")}
    order = {module: everything.find_modules_directly_imported_by(module) & guest for module in guest}
    assert len(order) > 30
    graphlib.TopologicalSorter(order).prepare()


@pytest.mark.parametrize("package", ["guest", "model"])
def test_guest_and_model_import_only_themselves(graph, package):
    """import-linter's list of forbidden imports cannot know packages that are added later."""
    inside = f"conformance.{package}"
    libraries = {"guest": IN_GUESTS, "model": {"numpy", "scipy"}}[package]
    modules = {module for module in graph.modules if module == inside or module.startswith(f"{inside}.")}
    assert len(modules) > 10
    for module in modules:
        for imported in graph.find_modules_directly_imported_by(module) - modules:
            assert imported in sys.stdlib_module_names | libraries, f"{module} imports {imported}"


def test_files_stay_small():
    for path in PACKAGE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 700, path

"""The shipped suite as a session of pytest, with a room that makes measurements up."""

# Until a session within this process ends, pytester forgets what it imported first; these cannot be imported again.
import altair  # noqa: F401
import fake_room
import numpy  # noqa: F401
import pyarrow  # noqa: F401
import pytest
import scipy.stats  # noqa: F401
import vl_convert  # noqa: F401

from conformance.support import paths

TESTS = str(paths.PACKAGE.parent / "tests")


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run pytest over the shipped suite in this process; `kind` says what the fake room measures.

    `more` is called with a function that sets attributes until the session ends.
    """

    def run(*arguments, kind="good", more=lambda patch: None):
        # As in the repository: zone markers are registered by the plugin, so strictness must not hurt.
        pytester.makeini("[pytest]\naddopts = --strict-markers --no-why\n")
        with monkeypatch.context() as patches:
            fake_room.install(kind, patch=patches.setattr)
            more(patches.setattr)
            return pytester.runpytest_inprocess("--pyargs", "conformance.suite", "-p", "no:cacheprovider", *arguments)

    return run


@pytest.fixture
def process(pytester):
    """The same in a process of its own, where one is tested; `more` is what its conftest.py holds beside that room."""

    def run(*arguments, kind="good", more=""):
        pytester.makeconftest(
            f"import sys\nsys.path.insert(0, {TESTS!r})\nimport fake_room\nfake_room.install({kind!r})\n{more}"
        )
        pytester.makeini("[pytest]\naddopts = --strict-markers --no-why\n")
        return pytester.runpytest_subprocess("--pyargs", "conformance.suite", "-p", "no:cacheprovider", *arguments)

    return run

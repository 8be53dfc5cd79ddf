"""The shipped suite as a session of pytest, with a room that invents measurements."""

# After a session in this process, pytester forgets modules that the session imported first. These modules cannot be
# imported twice, so they are imported before any session.
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
    """Return a function that runs pytest over the shipped suite in this process; `kind` is the fake room's.

    `more` is called with a function that sets attributes until the session ends.
    """

    def run(*arguments, kind="good", more=lambda patch: None):
        # Markers are strict, as in the repository. The plugin registers those of zones, so this must do no harm.
        pytester.makeini("[pytest]\naddopts = --strict-markers --no-why\n")
        with monkeypatch.context() as patches:
            fake_room.install(kind, patch=patches.setattr)
            more(patches.setattr)
            return pytester.runpytest_inprocess("--pyargs", "conformance.suite", "-p", "no:cacheprovider", *arguments)

    return run


@pytest.fixture
def process(pytester):
    """Return a function that does so in a process of its own; `more` follows the fake room in its conftest.py."""

    def run(*arguments, kind="good", more=""):
        pytester.makeconftest(
            f"import sys\nsys.path.insert(0, {TESTS!r})\nimport fake_room\nfake_room.install({kind!r})\n{more}"
        )
        pytester.makeini("[pytest]\naddopts = --strict-markers --no-why\n")
        return pytester.runpytest_subprocess("--pyargs", "conformance.suite", "-p", "no:cacheprovider", *arguments)

    return run

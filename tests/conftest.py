"""Settings of all tests: fast tests run first, those that boot guests last."""

import hypothesis
import pytest

from conformance.engine import benches

pytest_plugins = ["pytester"]

# Generate the same examples every time: a test that fails now and then teaches people to run it again.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.load_profile("steady")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("guest") is not None)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Give the user an empty cache; return its path."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("CC_CONFORMANCE_CACHE", str(cache))
    return cache


@pytest.fixture(autouse=True)
def own_benches(monkeypatch):
    """Undo what fake_room.install() did."""
    monkeypatch.setattr(benches, "find", benches.find)

"""Fixtures of commands' tests."""

import pytest

from conformance.reporting.html import site


@pytest.fixture
def front_page(monkeypatch):
    """Let gates write the front page of their sites alone: a site costs more than all else that they do."""

    def write(source, target, *_):
        target.mkdir(parents=True, exist_ok=True)
        (target / "index.html").touch()

    monkeypatch.setattr(site, "write", write)

"""Fixtures of commands' tests."""

import io

import pytest
import rich.console

from conformance.reporting.html import site


@pytest.fixture
def front_page(monkeypatch):
    """Let commands write an empty front page for a site, which costs more than all else that they do."""

    def write(source, target, *_, **__):
        target.mkdir(parents=True, exist_ok=True)
        (target / "index.html").touch()
        return target / "index.html"

    monkeypatch.setattr(site, "write", write)


@pytest.fixture
def console():
    return rich.console.Console(file=io.StringIO(), width=200)

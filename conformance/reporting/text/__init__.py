"""Render results as text for terminals, and as Markdown. Each module is imported when it is first named."""

# ruff: noqa: F401
from typing import TYPE_CHECKING

from conformance.support import lazy

if TYPE_CHECKING:  # what the command line names
    # isort: off
    from conformance.reporting.text import clause, compare, dev, expect, gate, overview, progress, scenario, scores
    from conformance.reporting.text import setup, split, studies, study, terminal, trace, why, zones
else:
    __getattr__ = lazy.modules_of(__name__)

"""Make file names of series, algorithms and stacks: readable, unique, and harmless whatever a stack is called."""

import re

from conformance.model import digest
from conformance.reporting import heatmaps

_OTHER = re.compile(r"[^a-z0-9.]+")


def of_series(series: heatmaps.Series) -> str:
    """Return the slug of a series. Its digest makes it unique; its words are for people."""
    return f"{_plain(f'{series.scheme.algorithm}-{series.scheme.stack}')}-{series.digest[:8]}"


def of_name(name: str) -> str:
    """Return the slug of an algorithm or a stack: its own name if that is harmless, else one with a digest."""
    plain = _plain(name)
    return plain if plain == name else f"{plain}-{digest.of_value(name)[:8]}"


def _plain(text: str) -> str:
    return _OTHER.sub("-", text.lower()).strip("-.")[:60]
